/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/image.h"

#include "layers/base/clock.h"
#include "layers/digest_json.h"

#include <stdio.h>

#define IMAGES "images"
#define IMAGE_STEPS "images.steps"

static int image_parse(struct str key, const json_t *record, struct image *out, struct err *err)
{
	struct image image = {0};
	struct str created;
	struct str baked;
	struct str base_digest = {0};
	int64_t size;
	int64_t layers;

	if (digest_parse(key, &image.manifest, err) < 0 ||
	    json_get_string(record, "", "baseDigest", &base_digest, err) < 0 ||
	    (base_digest.ptr && digest_parse(base_digest, &image.base_digest, err) < 0) ||
	    json_need_int(record, "", "sizeBytes", &size, err) < 0 ||
	    json_need_int(record, "", "layers", &layers, err) < 0 ||
	    json_need_string(record, "", "createdAt", &created, err) < 0 ||
	    json_need_string(record, "", "bakedAt", &baked, err) < 0 ||
	    json_need_string(record, "", "slug", &image.slug, err) < 0 ||
	    json_need_string(record, "", "base", &image.base, err) < 0 ||
	    clock_parse(created, &image.created_ms, err) < 0 ||
	    clock_parse(baked, &image.baked_ms, err) < 0)
		return err_ctx(err, "record of image " STR_FMT, STR_ARG(key));
	image.size = (uint64_t)size;
	image.layers = (size_t)layers;
	*out = image;
	return 0;
}

int image_find(struct meta *meta, const struct digest *manifest, struct image *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char text[DIGEST_TEXT_MAX];
	struct str key = str_of(digest_format(manifest, text));
	int found = meta_get(meta, IMAGES, key, &record, err);

	if (found != 1)
		return found;
	if (image_parse(key, record, out, err) < 0)
		return -1;
	out->record = steal_ptr(&record);
	return 1;
}

int image_put(struct meta *meta, const struct image *image, struct err *err)
{
	static const struct digest none;
	AUTO(json) json_t *record = json_object();
	char text[DIGEST_TEXT_MAX];
	char when[CLOCK_TEXT_MAX];

	json_set_int(record, "v", 1);
	json_set_size(record, "sizeBytes", image->size);
	json_set_size(record, "layers", image->layers);
	json_set_text(record, "createdAt", clock_format(image->created_ms, when));
	json_set_text(record, "bakedAt", clock_format(image->baked_ms, when));
	(void)json_object_set_new(record, "slug", json_from_str(image->slug));
	(void)json_object_set_new(record, "base", json_from_str(image->base));
	if (!digest_equal(&image->base_digest, &none))
		digest_json_set(record, "baseDigest", &image->base_digest);
	return meta_put(meta, IMAGES, str_of(digest_format(&image->manifest, text)), record, err);
}

int image_remove(struct meta *meta, const struct digest *manifest, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct str key = str_of(digest_format(manifest, text));

	if (meta_del(meta, IMAGE_STEPS, key, err) < 0)
		return -1;
	return meta_del(meta, IMAGES, key, err);
}

static int image_parse_steps(const json_t *list, struct digest *out, struct err *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *key = json_array_get(list, i);

		if (json_is_string(key) && digest_parse(json_str(key), &out[i], err) < 0)
			return err_ctx(err, "steps of an image");
	}
	return 0;
}

int image_find_steps(struct meta *meta, const struct digest *manifest, struct digest **out,
		     size_t *out_count, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	auto_free struct digest *keys = NULL;
	char text[DIGEST_TEXT_MAX];
	json_t *list;
	int found =
		meta_get(meta, IMAGE_STEPS, str_of(digest_format(manifest, text)), &record, err);

	if (found != 1)
		return found;
	if (json_need_array(record, IMAGE_STEPS, "keys", &list, err) < 0)
		return -1;
	keys = calloc(json_array_size(list) + 1, sizeof(*keys));
	if (!keys)
		abort();
	if (image_parse_steps(list, keys, err) < 0)
		return -1;
	*out = steal_ptr(&keys);
	*out_count = json_array_size(list);
	return 1;
}

int image_put_steps(struct meta *meta, const struct digest *manifest, const struct digest *keys,
		    size_t count, struct err *err)
{
	static const struct digest none;
	AUTO(json) json_t *record = json_pack("{s:i, s:[]}", "v", 1, "keys");
	char text[DIGEST_TEXT_MAX];

	if (!record)
		abort();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(json_object_get(record, "keys"),
					    digest_equal(&keys[i], &none)
						    ? json_null()
						    : json_string(digest_format(&keys[i], text)));
	return meta_put(meta, IMAGE_STEPS, str_of(digest_format(manifest, text)), record, err);
}

struct image_walk {
	image_each_fn *fn;
	void *ctx;
};

static int image_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct image_walk *walk = ctx;
	struct image image;

	if (image_parse(key, value, &image, err) < 0)
		return -1;
	return walk->fn(walk->ctx, &image, err);
}

int image_each(struct meta *meta, image_each_fn *fn, void *ctx, struct err *err)
{
	struct image_walk walk = {fn, ctx};

	return meta_each(meta, IMAGES, STR(""), image_visit, &walk, err);
}

void image_done(struct image *image)
{
	json_decref(image->record);
	*image = (struct image){0};
}
