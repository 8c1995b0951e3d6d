/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from.h - an image that a step only reads from: COPY --from, and a bind
 * mount's `from`.
 *
 * The name is whatever a base may be, and it is resolved like one: a digest
 * that is held is not asked for again, what is missing is pulled. What the step
 * reads is named by the image's chain id, so that nothing of it is mounted or
 * read to find the step's record; an image of the same files is the same.
 *
 * The layers go with the task (task.h). Its worker has their trees made, and
 * sees them through machine_image_view(): with natural owners where it copies,
 * with the machine's where it binds.
 */
#pragma once

#include "bake/state.h"
#include "bake/task.h"

struct asker;
struct bake_options;
struct spec;

struct from {
	struct task_layer *layers; /* owned; bottom first */
	size_t layer_count;
	struct digest chain_id; /* goes into the step's key */
};

/* A state's layers as a task has them; owned. */
struct task_layer *from_layers(const struct state *state);

/* ERR_REFUSED for an image without files. The asker's progress is told. */
int from_resolve(struct str reference, const struct spec *spec, const struct bake_options *options,
		 const struct asker *asker, struct from *out, struct err *err) MUST_CHECK;
void from_done(struct from *from);
