/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.c - table `tags`: one record a reference, one image a platform in it.
 *
 *	{"v": 1, "reference": "docker.io/library/debian:bookworm", "images": [
 *	  {"platform": "linux/amd64", "target": "sha256:..", "manifest": "sha256:..",
 *	   "pulled": true, "taggedAt": "2026-01-31T12:00:00.000Z"}]}
 *
 * "called" is there where a registry calls the target by another digest,
 * "madeOf" where the image is the gzip variant of another tag's.
 * The key is the reference, or its sha256 where LMDB would not take it whole.
 */
#include "registry/tag_priv.h"

#include "layers/base/clock.h"
#include "layers/digest_json.h"
#include "registry/holding.h"

#include <stdio.h>

#define TAG_IMAGES_MAX 100 /* platforms of one reference */

static struct str tag_key(struct str reference, char hashed[static DIGEST_TEXT_MAX])
{
	struct digest digest;

	if (reference.len <= META_KEY_MAX)
		return reference;
	digest_of(reference, &digest);
	return str_of(digest_format(&digest, hashed));
}

static bool tag_has(const struct digest *digest)
{
	static const struct digest none;

	return !digest_equal(digest, &none);
}

static bool tag_is_called(const struct tag *tag)
{
	return tag_has(&tag->called);
}

bool tag_is_made(const struct tag *tag)
{
	return tag_has(&tag->made_of);
}

const struct digest *tag_digest(const struct tag *tag)
{
	return tag_is_called(tag) ? &tag->called : &tag->target;
}

static int tag_read(const json_t *value, struct tag *out, struct err *err)
{
	struct tag tag = {0};
	struct str platform;
	struct str at;

	if (json_need_string(value, "images", "platform", &platform, err) < 0 ||
	    platform_parse(platform, &tag.platform, err) < 0 ||
	    digest_json_need(value, "images", "target", &tag.target, err) < 0 ||
	    digest_json_need(value, "images", "manifest", &tag.manifest, err) < 0 ||
	    json_get_bool(value, "images", "pulled", &tag.pulled, err) < 0 ||
	    json_need_string(value, "images", "taggedAt", &at, err) < 0 ||
	    clock_parse(at, &tag.at_ms, err) < 0)
		return -1;
	if (json_object_get(value, "called") &&
	    digest_json_need(value, "images", "called", &tag.called, err) < 0)
		return -1;
	if (json_object_get(value, "madeOf") &&
	    digest_json_need(value, "images", "madeOf", &tag.made_of, err) < 0)
		return -1;
	*out = tag;
	return 0;
}

int tag_each_image(const json_t *record, tag_each_fn *fn, void *ctx, struct err *err)
{
	struct str reference = STR("");
	struct err why = {0};
	json_t *images;
	json_t *value;
	size_t at;

	if (json_need_string(record, "", "reference", &reference, &why) < 0 ||
	    json_need_array(record, "", "images", &images, &why) < 0)
		return err_set(err, ERR_CORRUPT, "tags: %s", why.text);
	json_array_foreach(images, at, value)
	{
		struct tag tag;
		int result;

		if (tag_read(value, &tag, &why) < 0)
			return err_set(err, ERR_CORRUPT, "tags: " STR_FMT ": %s",
				       STR_ARG(reference), why.text);
		result = fn(ctx, reference, &tag, err);
		if (result != 0)
			return result;
	}
	return 0;
}

/* The best match among the images of one reference. */
struct tag_match {
	const struct platform *wanted;
	struct tag best;
	int rank; /* 0 while there is none */
};

static int tag_match_one(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct tag_match *match = ctx;
	int rank = platform_rank(match->wanted, &tag->platform);

	(void)reference, (void)err; /* the shape of tag_each_fn */
	if (rank > match->rank) {
		match->best = *tag;
		match->rank = rank;
	}
	return 0;
}

/* Call fn for each image of a reference; 0 where there are none. */
static int tag_each_of(struct meta *meta, struct str reference, tag_each_fn *fn, void *ctx,
		       struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char hashed[DIGEST_TEXT_MAX];
	int found = meta_get(meta, TAG_TABLE, tag_key(reference, hashed), &record, err);

	return found == 1 ? tag_each_image(record, fn, ctx, err) : found;
}

int tag_find(struct meta *meta, struct str reference, const struct platform *platform,
	     struct tag *out, struct err *err)
{
	struct tag_match match = {.wanted = platform};

	if (tag_each_of(meta, reference, tag_match_one, &match, err) < 0)
		return -1;
	if (match.rank == 0)
		return 0;
	*out = match.best;
	return 1;
}

