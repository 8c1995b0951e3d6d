/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_priv.h - an OCI runtime, run for one command.
 *
 * The runtime stays our child while the command runs; it dies with us. When
 * runtime_run() returns, no process of the container is left and its cgroup is
 * gone, whatever happened.
 */
#pragma once

#include "layers/base/proc.h"
#include "sandbox/agent/report.h"

#include <stdint.h>

struct runtime {
	const char *path; /* of crun, runc or another with their command line */
	const char *id;   /* of the container and its cgroup */
	int dirfd;        /* a fresh directory for its state and log, … */
	const char *dir;  /* … by path, which also holds config.json */
	int out_fd;
	int64_t timeout_ms; /* 0 for none */
	int grace_ms;       /* between SIGTERM and SIGKILL */
	const struct cancel *cancel;
};

/*
 * *out is how the command ended, as the machine's first process reported it
 * (agent/report.h); the runtime's exit code counts for
 * nothing. ERR_TIMEOUT and ERR_CANCELLED after the command was ended for that;
 * ERR_UNSUPPORTED with the runtime's own words when it started no command;
 * ERR_UNAVAILABLE when something outside killed the runtime or the machine.
 */
int runtime_run(const struct runtime *runtime, struct report *out, struct err *err) MUST_CHECK;
