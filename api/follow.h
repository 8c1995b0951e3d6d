/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - the log of a bake of the daemon, as it is written. */
#pragma once

#include "api/cli.h"
#include "layers/base/sink.h"

/* Whether `hearth logs` was given a bake's id, and nothing of the store. */
bool follow_is_bake(const char *name);

/*
 * Write a bake's log: of one by its id, or of an agent's newest. step is 0 for
 * all of it. With --follow it goes on until the bake has ended.
 */
int follow_write(const struct cli *cli, const char *name, size_t step, struct sink *out,
		 struct err *err) MUST_CHECK;
