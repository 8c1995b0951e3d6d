/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - what this host can and cannot do, for `hearth doctor` and for
 * errors that say what to install or enable.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

enum host_verdict { HOST_OK, HOST_WARN, HOST_FAIL };

struct host_check {
	const char *name; /* "kernel", "overlayfs", "runtime", "cgroups", … */
	enum host_verdict verdict;
	char found[160];  /* what there is */
	char advice[160]; /* what to do; "" when all is well */
};

#define HOST_CHECKS_MAX 24

/*
 * Try all that bakes need, for real (a mount, a namespace, a rule set), in
 * children of a single-threaded process. It needs the sandbox's libraries, so
 * `hearth` has a worker call it.
 */
size_t host_examine(const char *data_dir, struct host_check checks[static HOST_CHECKS_MAX]);

#define HOST_PROGRAM_MAX 256

/* Look for a program in the system's usual directories, whatever PATH says. */
bool host_find_program(const char *name, char path[static HOST_PROGRAM_MAX]);

/* The first runtime found: its absolute path. ERR_UNSUPPORTED says what to install. */
int host_find_runtime(const char *wanted, char path[static HOST_PROGRAM_MAX], struct err *err)
	MUST_CHECK;

enum host_cgroups { HOST_CGROUPS_NONE, HOST_CGROUPS_V1, HOST_CGROUPS_V2, HOST_CGROUPS_HYBRID };

/* What is mounted at /sys/fs/cgroup, as this process's mount namespace has it. */
enum host_cgroups host_cgroups(void);
