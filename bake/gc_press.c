/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_press.c - while the store takes too much: what goes first is the cheapest
 * to make again, and of that what was not used for longest.
 *
 *	1 trees                         unpacked again from their blobs
 *	2 caches of RUN's mounts        downloaded again
 *	3 what a mirror keeps           fetched again, while its registry has it
 *	4 steps that no image needs     run again
 *	5 images without a tag          baked again
 */
#include "bake/gc_priv.h"
#include "layers/base/array.h"
#include "layers/cache.h"
#include "layers/disk.h"
#include "layers/punch.h"
#include "layers/tree.h"
#include "registry/document.h"
#include "registry/mirror_trim.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#define PRESS_ROUNDS_MAX 64 /* an eighth of what may go, or more, each time */

/* Something that can go alone. */
struct press_item {
	struct digest diff_id; /* of a tree */
	char name[CACHE_NAME_MAX];
	int64_t used_ms;
	uint64_t bytes;
};

struct press_list {
	struct press_item *at; /* owned */
	size_t count;
	uint64_t bytes; /* of all */
};

static int press_add(struct press_list *list, const struct press_item *item, struct err *err)
{
	if (array_make_room(&list->at, sizeof(*list->at), list->count, DIGEST_SET_MAX,
			    "trees or caches", err) < 0)
		return -1;
	list->at[list->count++] = *item;
	return 0;
}

static int press_item_compare(const void *a, const void *b)
{
	const struct press_item *left = a;
	const struct press_item *right = b;

	return memcmp(&left->diff_id, &right->diff_id, sizeof(left->diff_id));
}

static int press_cache(void *ctx, const struct cache_info *info, struct err *err)
{
	struct press_list *list = ctx;
	struct press_item item = {.used_ms = info->used_ms, .bytes = info->bytes};

	(void)snprintf(item.name, sizeof(item.name), "%s", info->name);
	list->bytes += item.bytes;
	return info->in_use ? 0 : press_add(list, &item, err);
}

static int press_oldest_first(const void *a, const void *b)
{
	const struct press_item *left = a;
	const struct press_item *right = b;

	return (left->used_ms > right->used_ms) - (left->used_ms < right->used_ms);
}

static void press_sort(struct press_list *list)
{
	if (list->count > 0)
		qsort(list->at, list->count, sizeof(*list->at), press_oldest_first);
}

struct press {
	const struct gc_options *options;
	struct gc_result *result;
	struct press_list on_disk; /* trees, by diff id */
	struct press_list trees;   /* those that have a record */
	struct press_list caches;
	uint64_t others; /* bytes of what neither is one of these nor a database */
	uint64_t excess; /* bytes that have to go, yet */
};

/* The data directory, but what is in the trash. */
static int press_entry(void *ctx, const struct disk_entry *entry, struct err *err)
{
	struct press *press = ctx;
	struct press_item item = {.bytes = entry->bytes};
	char text[DIGEST_TEXT_MAX];
	struct err none;

	if (strcmp(entry->dir, "trash") == 0)
		return 0;
	press->others += entry->bytes;
	(void)snprintf(text, sizeof(text), "sha256:%s", entry->name);
	if (strcmp(entry->dir, "trees") != 0 ||
	    digest_parse(str_of(text), &item.diff_id, &none) < 0)
		return 0;
	return press_add(&press->on_disk, &item, err);
}

static int press_tree(void *ctx, const struct digest *diff_id, int64_t at_ms, struct err *err)
{
	struct press *press = ctx;
	const struct press_list *on_disk = &press->on_disk;
	struct press_item item = {.diff_id = *diff_id, .used_ms = at_ms};
	const struct press_item *found = on_disk->count > 0
						 ? bsearch(&item, on_disk->at, on_disk->count,
							   sizeof(*on_disk->at), press_item_compare)
						 : NULL;

	item.bytes = found ? found->bytes : 0;
	press->trees.bytes += item.bytes;
	return press_add(&press->trees, &item, err);
}

static int press_read_disk(struct press *press, struct err *err)
{
	const struct gc_options *options = press->options;

	if (disk_each(options->store, options->cancel, press_entry, press, err) < 0)
		return -1;
	if (press->on_disk.count > 0)
		qsort(press->on_disk.at, press->on_disk.count, sizeof(*press->on_disk.at),
		      press_item_compare);
	return 0;
}

/* What is measured alone is no part of the others. */
static int press_set_apart(struct press *press, struct err *err)
{
	struct punch_account account;
	uint64_t apart;

	if (punch_measure(press->options->store, &account, err) < 0)
		return -1;
	apart = account.disk_bytes + press->trees.bytes + press->caches.bytes;
	press->others -= apart < press->others ? apart : press->others;
	return 0;
}

static int press_read(struct press *press, struct err *err)
{
	struct store *store = press->options->store;
	AUTO(meta) struct meta *meta = NULL;

	if (press_read_disk(press, err) < 0 || meta_begin(store, META_READ, &meta, err) < 0 ||
	    tree_each(meta, press_tree, press, err) < 0 ||
	    cache_each(store, true, press_cache, &press->caches, err) < 0)
		return -1;
	press_sort(&press->trees);
	press_sort(&press->caches);
	return press_set_apart(press, err);
}

