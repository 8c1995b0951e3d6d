/* SPDX-License-Identifier: Apache-2.0 */
/* gc_scene.h - collections of a store whose repositories are looked at. */
#pragma once

#include "bake/gc.h"
#include "tests/registry/stock.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 25 /* of a race: each is a few milliseconds */

static inline struct gc_result collect_as(struct store *store, bool dry_run)
{
	const struct gc_options options = {
		.store = store, .policy = GC_POLICY_INIT, .dry_run = dry_run};
	struct gc_result result;
	struct err err = {0};

	check_ok(gc_run(&options, &result, &err), &err);
	return result;
}

static inline struct gc_result collect(struct store *store)
{
	return collect_as(store, false);
}

static inline bool stored(struct store *store, const struct stock *stock)
{
	struct blob_info info;
	struct err err = {0};
	int found = blob_find(store, &stock->digest, &info, &err);

	check_ok(found, &err);
	return found == 1;
}

/* One collection after another, in a thread. */
struct collecting {
	struct store *store;
	atomic_bool over;
	pthread_t thread;
};

static inline void *collect_on(void *ctx)
{
	struct collecting *collecting = ctx;

	while (!atomic_load(&collecting->over))
		(void)collect(collecting->store);
	return NULL;
}

static inline void collecting_begin(struct collecting *collecting, struct store *store)
{
	*collecting = (struct collecting){.store = store};
	assert_int_equal(pthread_create(&collecting->thread, NULL, collect_on, collecting), 0);
}

static inline void collecting_end(struct collecting *collecting)
{
	atomic_store(&collecting->over, true);
	assert_int_equal(pthread_join(collecting->thread, NULL), 0);
}
