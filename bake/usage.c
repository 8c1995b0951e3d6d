/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/usage.h"

#include "bake/roots.h"
#include "layers/base/array.h"
#include "layers/cache.h"
#include "layers/disk.h"
#include "layers/proof.h"
#include "registry/document.h"

#include <stdio.h>

/* A name of an image, before those of one image are brought together. */
struct usage_name {
	struct digest manifest;
	char *name; /* owned; NULL once it was handed on */
	bool tagged;
};

/* A layer's blob, and its tar's name by the record of a step. */
struct usage_made {
	struct digest blob;
	struct digest diff_id;
};

struct usage_reading {
	struct account *account;
	struct meta *meta;
	struct usage *out;
	struct usage_name *names; /* owned */
	size_t name_count;
	struct usage_made *made; /* owned */
	size_t made_count;
};

static int reading_add_name(struct usage_reading *reading, const struct root *root, struct err *err)
{
	if (array_make_room(&reading->names, sizeof(*reading->names), reading->name_count,
			    USAGE_LIST_MAX, "names of images", err) < 0)
		return -1;
	reading->names[reading->name_count++] = (struct usage_name){
		.manifest = root->image,
		.name = str_dup(root->name),
		.tagged = root->kind == ROOT_TAG,
	};
	return 0;
}

static int reading_add_made(struct usage_reading *reading, const struct root *root, struct err *err)
{
	if (array_make_room(&reading->made, sizeof(*reading->made), reading->made_count,
			    USAGE_LIST_MAX, "steps", err) < 0)
		return -1;
	reading->made[reading->made_count++] = (struct usage_made){root->digest, root->diff_id};
	return 0;
}

static int reading_add_root(void *ctx, const struct root *root, struct err *err)
{
	static const enum account_class classes[] = {
		[ROOT_BASE] = ACCOUNT_OTHER,       [ROOT_DRAFT] = ACCOUNT_STEPS,
		[ROOT_TAG] = ACCOUNT_OTHER,        [ROOT_IMAGE] = ACCOUNT_OTHER,
		[ROOT_STEP] = ACCOUNT_STEPS,       [ROOT_LOG] = ACCOUNT_LOGS,
		[ROOT_CONTEXT] = ACCOUNT_CONTEXTS, [ROOT_VARIANT] = ACCOUNT_OTHER,
		[ROOT_HELD] = ACCOUNT_OTHER,
	};
	static const struct digest none;
	struct usage_reading *reading = ctx;

	if ((root->kind == ROOT_TAG || root->kind == ROOT_IMAGE) &&
	    reading_add_name(reading, root, err) < 0)
		return -1;
	if ((root->kind == ROOT_STEP || root->kind == ROOT_VARIANT ||
	     (root->kind == ROOT_DRAFT && !digest_equal(&root->diff_id, &none))) &&
	    reading_add_made(reading, root, err) < 0)
		return -1;
	return account_claim(reading->account, classes[root->kind], &root->digest, err);
}

static int usage_made_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct digest));
}

/* 1 and the diff id, 0 it is no layer, or one that nobody unpacked, -1. */
static int reading_find_diff_id(const struct usage_reading *reading, const struct digest *blob,
				struct digest *out, struct err *err)
{
	const struct usage_made *made = reading->made_count > 0
						? bsearch(blob, reading->made, reading->made_count,
							  sizeof(*made), usage_made_compare)
						: NULL;

	if (!made)
		return proof_find(reading->meta, blob, DIGEST_SHA256, out, err);
	*out = made->diff_id;
	return 1;
}

/* By manifest; of one image its tags first, by name. */
static int usage_name_compare(const void *a, const void *b)
{
	const struct usage_name *left = a;
	const struct usage_name *right = b;
	int order = memcmp(&left->manifest, &right->manifest, sizeof(left->manifest));

	if (order == 0)
		order = right->tagged - left->tagged;
	return order ? order : strcmp(left->name, right->name);
}

/* Add the image of the first name, with all of its names; returns how many there are. */
static size_t reading_add_image(struct usage_reading *reading, struct usage_name *names,
				size_t left)
{
	struct usage *out = reading->out;
	struct usage_image image = {.manifest = names->manifest, .tagged = names->tagged};
	size_t same = 0;

	for (; same < left && digest_equal(&names[same].manifest, &names->manifest); same++) {
		if (same > 0 && names[same].tagged < names->tagged)
			continue; /* a slug, beside tags */
		image.names = array_grow(image.names, image.name_count, sizeof(*image.names));
		image.names[image.name_count++] = steal_ptr(&names[same].name);
	}
	out->images = array_grow(out->images, out->image_count, sizeof(*out->images));
	out->images[out->image_count++] = image;
	return same;
}

