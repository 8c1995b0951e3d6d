/* SPDX-License-Identifier: Apache-2.0 */
/* work_copy_priv.h - a step's COPY, from the context (work.h) or an image, into its machine. */
#pragma once

#include "bake/task.h"

/* log_fd is the step's log. */
int work_copy(struct store *store, struct machine *machine, const struct task *task, int log_fd,
	      const struct cancel *cancel, struct err *err) MUST_CHECK;