static int press_measure(struct press *press, struct err *err)
{
	const struct gc_policy *policy = &press->options->policy;
	struct store *store = press->options->store;
	struct punch_account account;
	struct statvfs fs;
	uint64_t used;
	uint64_t unused;

	if (punch_measure(store, &account, err) < 0)
		return -1;
	if (fstatvfs(store_dirfd(store, STORE_ROOT), &fs) < 0)
		return err_os(err, errno, "look at the file system of %s", store_path(store));
	used = account.disk_bytes + press->trees.bytes + press->caches.bytes + press->others;
	unused = (uint64_t)fs.f_bavail * fs.f_frsize;
	press->excess = used > policy->max_bytes ? used - policy->max_bytes : 0;
	if (unused < policy->min_free_bytes && policy->min_free_bytes - unused > press->excess)
		press->excess = policy->min_free_bytes - unused;
	return 0;
}

/* Count what was removed, and how much of the excess is left. */
static void press_count(struct press *press, struct press_list *list, uint64_t bytes)
{
	list->bytes -= bytes < list->bytes ? bytes : list->bytes;
	press->excess -= bytes < press->excess ? bytes : press->excess;
}

/* Empty the trash, since a record's commit needs room, too. */
static int press_one_tree(struct press *press, struct collector *collector,
			  const struct digest *diff_id, struct err *err)
{
	uint64_t bytes;
	int removed = collect_tree(collector, diff_id, &bytes, err);

	if (removed < 0 && err->kind == ERR_FULL &&
	    store_sweep(press->options->store, press->options->cancel, err) == 0)
		removed = collect_tree(collector, diff_id, &bytes, err);
	if (removed < 0)
		return -1;
	press->result->collected.trees += removed == 1;
	press->result->collected.tree_bytes += bytes;
	press_count(press, &press->trees, bytes);
	return 0;
}

static int press_trees(struct press *press, struct err *err)
{
	const struct collect_options options = {.names = document_names,
						.cancel = press->options->cancel,
						.dry_run = press->options->dry_run};
	AUTO(collector) struct collector *collector = NULL;

	if (collect_open(press->options->store, &options, &collector, err) < 0)
		return -1;
	for (size_t i = 0; press->excess > 0 && i < press->trees.count; i++) {
		if (press_one_tree(press, collector, &press->trees.at[i].diff_id, err) < 0)
			return -1;
	}
	return press->options->dry_run
		       ? 0
		       : store_sweep(press->options->store, press->options->cancel, err);
}

static int press_caches(struct press *press, struct err *err)
{
	for (size_t i = 0; press->excess > 0 && i < press->caches.count; i++) {
		const struct press_item *item = &press->caches.at[i];
		int removed = press->options->dry_run
				      ? 1
				      : cache_remove(press->options->store, item->name, err);

		if (removed < 0)
			return -1;
		if (removed == 0)
			continue;
		press->result->caches++;
		press->result->cache_bytes += item->bytes;
		press_count(press, &press->caches, item->bytes);
	}
	return 0;
}

/* Who reads it has a lease. What is shared with others gives nothing: then more of it goes. */
static int press_mirrored(struct press *press, struct err *err)
{
	const struct gc_options *options = press->options;
	const struct mirror_trim_spec trim = {
		.store = options->store, .dry_run = options->dry_run, .cancel = options->cancel};

	for (int round = 0; press->excess > 0 && round < PRESS_ROUNDS_MAX; round++) {
		struct gc_options pass = *options;
		uint64_t bytes;

		if (mirror_trim_oldest(&trim, press->excess, &bytes, err) < 0)
			return -1;
		press->result->mirrored += bytes;
		if (bytes == 0)
			return 0;
		if (options->dry_run) {
			press->excess -= bytes < press->excess ? bytes : press->excess;
			return 0;
		}
		pass.policy = GC_POLICY_INIT;
		if (gc_pass(&pass, press->result, err) < 0 || press_measure(press, err) < 0)
			return -1;
	}
	return 0;
}

/* Remove records until the limits hold; what a pass gives back is known only afterwards. */
static int press_records(struct press *press, bool images, struct err *err)
{
	for (int round = 0; press->excess > 0 && round < PRESS_ROUNDS_MAX; round++) {
		struct gc_options pass = *press->options;
		uint64_t before = press->result->steps + press->result->images;

		pass.policy = GC_POLICY_INIT;
		pass.policy.steps_bytes = images ? 0 : press->excess;
		pass.policy.images_bytes = images ? press->excess : 0;
		if (gc_pass(&pass, press->result, err) < 0)
			return -1;
		if (press->options->dry_run ||
		    press->result->steps + press->result->images == before)
			return 0;
		if (press_measure(press, err) < 0)
			return -1;
	}
	return 0;
}

static int press_all(struct press *press, struct err *err)
{
	if (press_read(press, err) < 0 || press_measure(press, err) < 0)
		return -1;
	if (press->excess == 0)
		return 0;
	if (press_trees(press, err) < 0 || press_caches(press, err) < 0 ||
	    press_mirrored(press, err) < 0 || press_records(press, false, err) < 0)
		return -1;
	return press_records(press, true, err);
}

static void press_done(struct press *press)
{
	free(press->on_disk.at);
	free(press->trees.at);
	free(press->caches.at);
}

int gc_press(const struct gc_options *options, struct gc_result *result, struct err *err)
{
	struct press press = {.options = options, .result = result};
	int rc = press_all(&press, err);

	if (!options->dry_run) /* a dry run cannot tell what removing records would give */
		result->missing = press.excess;
	press_done(&press);
	return rc;
}

int gc_press_trees(const struct gc_options *options, uint64_t bytes, struct gc_result *result,
		   struct err *err)
{
	struct press press = {.options = options, .result = result, .excess = bytes};
	int rc = press_read(&press, err);

	if (rc == 0)
		rc = press_trees(&press, err);
	press_done(&press);
	return rc;
}
