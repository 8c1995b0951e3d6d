/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_list_priv.h - the listing (listing.h) of a step that reads images. What
 * it reads of the context its asker has listed, and what it reads of images its
 * worker adds as it copies.
 */
#pragma once

#include "bake/task.h"

/* Nothing for a step without images; else what the asker listed, or a new one. */
int work_list_begin(struct store *store, const struct task *task, struct buf *list, struct err *err)
	MUST_CHECK;

/*
 * Durable, and named by the task's components, when it returns 0. One that was
 * cleared, since it grew too long, is none.
 */
int work_list_keep(struct store *store, const struct task *task, const struct buf *list,
		   struct err *err) MUST_CHECK;
