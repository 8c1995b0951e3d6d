/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel.h - a request to stop, visible to every thread that works on a task.
 *
 * A cancel is raised once and stays raised. Long work takes a
 * `struct cancel *`, asks cancel_check() between pieces, and puts cancel_fd()
 * into every ppoll() in which it waits. NULL is a cancel that is never raised.
 *
 * Threads: cancel_raise() may be called from a signal handler or any thread.
 */
#pragma once

#include "layers/base/err.h"

#include <stdatomic.h>
#include <stdbool.h>

struct cancel {
	int fd; /* an eventfd, readable from the moment of cancel_raise() */
	atomic_bool raised;
};

int cancel_init(struct cancel *cancel, struct err *err) MUST_CHECK;
void cancel_done(struct cancel *cancel);
void cancel_raise(struct cancel *cancel);
bool cancel_is_raised(const struct cancel *cancel);

/* The descriptor to wait on, or -1 for NULL (which ppoll() ignores). */
int cancel_fd(const struct cancel *cancel);

/* 0, or ERR_CANCELLED once raised. */
int cancel_check(const struct cancel *cancel, struct err *err) MUST_CHECK;
