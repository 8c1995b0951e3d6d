/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_mounts_priv.h - a step's mounts, prepared for its machine: caches are
 * waited for and held, bound files are copied, secrets go into variables.
 */
#pragma once

#include "bake/task.h"

struct work_mounts {
	struct machine_mount *at; /* parents first */
	size_t count;
	struct cache *caches;
	size_t cache_count;
	struct staging staging; /* copies of what is bound */
	int *fds;               /* of those */
	size_t fd_count;
	const char **env; /* the step's, and the secrets that are variables; ends with NULL */
	struct buf *variables;
	size_t variable_count;
};

#define WORK_MOUNTS_INIT ((struct work_mounts){.staging = STAGING_INIT})

/* The image of a mount, or NULL: the task has the images of its mounts in their order. */
const struct task_image *work_find_image(const struct task *task, size_t mount);

/* A machine that is only opened for the view of its trees. */
int work_open_lender(struct store *store, const struct task *task, const struct task_image *image,
		     struct machine **out, struct err *err) MUST_CHECK;

/*
 * May wait for other steps, and says so to log_fd. What is bound of images is
 * added to the list, unless that is empty. All of it is held until
 * work_mounts_close(), which outlives the machine.
 */
int work_mounts_open(struct store *store, const struct task *task, int log_fd, struct buf *list,
		     const struct cancel *cancel, struct work_mounts *out, struct err *err)
	MUST_CHECK;
void work_mounts_close(struct work_mounts *mounts);
