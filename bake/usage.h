/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - what takes space in a store, for `hearth du`.
 *
 * Things in files of their own are counted in blocks of the file system; things
 * in the databases in stored bytes.
 */
#pragma once

#include "layers/account.h"
#include "layers/punch.h"

#define USAGE_LIST_MAX DIGEST_SET_MAX /* of each list: all that one store names */

/* An image, under each of its names. */
struct usage_image {
	struct digest manifest;
	char **names; /* owned: canonical references; without any, the slug that it was baked as */
	size_t name_count;
	bool tagged;
	uint64_t bytes;
	uint64_t unique;
};

struct usage_layer {
	struct digest blob;
	struct digest diff_id;
	uint64_t bytes;
	uint64_t tree_bytes; /* blocks; 0 without a tree */
	uint32_t images;
};

/* Something in a directory of its own. */
struct usage_item {
	char *name;  /* owned */
	char *label; /* owned: of a cache, its id and platform; NULL for none */
	uint64_t bytes;
};

struct usage_list {
	struct usage_item *at; /* owned; the largest first */
	size_t count;
	uint64_t bytes; /* of all, and of the directory itself */
};

struct usage {
	uint64_t bytes; /* the whole data directory, in blocks */
	struct punch_account databases;
	struct account_totals totals;
	struct usage_image *images; /* owned; what only it holds, largest first */
	size_t image_count;
	struct usage_layer *layers; /* owned; largest first */
	size_t layer_count;
	struct usage_list trees;  /* by hex of the diff id */
	struct usage_list caches; /* by layers/cache.h's names */
	struct usage_list dirs;   /* of the data directory, and its files */
};

int usage_read(struct store *store, const struct cancel *cancel, struct usage *out, struct err *err)
	MUST_CHECK;
void usage_done(struct usage *usage);

static inline void auto_usage_release(struct usage *slot)
{
	usage_done(slot);
}
#define auto_usage AUTO(usage)
