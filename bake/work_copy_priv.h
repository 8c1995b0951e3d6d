/* SPDX-License-Identifier: Apache-2.0 */
/* work_copy_priv.h - a step's COPY, from the context (work.h) or an image, into its machine. */
#pragma once

#include "bake/task.h"

/* What a COPY reads in a root. Borrows all of it. */
struct context_sources work_copy_sources(const struct task *task, int fd);

/* log_fd is the step's log. What is copied of an image is added to the list. */
int work_copy(struct store *store, struct machine *machine, const struct task *task, int log_fd,
	      struct buf *list, const struct cancel *cancel, struct err *err) MUST_CHECK;
