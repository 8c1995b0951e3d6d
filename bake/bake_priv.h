/* SPDX-License-Identifier: Apache-2.0 */
/* bake_priv.h - a bake while it runs, for the files that it is spread over. */
#pragma once

#include "bake/asker.h"
#include "bake/bake.h"
#include "bake/key.h"
#include "bake/sweeper.h"
#include "bake/task.h"

struct bake {
	const struct spec *spec;
	const struct bake_options *options;
	struct asker asker;
	struct crew crew;
	struct sweeper *sweeper; /* from the first step on that is made */
	struct instruction *steps;
	struct digest *keys; /* of the steps; zero for one that changes no file */
	struct state state;
	struct meta *meta;  /* a snapshot for look-ups; none while something runs */
	int64_t created_ms; /* of the last step, or the base */
	size_t step;        /* from 1 */
	struct bake_result result;
};

/*
 * Everything that a worker needs to make a step, from its expanded instruction.
 * Its parts are borrowed from the bake; its lists are freed by bake_free_task().
 */
void bake_fill_task(const struct bake *bake, const struct instruction *ready,
		    const struct key_parts *parts, const struct digest *key, struct task *task);
void bake_free_task(struct task *task);
