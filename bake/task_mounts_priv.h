/* SPDX-License-Identifier: Apache-2.0 */
/* task_mounts_priv.h - the mounts in a task's document. */
#pragma once

#include "bake/task.h"

json_t *task_mounts_format(const struct task *task);
int task_mounts_parse(const json_t *document, struct task *task, struct err *err) MUST_CHECK;
void task_mounts_done(struct task *task);
