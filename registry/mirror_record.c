/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_record.c - table `upstreams`: what they said that no digest names.
 *
 *	docker.io/library/alpine:3.19      {"v": 1, "name": "docker.io/library/alpine:3.19",
 *	                                    "digest": "sha256:..", "checkedAt": "2026-01-31T.."}
 *	docker.io/library/alpine?tags      {"v": 1, "name": .., "list": [..], "checkedAt": ..}
 *	docker.io/library/alpine?sha256:.. the same: the descriptors of what refers to it
 *
 * The key is the name, or its sha256 where LMDB would not take it whole.
 */
#include "registry/mirror_record_priv.h"

#include "layers/base/clock.h"
#include "layers/digest_json.h"
#include "registry/reference.h"
#include "registry/repository.h"

#define UPSTREAMS_TABLE "upstreams"
#define RECORD_NAME_MAX (REFERENCE_REPOSITORY_MAX + DIGEST_TEXT_MAX + 8)

struct record_key {
	struct buf name;
	char hashed[DIGEST_TEXT_MAX];
	struct str key;
};

static void auto_record_key_release(struct record_key *slot)
{
	buf_done(&slot->name);
}

static int mirror_record_key(const char *place, char separator, struct str what,
			     struct record_key *out, struct err *err)
{
	struct digest digest;

	out->name = BUF_INIT(RECORD_NAME_MAX);
	if (buf_addf(&out->name, err, "%s%c" STR_FMT, place, separator, STR_ARG(what)) < 0)
		return -1;
	out->key = buf_str(&out->name);
	if (out->name.len <= META_KEY_MAX)
		return 0;
	digest_of(buf_str(&out->name), &digest);
	out->key = str_of(digest_format(&digest, out->hashed));
	return 0;
}

static int mirror_record_read_time(const json_t *record, int64_t *out_ms, struct err *err)
{
	struct str at;

	if (json_need_string(record, "", "checkedAt", &at, err) < 0)
		return -1;
	return clock_parse(at, out_ms, err);
}

static int mirror_record_find(struct meta *meta, const char *place, char separator, struct str what,
			      json_t **out, struct err *err)
{
	AUTO(record_key) struct record_key key = {.name = BUF_INIT(RECORD_NAME_MAX)};

	if (mirror_record_key(place, separator, what, &key, err) < 0)
		return -1;
	return meta_get(meta, UPSTREAMS_TABLE, key.key, out, err);
}

/* With its name and time. record is the caller's still. */
static int mirror_record_put(struct meta *meta, const char *place, char separator, struct str what,
			     json_t *record, int64_t at_ms, struct err *err)
{
	AUTO(record_key) struct record_key key = {.name = BUF_INIT(RECORD_NAME_MAX)};
	char at[CLOCK_TEXT_MAX];

	if (mirror_record_key(place, separator, what, &key, err) < 0)
		return -1;
	json_set_int(record, "v", 1);
	json_set(record, "name", json_from_str(buf_str(&key.name)));
	json_set_text(record, "checkedAt", clock_format(at_ms, at));
	return meta_put(meta, UPSTREAMS_TABLE, key.key, record, err);
}

static json_t *mirror_record_new(void)
{
	json_t *record = json_object();

	if (!record)
		abort();
	return record;
}

int mirror_record_find_tag(struct meta *meta, const char *place, struct str tag,
			   struct mirror_tag *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	int found = mirror_record_find(meta, place, ':', tag, &record, err);

	if (found <= 0)
		return found;
	if (digest_json_need(record, "", "digest", &out->digest, err) < 0 ||
	    mirror_record_read_time(record, &out->checked_ms, err) < 0)
		return err_ctx(err, UPSTREAMS_TABLE);
	return 1;
}

int mirror_record_put_tag(struct meta *meta, const char *place, struct str tag,
			  const struct mirror_tag *value, struct err *err)
{
	AUTO(json) json_t *record = mirror_record_new();

	digest_json_set(record, "digest", &value->digest);
	return mirror_record_put(meta, place, ':', tag, record, value->checked_ms, err);
}

