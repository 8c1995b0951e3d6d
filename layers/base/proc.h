/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - child processes, started by exec and always reaped.
 *
 * A struct proc owns a child from proc_spawn() until proc_wait() has its
 * status; proc_done() kills and reaps what is still there. The child gets the
 * descriptors that are listed and no other.
 */
#pragma once

#include "layers/base/cancel.h"

#include <stdbool.h>
#include <sys/types.h>

#define PROC_FDS_MAX 8

struct proc {
	pid_t pid; /* 0 when there is none */
	int pidfd; /* readable when the child has ended; -1 when there is none */
};

#define PROC_INIT ((struct proc){.pidfd = -1})

struct proc_spec {
	const char *path;        /* of the program; no search */
	const char *const *argv; /* ends with NULL */
	const char *const *envp; /* ends with NULL; NULL is our own environment */
	int fds[PROC_FDS_MAX];   /* fds[i] becomes descriptor i; -1 is /dev/null */
	int fd_count;            /* at least 3 */
	bool new_session;        /* setsid(): a terminal's ^C does not reach it */
	bool die_with_parent;    /* SIGKILL when the thread that spawned it ends */
};

/* A program that cannot be started for want of descriptors or memory is an error here. */
int proc_spawn(const struct proc_spec *spec, struct proc *out, struct err *err) MUST_CHECK;

/*
 * Wait until it ends. *out_status is as a shell has it: the exit code, or 128
 * and the signal. timeout_ms < 0 waits for ever. ERR_TIMEOUT and ERR_CANCELLED
 * leave the child running.
 */
int proc_wait(struct proc *proc, int timeout_ms, const struct cancel *cancel, int *out_status,
	      struct err *err) MUST_CHECK;

/*
 * A status of 126 or 127 says, as in a shell, that the program could not be
 * started: ERR_UNAVAILABLE with its path.
 */
int proc_check_started(int status, const char *path, struct err *err) MUST_CHECK;

/* Let it live on: from now on nobody here ends it or waits for it. */
void proc_forget(struct proc *proc);

/* SIGKILL and reap, if there is one. */
void proc_done(struct proc *proc);

static inline void auto_proc_release(struct proc *slot)
{
	proc_done(slot);
}
#define auto_proc AUTO(proc)
