/* SPDX-License-Identifier: Apache-2.0 */
/* job_publish.c - a job's image becomes known, and gets its names. */
#include "bake/agent_tag.h"
#include "bake/image.h"
#include "bake/job.h"
#include "bake/pushes.h"
#include "layers/base/clock.h"
#include "layers/draft.h"
#include "registry/tag.h"

#include <inttypes.h>
#include <stdio.h>

/* The steps' keys, in order; the caller frees them. */
static int publish_read_keys(const json_t *value, struct digest **out, size_t *out_count,
			     struct err *err)
{
	auto_free struct digest *keys = NULL;
	json_t *list;

	if (json_need_array(value, "", "keys", &list, err) < 0)
		return -1;
	keys = calloc(json_array_size(list) + 1, sizeof(*keys));
	if (!keys)
		abort();
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *key = json_array_get(list, i);

		if (json_is_string(key) && digest_parse(json_str(key), &keys[i], err) < 0)
			return -1;
	}
	*out = steal_ptr(&keys);
	*out_count = json_array_size(list);
	return 0;
}

struct publication {
	struct meta *meta;
	const struct job_result *result;
	struct digest *keys; /* owned */
	size_t key_count;
};

static int publish_image_record(struct publication *publication, struct err *err)
{
	const struct job_result *result = publication->result;
	const json_t *value = result->document;
	struct image image = {
		.manifest = result->image,
		.size = result->size,
		.baked_ms = clock_now_ms(),
		.base_digest = result->base,
	};
	int64_t layers;

	if (json_need_int(value, "", "layers", &layers, err) < 0 ||
	    json_need_int(value, "", "createdMs", &image.created_ms, err) < 0 ||
	    json_need_string(value, "", "slug", &image.slug, err) < 0 ||
	    json_need_string(value, "", "baseText", &image.base, err) < 0)
		return -1;
	image.layers = (size_t)layers;
	if (image_put(publication->meta, &image, err) < 0)
		return -1;
	return image_put_steps(publication->meta, &image.manifest, publication->keys,
			       publication->key_count, err);
}

/* An image that is known keeps its record, which has the time of its first bake. */
static int publish_image_once(struct publication *publication, struct err *err)
{
	auto_image struct image known = {0};
	int found = image_find(publication->meta, &publication->result->image, &known, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	return publish_image_record(publication, err);
}

static int publish_drafts(struct publication *publication, const struct job_names *names,
			  struct err *err)
{
	const struct job_result *result = publication->result;

	if (!json_is_true(json_object_get(result->document, "rebake")))
		return 0;
	return draft_publish(publication->meta, str_of(result->bake_id), names->kept,
			     publication->keys, publication->key_count, err);
}

int job_format_name(struct str slug, uint64_t version, struct buf *out, struct err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, version);
	return agent_tag_format(slug, str_of(text), out, err);
}

int job_name_image(struct meta *meta, const struct digest *image, const struct platform *platform,
		   const struct job_names *names, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	const struct tag tag = {
		.target = *image,
		.manifest = *image,
		.platform = *platform,
		.at_ms = clock_now_ms(),
	};

	if (job_format_name(names->slug, names->version, &name, err) < 0 ||
	    tag_put(meta, buf_str(&name), &tag, err) < 0)
		return -1;
	if (!names->latest)
		return 0;
	buf_clear(&name);
	if (agent_tag_format(names->slug, STR("latest"), &name, err) < 0)
		return -1;
	return tag_put(meta, buf_str(&name), &tag, err);
}

int job_restore_steps(struct meta *meta, const struct digest *image, struct str kept,
		      struct err *err)
{
	auto_free struct digest *keys = NULL;
	size_t count;
	int found = image_find_steps(meta, image, &keys, &count, err);

	return found == 1 ? draft_restore(meta, kept, keys, count, err) : found;
}

static int publish_pushes(struct publication *publication, struct err *err)
{
	const struct job_result *result = publication->result;
	const json_t *reference;
	size_t i;

	json_array_foreach(result->pushes, i, reference)
	{
		if (pushes_put(publication->meta, json_str(reference), &result->image,
			       str_of(result->bake_id), clock_now_ms(), err) < 0)
			return -1;
	}
	return 0;
}

static int publish_all(struct publication *publication, const struct job_names *names,
		       struct err *err)
{
	const struct job_result *result = publication->result;
	struct platform platform;
	struct str text;

	if (json_need_string(result->document, "", "platform", &text, err) < 0 ||
	    platform_parse(text, &platform, err) < 0 ||
	    publish_read_keys(result->document, &publication->keys, &publication->key_count, err) <
		    0 ||
	    publish_image_once(publication, err) < 0 ||
	    publish_drafts(publication, names, err) < 0 || publish_pushes(publication, err) < 0)
		return -1;
	return job_name_image(publication->meta, &result->image, &platform, names, err);
}

int job_publish(struct meta *meta, const struct job_result *result, const struct job_names *names,
		struct err *err)
{
	struct publication publication = {.meta = meta, .result = result};
	int rc = publish_all(&publication, names, err);

	free(publication.keys);
	return rc < 0 ? err_ctx(err, "publish the image") : 0;
}
