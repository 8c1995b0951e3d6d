/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_place.h - trees, and a machine's directories to stack on them.
 *
 * All of it lies in a directory of /tmp; whoever stacks there is in a mount
 * namespace of the test's own.
 */
#pragma once

#include "sandbox/stack_priv.h"

#define TREES 230 /* more than one page of options names */

struct place {
	char dir[64];
	struct digest ids[TREES];
	struct stack stack;
};

/* Setup and teardown: tree i holds a file `top` with i in it. */
int place_make(void **state);
int place_end(void **state);

/* The new directory dirfd/name; the caller closes it. */
int place_open_new(int dirfd, const char *name);

/* What is mounted on scratch/name, at once. */
void place_unmount(const struct place *place, const char *name);
