/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tagging.h"

#include "layers/base/array.h"
#include "layers/blob.h"
#include "registry/holding.h"
#include "registry/image_config.h"
#include "registry/manifest_priv.h"

#include <stdio.h>

bool tagging_is_opaque(const struct tag *tag)
{
	return strcmp(tag->platform.os, TAGGING_NO_PLATFORM) == 0;
}

static bool tagging_has(const struct tagging *tagging, const struct platform *platform)
{
	for (size_t i = 0; i < tagging->count; i++) {
		const struct platform *its = &tagging->at[i].platform;

		if (strcmp(its->os, platform->os) == 0 &&
		    strcmp(its->architecture, platform->architecture) == 0 &&
		    strcmp(its->variant, platform->variant) == 0)
			return true;
	}
	return false;
}

static void tagging_add(struct tagging *tagging, const struct tag *tag)
{
	tagging->at = array_grow(tagging->at, tagging->count, sizeof(*tagging->at));
	tagging->at[tagging->count++] = *tag;
}

/* An image's platform by its config: 1, 0 it is no image, -1. */
static int tagging_read_platform(struct store *store, const struct descriptor *config,
				 struct platform *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_image_config struct image_config image = {0};
	struct err none;

	if (!manifest_is_config(config->media_type) || config->size > IMAGE_CONFIG_MAX)
		return 0;
	if (blob_read_all(store, &config->digest, &text, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : -1;
	if (image_config_parse(buf_str(&text), &image, &none) < 0 || !image.platform.os[0])
		return 0;
	*out = image.platform;
	return 1;
}

/* Where entries of an index are looked for. */
struct tagging_place {
	struct store *store;
	struct str repository; /* "" for any */
};

/* 1 and the sha256 of a manifest that is there, 0, -1. */
static int tagging_find(const struct tagging_place *place, const struct digest *digest,
			struct digest *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item held;
	int found;

	if (place->repository.len > 0) {
		if (meta_begin(place->store, META_READ, &meta, err) < 0)
			return -1;
		found = repository_find(meta, place->repository, REPOSITORY_MANIFEST, digest, &held,
					err);
		if (found <= 0)
			return found;
	}
	return blob_find_id(place->store, digest, out, err);
}

/* Of an index, one that is here and says for what. */
static int tagging_add_entry(const struct tagging_place *place, const json_t *value,
			     const struct descriptor *entry, struct tag *tag,
			     struct tagging *tagging, struct err *err)
{
	struct platform platform = {.os = ""};
	struct err none;
	int found;

	if (manifest_entry_platform(value, &platform, &none) != 1 ||
	    strcmp(platform.os, TAGGING_NO_PLATFORM) == 0 || tagging_has(tagging, &platform))
		return 0;
	found = tagging_find(place, &entry->digest, &tag->manifest, err);
	if (found != 1)
		return found;
	tag->platform = platform;
	tagging_add(tagging, tag);
	return 0;
}

static int tagging_add_index(const struct tagging_place *place, const struct outline *outline,
			     struct tag *tag, struct tagging *tagging, struct err *err)
{
	const json_t *list = json_object_get(outline->document, "manifests");

	for (size_t i = 0; i < outline->count && tagging->count < TAGGING_PLATFORMS_MAX; i++) {
		if (tagging_add_entry(place, json_array_get(list, i), &outline->items[i].what, tag,
				      tagging, err) < 0)
			return -1;
	}
	return 0;
}

static int tagging_add_manifest(struct store *store, const struct outline *outline, struct tag *tag,
				struct tagging *tagging, struct err *err)
{
	int found = tagging_read_platform(store, &outline->items[0].what, &tag->platform, err);

	if (found == 1)
		tagging_add(tagging, tag);
	return found < 0 ? -1 : 0;
}

int tagging_make(struct store *store, struct str repository, const struct repository_item *item,
		 const struct outline *outline, struct tagging *out, struct err *err)
{
	const struct tagging_place place = {store, repository};
	auto_tagging struct tagging tagging = {0};
	struct tag tag = {.target = item->blob, .manifest = item->blob, .at_ms = item->at_ms};
	int result;

	if (!digest_equal(&item->digest, &item->blob))
		tag.called = item->digest;
	result = outline->index ? tagging_add_index(&place, outline, &tag, &tagging, err)
				: tagging_add_manifest(store, outline, &tag, &tagging, err);
	if (result < 0)
		return -1;
	if (tagging.count == 0) {
		tag.manifest = item->blob;
		tag.platform = (struct platform){.os = TAGGING_NO_PLATFORM,
						 .architecture = TAGGING_NO_PLATFORM};
		tagging_add(&tagging, &tag);
	}
	*out = tagging;
	tagging = (struct tagging){0};
	return 0;
}

void tagging_done(struct tagging *tagging)
{
	free(tagging->at);
	*tagging = (struct tagging){0};
}

int tagging_put(struct meta *meta, struct str repository, struct str tag,
		const struct tagging *tagging, struct err *err)
{
	char reference[HOLDING_REFERENCE_MAX];

	if (!holding_join(repository, tag, reference))
		return err_set(err, ERR_INVALID, STR_FMT " is too long a name",
			       STR_ARG(repository));
	if (tag_del(meta, str_of(reference), err) < 0)
		return -1;
	for (size_t i = 0; i < tagging->count; i++) {
		if (tag_put_held(meta, str_of(reference), &tagging->at[i], err) < 0)
			return -1;
	}
	return 0;
}
