/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_registry.h - Debian's docker-registry as a child process on a free port
 * of 127.0.0.1, and other programs to fill and judge it.
 */
#pragma once

#include "layers/base/proc.h"

struct live_registry {
	struct proc proc;
	int logfd;     /* what it writes; wide enough for a test */
	char host[32]; /* "127.0.0.1:41234" */
};

/* Whether all that these tests start is installed. */
bool live_registry_can_run(void);

/*
 * Start one that keeps its data in dir/storage. more is YAML of the top level
 * ("" or "auth: ..."), http_more of its http section. Returns when it listens.
 */
void live_registry_start(struct live_registry *registry, const char *dir, const char *more,
			 const char *http_more);
void live_registry_stop(struct live_registry *registry);

/* Run a program to its end; anything but exit code 0 fails the test. */
void live_run(const char *const *argv);
#define live_run(...) live_run((const char *const[]){__VA_ARGS__, NULL})
