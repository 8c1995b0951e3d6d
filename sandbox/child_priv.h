/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child_priv.h - a function run in a forked child, as we are or as a machine's
 * root. The child dies with the thread that made it, or when we are cancelled:
 * it has a copy of our memory, in which no cancel is ever raised, so we end it.
 * That copy holds the locks that our other threads had at that moment, for
 * ever: fn takes none of them, libc's own excepted.
 *
 * As a machine's root the child has the machine's first id as its fsuid and
 * fsgid (the files that it makes belong to the machine), umask 0, and no
 * capability but those that writing any file takes. Host root's own files stay
 * readable to it.
 */
#pragma once

#include "layers/base/cancel.h"

#include <stdint.h>

typedef int child_fn(void *ctx, int rootfd, struct err *err);

/*
 * The child's error becomes ours; a child that dies is ERR_OS, a cancelled one
 * ERR_CANCELLED.
 */
typedef int child_call_fn(void *ctx, struct err *err);
int child_call(child_call_fn *fn, void *ctx, const struct cancel *cancel, struct err *err)
	MUST_CHECK;

/* The same as a machine's root. */
int child_run(uint32_t id, int rootfd, child_fn *fn, void *ctx, const struct cancel *cancel,
	      struct err *err) MUST_CHECK;
