/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inner_priv.h - what is mounted inside a machine's root: caches, secrets and
 * the like.
 *
 * Before the root is mounted each target is looked up in the trees. For what
 * they do not have the machine's directory gets a layer `targets`, right below
 * `up`: it has the missing names, in directories with the attributes that the
 * trees show. So no target is ever made in `up`, whatever the image deletes,
 * and a command that writes beside a target changes nothing else by that.
 *
 * A target inside another mount is made there. The runtime mounts /dev/shm, and
 * so a tmpfs on it or below it, too.
 */
#pragma once

#include "sandbox/stack_priv.h"

struct machine_mount;

struct inner_entry {
	char *path; /* owned: of the target, without symlinks */
	int fd;     /* of what is mounted; -1 while nothing is */
};

struct inner {
	const struct machine_mount *mounts; /* borrowed, parents first */
	size_t count;
	struct inner_entry *entries; /* owned */
	int scratchfd;               /* borrowed: files in memory */
	uid_t first_id;
	bool mounted;
};

void inner_init(struct inner *inner, const struct machine_mount *mounts, size_t count);
void inner_done(struct inner *inner);

/* Whether a mount is the runtime's to make (bundle.c). */
bool inner_is_runtimes(const struct machine_mount *mount);

/*
 * Find where each goes, and set stack->has_targets if a target had to be made.
 * ERR_REFUSED for a file in a directory's place or the reverse, and for /proc,
 * /sys and the rest of /dev.
 */
int inner_place(struct inner *inner, struct stack *stack, struct err *err) MUST_CHECK;

/* Mount all of them, at the first call; and unmount them again. */
int inner_mount(struct inner *inner, int rootfd, struct err *err) MUST_CHECK;
void inner_unmount(struct inner *inner);
