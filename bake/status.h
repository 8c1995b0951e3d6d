/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - what agents.imageStatus answers: one document a version, table
 * `statuses`.
 *
 * It is rendered when it changes, together with its ETag, and stored as the
 * bytes of the answer; so a read is one look-up, whatever the number of agents,
 * and parses nothing. A document is changed as a JSON value, and members that a
 * newer program put there survive. The contract says what they are.
 *
 * Invariants: the agent's own entry is that of its latest version. Equal ETags
 * are equal answers, of the same version, so an ETag names a stored status.
 *
 * Durability: a status is written in the transaction that changes its state.
 * The progress of a running bake is not stored: live.h has it.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

#define STATUS_BODY_MAX ((size_t)512 * 1024) /* errors with logs, and those of all pushes */
#define STATUS_ETAG_MAX ((size_t)33)         /* 32 hex digits and the NUL */

/* A version that has no image yet: `none`. Owned. */
json_t *status_new(struct str agent_id, struct str slug, int64_t version);

/* 1 and its document, owned; 0 none, -1. Version 0 is the latest. */
int status_find(struct meta *meta, struct str agent_id, int64_t version, json_t **out,
		struct err *err) MUST_CHECK;
int status_put(struct meta *meta, const json_t *status, struct err *err) MUST_CHECK;

/* The answer's body, appended to what is empty, and its ETag. 1, 0 none, -1. */
int status_read(struct meta *meta, struct str agent_id, int64_t version, struct buf *out,
		char etag[static STATUS_ETAG_MAX], struct err *err) MUST_CHECK;

/* The same of a document. */
int status_render(const json_t *status, struct buf *out, char etag[static STATUS_ETAG_MAX],
		  struct err *err) MUST_CHECK;

/* The state of a version's bake. A rebake of a version that has an image does not change it. */
void status_set_queued(json_t *status);
void status_set_running(json_t *status, int64_t attempt, int64_t started_ms);
void status_set_waiting(json_t *status, int64_t retry_ms, json_t *error);
void status_set_failed(json_t *status, json_t *error, int64_t finished_ms);

struct status_image {
	struct digest digest;
	uint64_t size; /* bytes */
	int64_t finished_ms;
	int64_t started_ms; /* of the bake that made it; 0 where that is not known */
};

/* The version is `ready`, with this image. */
void status_set_ready(json_t *status, const struct status_image *image);

/* The one it served before its last rebake; NULL for none. */
void status_set_previous(json_t *status, const struct status_image *image);

/* Of the last rebake; state is "baking", "ready", "unchanged" or "failed"; error may be NULL. */
void status_set_rebake(json_t *status, const char *bake_id, const char *state, int64_t at_ms,
		       json_t *error);

/* And of its attempts: the next one is at that time, or under way where it is 0. */
void status_set_rebake_attempt(json_t *status, int64_t attempt, int64_t retry_ms);

bool status_is_ready(const json_t *status);
bool status_image(const json_t *status, struct status_image *out);
bool status_previous(const json_t *status, struct status_image *out);
struct str status_slug(const json_t *status); /* borrowed */
int64_t status_version(const json_t *status);

/* The progress of a running bake. */
struct status_progress {
	const char *phase; /* "pulling", "running" or "exporting"; not copied */
	size_t step;       /* from 1; 0 for none */
	size_t of;
	struct str text;
	bool cached;
};

/* In the rebake where the version has an image, else in the status itself. */
void status_set_progress(json_t *status, const struct status_progress *progress);

/* Its image and the one before it were collected (gc_versions.h): it has failed, for good. */
void status_set_collected(json_t *status, json_t *error, int64_t at_ms);

/* Every version's status, in no order, until fn returns non-zero, which is returned. */
typedef int status_each_fn(void *ctx, const json_t *status, struct err *err);
int status_each(struct meta *meta, status_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;
