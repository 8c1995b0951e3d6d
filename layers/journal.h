/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what happened, in order: an append-only table of events.
 *
 * Whoever changes a state appends its event in the same transaction, so an
 * event is there if and only if the change is. Ids begin at 1 and rise by one,
 * over restarts and processes; none is ever used twice, since the newest event
 * stays whatever is trimmed.
 *
 * A reader who has seen event N has missed some if the oldest one's id is above
 * N + 1; if N is above the newest one's, it read another store.
 */
#pragma once

#include "layers/meta.h"

#define JOURNAL_DATA_MAX ((size_t)64 * 1024) /* of an event, as text: a log's tail fits */
#define JOURNAL_TRIM_MAX 1000                /* events removed in one transaction */
#define JOURNAL_LISTENERS_MAX 8

/*
 * A text is "" (and version 0) where the event is not about such a thing. Texts
 * and data are borrowed.
 */
struct event {
	uint64_t id;
	int64_t at_ms;
	struct str type; /* "image.ready"; the contract lists them */
	struct str agent_id;
	int64_t version;
	struct str bake_id;
	struct str session_id;
	struct str root_id;
	struct str sandbox_id;
	const json_t *data; /* an object, or NULL for an empty one */
};

/*
 * Append in the caller's write transaction; event->id is not read. ERR_LIMIT
 * for too much data.
 */
int journal_append(struct meta *meta, const struct event *event, uint64_t *out_id, struct err *err)
	MUST_CHECK;

/*
 * Every event after that id, oldest first, until fn returns non-zero, which is
 * returned. The event is lent during fn.
 */
typedef int journal_read_fn(void *ctx, const struct event *event, struct err *err);
int journal_read(struct meta *meta, uint64_t after, journal_read_fn *fn, void *ctx, struct err *err)
	MUST_CHECK;

/* The ids at both ends: 1, 0 there is no event yet, -1. */
int journal_ends(struct meta *meta, uint64_t *out_oldest, uint64_t *out_newest, struct err *err)
	MUST_CHECK;

struct journal_policy {
	uint64_t keep;   /* events, at most; 0 for any number */
	int64_t keep_ms; /* no older ones; 0 for any age */
};

/*
 * Remove the oldest events that the policy does not keep, JOURNAL_TRIM_MAX at
 * most. 1 there are more, for another transaction; 0 none; -1.
 */
int journal_trim(struct meta *meta, const struct journal_policy *policy, int64_t now_ms,
		 struct err *err) MUST_CHECK;

/* The event as clients see it: {id, type, at, agentId, …, data}, without what it is not about. */
json_t *journal_format(const struct event *event);

/*
 * From now on call fn after each commit of this process that appended, in the
 * thread that committed: it must be quick, and neither write nor wait. ctx
 * outlives the store.
 */
typedef void journal_listen_fn(void *ctx);
void journal_listen(struct store *store, journal_listen_fn *fn, void *ctx);