static int reading_add_images(struct usage_reading *reading, struct err *err)
{
	if (reading->name_count > 0)
		qsort(reading->names, reading->name_count, sizeof(*reading->names),
		      usage_name_compare);
	for (size_t i = 0; i < reading->name_count;) {
		const struct digest *manifest = &reading->names[i].manifest;

		if (account_image(reading->account, manifest, err) < 0)
			return -1;
		i += reading_add_image(reading, &reading->names[i], reading->name_count - i);
	}
	return 0;
}

static uint64_t usage_tree_bytes(const struct usage *usage, const struct digest *diff_id);

static int reading_add_layer(void *ctx, const struct account_blob *blob, struct err *err)
{
	struct usage_reading *reading = ctx;
	struct usage *out = reading->out;
	struct usage_layer layer = {
		.blob = blob->digest, .bytes = blob->size, .images = blob->images};
	int found = reading_find_diff_id(reading, &blob->digest, &layer.diff_id, err);

	if (found <= 0)
		return found;
	layer.tree_bytes = usage_tree_bytes(out, &layer.diff_id);
	if (array_make_room(&out->layers, sizeof(layer), out->layer_count, USAGE_LIST_MAX, "layers",
			    err) < 0)
		return -1;
	out->layers[out->layer_count++] = layer;
	return 0;
}

static int reading_settle(struct usage_reading *reading, struct err *err)
{
	struct usage *out = reading->out;

	if (roots_each(reading->meta, reading_add_root, reading, err) < 0 ||
	    reading_add_images(reading, err) < 0)
		return -1;
	if (reading->made_count > 0)
		qsort(reading->made, reading->made_count, sizeof(*reading->made),
		      usage_made_compare);
	if (account_settle(reading->account, reading_add_layer, reading, &out->totals, err) < 0)
		return -1;
	for (size_t i = 0; i < out->image_count; i++) {
		const struct account_image *found = account_of(reading->account, i);

		out->images[i].bytes = found->bytes;
		out->images[i].unique = found->unique;
	}
	return 0;
}

static int usage_read_records(struct store *store, struct usage *out, struct err *err)
{
	AUTO(account) struct account *account = NULL;
	AUTO(meta) struct meta *meta = NULL;
	struct usage_reading reading = {.out = out};
	int result;

	/*
	 * Open the records' snapshot first: what they name is in the later
	 * snapshot of blobs, too.
	 */
	if (meta_begin(store, META_READ, &meta, err) < 0 ||
	    account_open(store, document_names, &account, err) < 0)
		return -1;
	reading.account = account;
	reading.meta = meta;
	result = reading_settle(&reading, err);
	for (size_t i = 0; i < reading.name_count; i++)
		free(reading.names[i].name);
	free(reading.names);
	free(reading.made);
	return result;
}

static int usage_list_add(struct usage_list *list, const char *name, uint64_t bytes,
			  struct err *err)
{
	list->bytes += bytes;
	if (!*name)
		return 0;
	if (array_make_room(&list->at, sizeof(*list->at), list->count, USAGE_LIST_MAX,
			    "entries of a directory", err) < 0)
		return -1;
	list->at[list->count++] =
		(struct usage_item){.name = str_dup(str_of(name)), .bytes = bytes};
	return 0;
}

/* Entries of one directory come one after the other. */
static int usage_add_dir(struct usage_list *dirs, const char *top, uint64_t bytes, struct err *err)
{
	struct usage_item *last = dirs->count > 0 ? &dirs->at[dirs->count - 1] : NULL;

	if (!last || strcmp(last->name, top) != 0)
		return usage_list_add(dirs, top, bytes, err);
	last->bytes += bytes;
	dirs->bytes += bytes;
	return 0;
}

static int usage_add_entry(void *ctx, const struct disk_entry *entry, struct err *err)
{
	struct usage *out = ctx;
	const char *named = *entry->dir ? entry->dir : entry->name;

	out->bytes += entry->bytes;
	if (strcmp(entry->dir, "trees") == 0 &&
	    usage_list_add(&out->trees, entry->name, entry->bytes, err) < 0)
		return -1;
	if (strcmp(entry->dir, "caches") == 0 &&
	    usage_list_add(&out->caches, entry->name, entry->bytes, err) < 0)
		return -1;
	return usage_add_dir(&out->dirs, *named ? named : ".", entry->bytes, err);
}