/* The newest among them. */
struct tag_newest {
	struct tag tag;
	size_t count; /* of all */
};

static int tag_newest_one(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct tag_newest *newest = ctx;

	(void)reference, (void)err; /* the shape of tag_each_fn */
	if (newest->count++ == 0 || tag->at_ms > newest->tag.at_ms)
		newest->tag = *tag;
	return 0;
}

int tag_find_only(struct meta *meta, struct str reference, struct tag *out, struct err *err)
{
	struct tag_newest newest = {0};

	if (tag_each_of(meta, reference, tag_newest_one, &newest, err) < 0)
		return -1;
	if (newest.count != 1)
		return 0;
	*out = newest.tag;
	return 1;
}

int tag_find_newest(struct meta *meta, struct str reference, struct tag *out, struct err *err)
{
	struct tag_newest newest = {0};

	if (tag_each_of(meta, reference, tag_newest_one, &newest, err) < 0)
		return -1;
	if (newest.count == 0)
		return 0;
	*out = newest.tag;
	return 1;
}

static json_t *tag_record_new(struct str reference)
{
	json_t *record = json_pack("{s:i, s:o, s:[]}", "v", 1, "reference",
				   json_from_str(reference), "images");

	if (!record)
		abort();
	return record;
}

static json_t *tag_value(const struct tag *tag)
{
	char platform[PLATFORM_TEXT_MAX];
	char target[DIGEST_TEXT_MAX];
	char manifest[DIGEST_TEXT_MAX];
	char at[CLOCK_TEXT_MAX];
	json_t *value = json_pack("{s:s, s:s, s:s, s:b, s:s}", "platform",
				  platform_format(&tag->platform, platform), "target",
				  digest_format(&tag->target, target), "manifest",
				  digest_format(&tag->manifest, manifest), "pulled", tag->pulled,
				  "taggedAt", clock_format(tag->at_ms, at));

	if (!value)
		abort();
	if (tag_is_called(tag))
		digest_json_set(value, "called", &tag->called);
	if (tag_is_made(tag))
		digest_json_set(value, "madeOf", &tag->made_of);
	return value;
}

/* The image of the same platform is updated (unknown members stay), or one is added. */
static int tag_merge(json_t *images, const struct tag *tag, struct err *err)
{
	AUTO(json) json_t *fresh = tag_value(tag);
	struct str platform = json_str(json_object_get(fresh, "platform"));
	json_t *old;
	size_t at;

	json_array_foreach(images, at, old)
	{
		const json_t *its = json_object_get(old, "platform");

		if (!json_is_string(its) || !str_equal(json_str(its), platform))
			continue;
		(void)json_object_del(old, "called");
		(void)json_object_del(old, "madeOf");
		return json_object_update(old, fresh) < 0
			       ? err_set(err, ERR_CORRUPT, "tags: an image is not an object")
			       : 0;
	}
	if (json_array_size(images) >= TAG_IMAGES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d platforms of one reference",
			       TAG_IMAGES_MAX);
	if (json_array_append(images, fresh) < 0)
		abort();
	return 0;
}

/*
 * Delete the variant that was made of a tag of ours, unless it was made of this;
 * target is NULL for none.
 */
static int tag_drop_variant(struct meta *meta, struct str reference, const struct digest *target,
			    struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX + sizeof(TAG_GZIP_SUFFIX));
	char hashed[DIGEST_TEXT_MAX];
	struct str repository;
	struct str tag;
	struct tag variant;
	int found;

	if (!holding_split(reference, &repository, &tag))
		return 0;
	if (buf_addf(&name, err, STR_FMT TAG_GZIP_SUFFIX, STR_ARG(reference)) < 0)
		return -1;
	found = tag_find_newest(meta, buf_str(&name), &variant, err);
	if (found <= 0 || !tag_is_made(&variant) ||
	    (target && digest_equal(target, &variant.made_of)))
		return found < 0 ? -1 : 0;
	return meta_del(meta, TAG_TABLE, tag_key(buf_str(&name), hashed), err) < 0 ? -1 : 0;
}

int tag_put_held(struct meta *meta, struct str reference, const struct tag *tag, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	json_t *images;
	char hashed[DIGEST_TEXT_MAX];
	struct str name = tag_key(reference, hashed);
	int found = meta_get(meta, TAG_TABLE, name, &record, err);

	if (found < 0)
		return -1;
	if (found == 0)
		record = tag_record_new(reference);
	if (json_need_array(record, "", "images", &images, err) < 0 ||
	    tag_merge(images, tag, err) < 0 ||
	    tag_drop_variant(meta, reference, &tag->target, err) < 0)
		return -1;
	return meta_put(meta, TAG_TABLE, name, record, err);
}

