/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - directories that steps keep for one another, such as a package
 * manager's downloads.
 *
 * 	caches/<hex>/        of an id and a platform; flock'ed by who uses it
 * 	caches/<hex>.<n>/    more of the same, for `private` users at one time
 * 	    name             the id and the platform, a line each; its mtime is the last use
 * 	    data/            what steps see, with natural owners
 *
 * Their content is in no key and in no layer; where one is lost, steps only
 * take longer. A new one appears whole or not at all, its filling included.
 * Users hold a flock, so a killed one leaves nothing locked, and cache_remove()
 * removes none that is in use.
 *
 * Durability: none is promised.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"

#include <sys/types.h>

enum cache_sharing {
	CACHE_SHARED,  /* with all other shared users */
	CACHE_PRIVATE, /* one of its own while another is in use */
	CACHE_LOCKED,  /* alone: the others wait */
};

#define CACHE_ID_MAX ((size_t)4096)
#define CACHE_NAME_MAX ((size_t)96)
#define CACHE_PRIVATE_MAX 64 /* of one id, in use at one time */

#define CACHE_DATA "data"

/* Makes CACHE_DATA in a directory. Gets the context of cache_open(). */
typedef int cache_fill_fn(void *ctx, int dirfd, struct err *err);

/* Which cache, and how its directory is made if it is new. */
struct cache_spec {
	struct str id;
	struct str platform;
	enum cache_sharing sharing;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	cache_fill_fn *fill; /* NULL for an empty one, as mode, uid and gid say */
};

struct cache {
	char name[CACHE_NAME_MAX]; /* in caches/ */
	int lockfd;                /* -1 when there is none */
	int fd;                    /* of data/ */
	bool fresh;                /* it was made just now */
};

#define CACHE_INIT ((struct cache){.lockfd = -1, .fd = -1})

/*
 * Use a cache until cache_close(), or until this process ends. Where it is
 * wanted alone and others use it, or the reverse, this calls wait (if not NULL)
 * once and blocks.
 */
typedef void cache_wait_fn(void *ctx, const struct cache_spec *spec);
int cache_open(struct store *store, const struct cache_spec *spec, cache_wait_fn *wait, void *ctx,
	       const struct cancel *cancel, struct cache *out, struct err *err) MUST_CHECK;
void cache_close(struct cache *cache);

/* For those who look after the store. Views are valid during the call. */
struct cache_info {
	const char *name; /* in caches/, for cache_remove() */
	struct str id;
	struct str platform;
	int64_t used_ms;
	uint64_t bytes; /* of disk; counted only where asked for */
	bool in_use;
};

typedef int cache_each_fn(void *ctx, const struct cache_info *info, struct err *err);
int cache_each(struct store *store, bool count_bytes, cache_each_fn *fn, void *ctx, struct err *err)
	MUST_CHECK;

/* Remove one. 1, or 0 where it is in use or gone, or -1. */
int cache_remove(struct store *store, const char *name, struct err *err) MUST_CHECK;

static inline void auto_cache_release(struct cache *slot)
{
	cache_close(slot);
}
#define auto_cache AUTO(cache)
