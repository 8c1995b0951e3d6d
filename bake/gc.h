/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - what is removed from the store, and in which order.
 *
 * What no record names always goes, and records of repositories go that nothing
 * leads to any more. By policy more does: images, and with each
 * the steps that no other image needs; and steps of no image. What a tag names
 * never goes, nor what somebody works with (layers/lease.h). An image that
 * stays keeps its steps, so that it stays cached. The tags of agents' versions
 * go when the versions are old (gc_versions.h).
 *
 * It may run beside bakes, pulls and another collection, and be killed.
 */
#pragma once

#include "layers/collect.h"
#include "layers/digest.h"

#define GC_IMAGES_MAX ((size_t)1000000) /* of one store */
#define GC_NEVER INT64_MAX

struct gc_policy {
	const struct digest *images; /* these go, unless they have a tag */
	size_t image_count;
	bool all;          /* all that no tag needs */
	int64_t keep;      /* how many of a slug's images and versions stay; GC_NEVER for all */
	int64_t unused_ms; /* remove what was not used for so long; GC_NEVER for nothing */
	/* Then, while the store takes more, or its file system has less (gc_press.c): */
	uint64_t max_bytes; /* UINT64_MAX for any */
	uint64_t min_free_bytes;
	/* For one pass: the least recently used, until they are of so many bytes. */
	uint64_t steps_bytes;  /* steps that no image needs */
	uint64_t images_bytes; /* images without a tag */
};

#define GC_POLICY_INIT \
	((struct gc_policy){.keep = GC_NEVER, .unused_ms = GC_NEVER, .max_bytes = UINT64_MAX})

enum gc_event_kind {
	GC_IMAGE, /* digest and name of an image that goes */
};

struct gc_event {
	enum gc_event_kind kind;
	const struct digest *digest;
	const char *name; /* its slug, or "" */
};

typedef void gc_event_fn(void *ctx, const struct gc_event *event);

struct gc_options {
	struct store *store;
	struct gc_policy policy;
	bool dry_run;       /* say what would go */
	gc_event_fn *event; /* or NULL */
	void *event_ctx;
	const struct cancel *cancel;
};

struct gc_result {
	uint64_t images;
	uint64_t steps;
	uint64_t contexts; /* that came as a tar */
	uint64_t records;  /* of repositories (registry/outgrown.h) */
	struct collect_result collected;
	uint64_t mirrored; /* bytes of upstreams' images that were let go for their size */
	uint64_t caches;   /* of RUN's mounts */
	uint64_t cache_bytes;
	uint64_t punched; /* bytes that the databases' files take less */
	uint64_t missing; /* bytes by which the policy's limits are still missed */
};

/*
 * Before something takes space: collect, if the file system has less free than
 * the policy's min_free_bytes; without a policy (NULL), or where it sets none,
 * less than GC_FREE_PERCENT or GC_FREE_BYTES. A failed collection is no error
 * here, since the work fails if its space is really missing; ERR_CANCELLED is.
 */
#define GC_FREE_PERCENT 10
#define GC_FREE_BYTES ((uint64_t)1 << 30)
int gc_make_room(struct store *store, const struct gc_policy *policy, const struct cancel *cancel,
		 struct err *err) MUST_CHECK;

/*
 * After something found no room: the same until GC_MORE_PERCENT are free. 1
 * something went, so it may be tried once more; 0 nothing can go; -1.
 */
#define GC_MORE_PERCENT 25
int gc_make_more_room(struct store *store, const struct gc_policy *policy,
		      const struct cancel *cancel, struct err *err) MUST_CHECK;

int gc_run(const struct gc_options *options, struct gc_result *out, struct err *err) MUST_CHECK;
