/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bakes.h - the bakes that the daemon was asked for: table `bakes`, a record
 * for each, by its id.
 *
 * Two more tables index the open bakes and each agent's bakes.
 *
 * A bake's life:
 *
 * 	queued -> running -> ready | unchanged | failed | cancelled
 * 	running -> waiting -> running     something passing failed; retry_ms
 * 	running -> queued                 the daemon stopped or died
 * 	queued, waiting -> cancelled
 *
 * Invariant: a version has at most one open bake of its own, and one open
 * rebake (queue.h sees to both).
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

#define BAKES_KEPT 50               /* of an agent; older ones go when they have ended */
#define BAKES_OLD_MAX 64            /* that go at once */
#define BAKES_SLUG_MAX ((size_t)64) /* the contract's 63 and a NUL */

enum bakes_state {
	BAKES_QUEUED,
	BAKES_RUNNING,
	BAKES_WAITING,
	BAKES_READY,
	BAKES_UNCHANGED,
	BAKES_FAILED,
	BAKES_CANCELLED,
};

const char *bakes_state_name(enum bakes_state state);

/* Whether such a bake is still to be done, or under way. */
bool bakes_is_open(enum bakes_state state);

struct bakes_record {
	json_t *document; /* owned; as it was read, so that what others put there stays */
	char id[ID_TEXT_MAX];
	char agent_id[ID_TEXT_MAX];
	char slug[BAKES_SLUG_MAX];
	int64_t version;
	struct str
		base_name; /* borrowed, of `document` where it was read: what the spec calls it */
	bool rebake;       /* else it is the version's own bake */
	size_t from_step;  /* of a rebake: steps before it may be found; 0 for none */
	enum bakes_state state;
	bool cancelling; /* it was cancelled while it ran */
	int64_t attempt; /* from 1; 0 before the first */
	int64_t created_ms;
	int64_t started_ms; /* of the first attempt; 0 for not yet, here and below */
	int64_t finished_ms;
	int64_t retry_ms;    /* waiting: until when */
	struct digest image; /* all zero where there is none, here and below */
	struct digest base;
	uint64_t size; /* of the image, bytes */
	size_t steps;
	size_t cached_steps;
	json_t *error; /* owned (fault.h), or NULL */
};

/* Add a bake; it gets its id, which sorts behind all others. */
int bakes_add(struct meta *meta, struct bakes_record *record, struct err *err) MUST_CHECK;

/* Write what has changed. */
int bakes_put(struct meta *meta, const struct bakes_record *record, struct err *err) MUST_CHECK;

/* 1 hit, 0 miss, -1. */
int bakes_find(struct meta *meta, struct str id, struct bakes_record *out, struct err *err)
	MUST_CHECK;
void bakes_record_done(struct bakes_record *record);

/* The open rebake of a version, or its own open bake. 1, 0, -1. */
int bakes_find_open(struct meta *meta, struct str agent_id, int64_t version, bool rebake,
		    struct bakes_record *out, struct err *err) MUST_CHECK;

/*
 * An agent's bakes ("" for everybody's), newest first, from before that id on
 * ("" for the newest), until fn returns non-zero, which is returned.
 */
typedef int bakes_each_fn(void *ctx, const struct bakes_record *record, struct err *err);
int bakes_each(struct meta *meta, struct str agent_id, struct str before, bakes_each_fn *fn,
	       void *ctx, struct err *err) MUST_CHECK;

/* Every open bake that was added after that id ("" for all), in the order of their ids. */
int bakes_each_open(struct meta *meta, struct str after, bakes_each_fn *fn, void *ctx,
		    struct err *err) MUST_CHECK;

/* The bakes that an agent need not keep; returns how many. */
struct bakes_ids {
	char at[BAKES_OLD_MAX][ID_TEXT_MAX];
	size_t count;
};
int bakes_find_old(struct meta *meta, struct str agent_id, struct bakes_ids *out, struct err *err)
	MUST_CHECK;
int bakes_remove(struct meta *meta, struct str agent_id, struct str id, struct err *err) MUST_CHECK;

/* As clients see it. Owned. */
json_t *bakes_format(const struct bakes_record *record);

static inline void auto_bakes_record_release(struct bakes_record *slot)
{
	bakes_record_done(slot);
}
#define auto_bakes_record AUTO(bakes_record)
