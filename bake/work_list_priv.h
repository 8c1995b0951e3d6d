/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_list_priv.h - the listing (listing.h) of a step that reads images. Its
 * asker has listed what it reads of the context; its worker adds what it reads
 * of images, as it copies.
 */
#pragma once

#include "bake/task.h"

/* Nothing for a step without images; else what the asker listed, or a new one. */
int work_list_begin(struct store *store, const struct task *task, struct buf *list, struct err *err)
	MUST_CHECK;

/*
 * Durable, and named by the task's components, when it returns 0. A list that
 * was cleared, since it grew too long, is not kept.
 */
int work_list_keep(struct store *store, const struct task *task, const struct buf *list,
		   struct err *err) MUST_CHECK;
