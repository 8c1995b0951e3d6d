/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_priv.h - a machine's root: trees below, one directory of its own above.
 *
 * All layers are seen through an id mapping, so that their files keep natural
 * owners (0..65535) on disk and belong to the machine's ids inside. Bottom
 * first the stack is: `base` (targets for what every machine mounts, so that
 * none is made in the upper directory); the trees, from the highest whose root
 * is opaque and so hides all below, each with its correction; `targets` where
 * there is one (inner_priv.h); `up`.
 *
 * No tree is in it twice: overlayfs takes no directory twice, and of equal
 * trees the highest is enough.
 *
 * The mounts are made below scratchfd, in a mount namespace of our own, and
 * none inside another.
 *
 * An upper directory has one mount at a time: whoever mounts it holds ownfd's
 * flock, and has asked the kernel whether a dead owner's mount is left
 * anywhere.
 */
#pragma once

#include "layers/digest.h"

#include <stdbool.h>
#include <sys/types.h>

#define STACK_TREES_MAX 498 /* overlayfs stacks 500; base is ours, and one is left for views */

struct stack {
	int treesfd;                   /* trees/, which holds a directory for each diff id */
	int basefd;                    /* etc_open_base()'s */
	int ownfd;                     /* machines/<id>/: up, work; carries the flock */
	int scratchfd;                 /* where `root` is mounted */
	const struct digest *diff_ids; /* bottom first, stack_distinct() */
	size_t diff_id_count;
	uid_t first_id;
	bool has_targets; /* ownfd/targets is the highest layer */
	bool by_name;     /* mount as kernels before 6.13 need it */
};

/*
 * Drop each tree that is there again higher up; returns how many stay. What a
 * tree has at a path it has at its highest place, too, so nothing of a lower
 * place is ever seen.
 */
size_t stack_distinct(struct digest *diff_ids, size_t count);

/*
 * Make ownfd/correction<i> above tree i where that only implies directories
 * that trees below describe. Once, before anything is mounted.
 */
#define STACK_NAME_MAX ((size_t)32)
int stack_correct(const struct stack *stack, struct err *err) MUST_CHECK;
const char *stack_correction_name(size_t i, char text[static STACK_NAME_MAX]);

/*
 * Mount the merged root on scratchfd/root. The calling thread's fsuid, fsgid
 * and secure bits change meanwhile. ownfd is locked by it if it was not;
 * ERR_BUSY where another has the lock or some mount still uses `up`, ERR_FULL
 * or ERR_UNAVAILABLE where it could only be mounted read-only.
 */
int stack_mount(const struct stack *stack, struct err *err) MUST_CHECK;

#define STACK_ROOM_BYTES ((size_t)1024 * 1024) /* a disk with less room is full */

/* The trees alone, read-only, with natural owners; needs at least one. */
int stack_view(const struct stack *stack, int *out_fd, struct err *err) MUST_CHECK;

/* The same with owners as the machine sees them. */
int stack_view_mapped(const struct stack *stack, int *out_fd, struct err *err) MUST_CHECK;

/*
 * Wait until no mount uses `up` any more, wherever it may live. ERR_BUSY when
 * one is still there after timeout_ms: `up` must then not be taken for a tree.
 */
int stack_wait_idle(const struct stack *stack, int timeout_ms, struct err *err) MUST_CHECK;