int tag_hold(struct meta *meta, struct str reference, const struct digest *target, struct err *err)
{
	struct str repository;
	struct str tag;

	if (!holding_split(reference, &repository, &tag))
		return 0;
	return holding_put(meta, repository, target, err);
}

int tag_put(struct meta *meta, struct str reference, const struct tag *tag, struct err *err)
{
	if (tag_put_held(meta, reference, tag, err) < 0)
		return -1;
	return tag_hold(meta, reference, &tag->target, err);
}

int tag_set(struct store *store, struct str reference, const struct tag *tag, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct tag old;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = tag_find(meta, reference, &tag->platform, &old, err);
	if (found < 0)
		return -1;
	if (found == 1 && old.pulled == tag->pulled && digest_equal(&old.target, &tag->target) &&
	    digest_equal(&old.manifest, &tag->manifest))
		return 0;
	meta_abort(steal_ptr(&meta));
	if (meta_begin(store, META_WRITE, &meta, err) < 0 || tag_put(meta, reference, tag, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

int tag_del(struct meta *meta, struct str reference, struct err *err)
{
	char hashed[DIGEST_TEXT_MAX];

	if (tag_drop_variant(meta, reference, NULL, err) < 0)
		return -1;
	return meta_del(meta, TAG_TABLE, tag_key(reference, hashed), err);
}

/* Take those images out of a record; how many there were. */
static size_t tag_cut(json_t *images, const struct digest *digest)
{
	size_t count = 0;

	for (size_t at = json_array_size(images); at-- > 0;) {
		struct tag tag;
		struct err none;

		if (tag_read(json_array_get(images, at), &tag, &none) < 0 ||
		    !digest_equal(tag_digest(&tag), digest))
			continue;
		(void)json_array_remove(images, at);
		count++;
	}
	return count;
}

int tag_del_digest(struct meta *meta, struct str reference, const struct digest *digest,
		   struct err *err)
{
	AUTO(json) json_t *record = NULL;
	json_t *images;
	char hashed[DIGEST_TEXT_MAX];
	struct str name = tag_key(reference, hashed);
	int found = meta_get(meta, TAG_TABLE, name, &record, err);

	if (found <= 0)
		return found;
	if (json_need_array(record, "", "images", &images, err) < 0)
		return -1;
	if (tag_cut(images, digest) == 0)
		return 0;
	if (tag_drop_variant(meta, reference, NULL, err) < 0)
		return -1;
	if (json_array_size(images) == 0)
		return meta_del(meta, TAG_TABLE, name, err);
	return meta_put(meta, TAG_TABLE, name, record, err) < 0 ? -1 : 1;
}

struct tag_walk {
	tag_each_fn *fn;
	void *ctx;
};

static int tag_walk_record(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct tag_walk *walk = ctx;

	(void)key; /* the record holds the reference whole */
	return tag_each_image(value, walk->fn, walk->ctx, err);
}

int tag_each(struct meta *meta, tag_each_fn *fn, void *ctx, struct err *err)
{
	struct tag_walk walk = {fn, ctx};

	return meta_each(meta, TAG_TABLE, STR(""), tag_walk_record, &walk, err);
}

struct tag_names {
	size_t prefix; /* of each key */
	tag_name_fn *fn;
	void *ctx;
};

static int tag_names_one(void *ctx, struct str key, struct err *err)
{
	const struct tag_names *names = ctx;

	return names->fn(names->ctx, str_skip(key, names->prefix), err);
}

/* Keys of ours are short enough to be references themselves. */
int tag_each_name(struct meta *meta, struct str repository, struct str after, tag_name_fn *fn,
		  void *ctx, struct err *err)
{
	char prefix[HOLDING_REFERENCE_MAX];
	char start[HOLDING_REFERENCE_MAX];
	struct tag_names names = {.fn = fn, .ctx = ctx};

	(void)holding_join(repository, STR(""), prefix);
	(void)holding_join(repository, after, start); /* too long a one is cut */
	names.prefix = strlen(prefix);
	return meta_each_key(meta, TAG_TABLE, str_of(prefix),
			     after.len > 0 ? str_of(start) : STR(""), tag_names_one, &names, err);
}

int tag_each_in(struct meta *meta, struct str repository, tag_each_fn *fn, void *ctx,
		struct err *err)
{
	struct tag_walk walk = {fn, ctx};
	char prefix[HOLDING_REFERENCE_MAX];

	(void)holding_join(repository, STR(""), prefix);
	return meta_each(meta, TAG_TABLE, str_of(prefix), tag_walk_record, &walk, err);
}