int mirror_record_del_tag(struct meta *meta, const char *place, struct str tag, struct err *err)
{
	AUTO(record_key) struct record_key key = {.name = BUF_INIT(RECORD_NAME_MAX)};

	if (mirror_record_key(place, ':', tag, &key, err) < 0)
		return -1;
	return meta_del(meta, UPSTREAMS_TABLE, key.key, err);
}

struct record_tags {
	size_t prefix; /* bytes of a key in front of its tag */
	json_t *names;
};

static int mirror_record_add_tag(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct record_tags *tags = ctx;

	(void)value, (void)err; /* the shape of meta_each_fn */
	if (json_array_append_new(tags->names, json_from_str(str_skip(key, tags->prefix))) < 0)
		abort();
	return 0;
}

int mirror_record_list_tags(struct meta *meta, const char *place, json_t **out, struct err *err)
{
	AUTO(record_key) struct record_key key = {.name = BUF_INIT(RECORD_NAME_MAX)};
	AUTO(json) json_t *names = json_array();
	struct record_tags tags;

	if (!names)
		abort();
	if (mirror_record_key(place, ':', STR(""), &key, err) < 0)
		return -1;
	tags = (struct record_tags){key.key.len, names};
	if (meta_each(meta, UPSTREAMS_TABLE, key.key, mirror_record_add_tag, &tags, err) < 0)
		return -1;
	*out = steal_ptr(&names);
	return 0;
}

int mirror_record_find_list(struct meta *meta, const char *place, struct str what, json_t **out,
			    int64_t *out_ms, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	json_t *list;
	int found = mirror_record_find(meta, place, '?', what, &record, err);

	if (found <= 0)
		return found;
	if (json_need_array(record, "", "list", &list, err) < 0 ||
	    mirror_record_read_time(record, out_ms, err) < 0)
		return err_ctx(err, UPSTREAMS_TABLE);
	*out = json_incref(list);
	return 1;
}

int mirror_record_put_list(struct meta *meta, const char *place, struct str what, json_t *list,
			   int64_t at_ms, struct err *err)
{
	AUTO(json) json_t *record = mirror_record_new();

	json_set(record, "list", json_incref(list));
	return mirror_record_put(meta, place, '?', what, record, at_ms, err);
}

/* Old records */

struct record_forgetting {
	struct meta *meta;
	int64_t before_ms;
	size_t left; /* so many records may be removed still */
};

/* What a tag stands for is known as long as it is here: it may be all that is left of it. */
static int mirror_record_is_held(struct meta *meta, struct str name, const json_t *record,
				 struct err *err)
{
	const char *colon = memrchr(name.ptr, ':', name.len);
	struct repository_item item;
	struct digest digest;
	struct str repository;

	if (!colon || digest_json_need(record, "", "digest", &digest, err) < 0)
		return 0; /* a list */
	repository = (struct str){name.ptr, (size_t)(colon - name.ptr)};
	return repository_find(meta, repository, REPOSITORY_MANIFEST, &digest, &item, err);
}

static int mirror_record_forget_one(void *ctx, struct str key, const json_t *record,
				    struct err *err)
{
	struct record_forgetting *forgetting = ctx;
	struct str name;
	int64_t at_ms;
	int held;

	if (forgetting->left == 0)
		return 1;
	if (mirror_record_read_time(record, &at_ms, err) < 0 ||
	    json_need_string(record, "", "name", &name, err) < 0)
		return err_ctx(err, UPSTREAMS_TABLE);
	if (at_ms >= forgetting->before_ms)
		return 0;
	held = mirror_record_is_held(forgetting->meta, name, record, err);
	if (held != 0)
		return held < 0 ? -1 : 0;
	forgetting->left--;
	return meta_del(forgetting->meta, UPSTREAMS_TABLE, key, err) < 0 ? -1 : 0;
}

int mirror_record_forget(struct meta *meta, int64_t before_ms, size_t max, struct err *err)
{
	struct record_forgetting forgetting = {meta, before_ms, max};

	if (meta_each(meta, UPSTREAMS_TABLE, STR(""), mirror_record_forget_one, &forgetting, err) <
	    0)
		return -1;
	return (int)(max - forgetting.left);
}