static int usage_label(void *ctx, const struct cache_info *info, struct err *err)
{
	struct usage_list *caches = ctx;

	(void)err;
	for (size_t i = 0; i < caches->count; i++) {
		struct usage_item *item = &caches->at[i];

		if (strcmp(item->name, info->name) != 0 || item->label)
			continue;
		if (asprintf(&item->label, STR_FMT " " STR_FMT, STR_ARG(info->id),
			     STR_ARG(info->platform)) < 0)
			abort();
	}
	return 0;
}

static int usage_by_name(const void *a, const void *b)
{
	return strcmp(((const struct usage_item *)a)->name, ((const struct usage_item *)b)->name);
}

static uint64_t usage_tree_bytes(const struct usage *usage, const struct digest *diff_id)
{
	char hex[DIGEST_HEX_MAX];
	struct usage_item wanted = {.name = hex};
	const struct usage_item *found;

	(void)digest_hex(diff_id, hex);
	if (usage->trees.count == 0)
		return 0;
	found = bsearch(&wanted, usage->trees.at, usage->trees.count, sizeof(wanted),
			usage_by_name);
	return found ? found->bytes : 0;
}

static int usage_largest_first(uint64_t left, uint64_t right)
{
	return (left < right) - (left > right);
}

static int usage_item_compare(const void *a, const void *b)
{
	int order = usage_largest_first(((const struct usage_item *)a)->bytes,
					((const struct usage_item *)b)->bytes);

	return order ? order : usage_by_name(a, b);
}

static int usage_image_compare(const void *a, const void *b)
{
	const struct usage_image *left = a;
	const struct usage_image *right = b;
	int order = usage_largest_first(left->unique, right->unique);

	if (order == 0)
		order = usage_largest_first(left->bytes, right->bytes);
	return order ? order : strcmp(left->names[0], right->names[0]);
}

static int usage_layer_compare(const void *a, const void *b)
{
	const struct usage_layer *left = a;
	const struct usage_layer *right = b;
	int order = usage_largest_first(left->bytes + left->tree_bytes,
					right->bytes + right->tree_bytes);

	return order ? order : memcmp(&left->blob, &right->blob, sizeof(left->blob));
}

static void usage_sort_list(struct usage_list *list, int (*compare)(const void *a, const void *b))
{
	if (list->count > 0)
		qsort(list->at, list->count, sizeof(*list->at), compare);
}

static void usage_sort(struct usage *usage)
{
	usage_sort_list(&usage->trees, usage_item_compare);
	usage_sort_list(&usage->caches, usage_item_compare);
	usage_sort_list(&usage->dirs, usage_item_compare);
	if (usage->image_count > 0)
		qsort(usage->images, usage->image_count, sizeof(*usage->images),
		      usage_image_compare);
	if (usage->layer_count > 0)
		qsort(usage->layers, usage->layer_count, sizeof(*usage->layers),
		      usage_layer_compare);
}

int usage_read(struct store *store, const struct cancel *cancel, struct usage *out, struct err *err)
{
	auto_usage struct usage usage = {0};

	if (disk_each(store, cancel, usage_add_entry, &usage, err) < 0 ||
	    cache_each(store, false, usage_label, &usage.caches, err) < 0 ||
	    punch_measure(store, &usage.databases, err) < 0)
		return -1;
	usage_sort_list(&usage.trees, usage_by_name);
	if (usage_read_records(store, &usage, err) < 0)
		return -1;
	usage_sort(&usage);
	*out = usage;
	usage = (struct usage){0};
	return 0;
}

static void usage_list_done(struct usage_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->at[i].name);
		free(list->at[i].label);
	}
	free(list->at);
}

void usage_done(struct usage *usage)
{
	for (size_t i = 0; i < usage->image_count; i++) {
		for (size_t k = 0; k < usage->images[i].name_count; k++)
			free(usage->images[i].names[k]);
		free(usage->images[i].names);
	}
	free(usage->images);
	free(usage->layers);
	usage_list_done(&usage->trees);
	usage_list_done(&usage->caches);
	usage_list_done(&usage->dirs);
	*usage = (struct usage){0};
}
