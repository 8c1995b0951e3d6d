/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_push.h - where a version's image is pushed to, in its status:
 *
 *	pushes: [{reference, status, digest, bakeId, at, attempt?, retryAt?, error?}]
 *
 * Its status is `pushing`, also between attempts, `pushed`, `failed` for good,
 * or `replaced` where another bake's image goes to the reference instead.
 */
#pragma once

#include "bake/status.h"

struct status_push {
	struct str reference; /* canonical */
	const struct digest *image;
	const char *bake_id;
	const char *state;
	int64_t at_ms;
	int64_t attempt;  /* that has failed; 0 for none */
	int64_t retry_ms; /* 0 for none */
	json_t *error;    /* borrowed (fault.h), or NULL */
};

/* The image goes to these references from now on; NULL or none: nowhere. */
void status_push_begin(json_t *status, const json_t *references, const struct digest *image,
		       const char *bake_id, int64_t at_ms);

/* How one goes. False: the status knows of no such push. */
bool status_push_set(json_t *status, const struct status_push *push);

/* The references of all; owned. */
json_t *status_push_references(const json_t *status);

/* Those of what one bake made; owned. */
json_t *status_push_of_bake(const json_t *status, const char *bake_id, const struct digest *image);
