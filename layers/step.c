/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - three tables; digests are hex, without their algorithm.
 *
 *	table          key                members (v is 1)
 *	steps          key                atMs; and of a layer: blob, blobBytes,
 *	                                  diffId, tarBytes, linkedBytes (absent: 0),
 *	                                  cutOff (absent: no),
 *	                                  codec (absent: zstd)
 *	steps.details  key                ms, parent (absent on scratch), content,
 *	                                  components, and a log's (step_log.c)
 *	steps.content  parent, content    key of the step whose layer it is
 *	               (parent is 64
 *	               zeros on scratch)
 *
 * A cached bake reads only the first, a thousand times in a few milliseconds;
 * so that one is short.
 */
#include "layers/step_priv.h"

#include "layers/failure.h"

#include <assert.h>
#include <stdio.h>

#define STEP_TABLE "steps"
#define STEP_DETAILS "steps.details"
#define STEP_CONTENT "steps.content"
#define STEP_CONTENT_KEY_MAX (2 * DIGEST_HEX_MAX)

void step_record_done(struct step_record *record)
{
	step_log_done(&record->log);
	json_decref(record->components);
	record->components = NULL;
}

static bool step_is_zero(const struct digest *digest)
{
	static const struct digest zero;

	return digest_equal(digest, &zero);
}

/* An absent member is the zero digest. */
static int step_get_digest(const json_t *record, const char *name, struct digest *out,
			   struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct str hex;
	int found = json_get_string(record, STEP_TABLE, name, &hex, err);

	*out = (struct digest){0};
	if (found <= 0)
		return found;
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(hex));
	return digest_parse(str_of(text), out, err);
}

static int step_get_size(const json_t *record, const char *name, uint64_t *out, struct err *err)
{
	int64_t value = 0;

	if (json_get_int(record, STEP_TABLE, name, &value, err) < 0)
		return -1;
	*out = (uint64_t)value;
	return 0;
}

static int step_get_codec(const json_t *record, enum layer_codec *out, struct err *err)
{
	struct str name;
	int found = json_get_string(record, STEP_TABLE, "codec", &name, err);

	*out = LAYER_ZSTD;
	return found == 1 ? layer_codec_parse(name, out, err) : found;
}

int step_read(const json_t *record, struct step_record *out, struct err *err)
{
	if (json_need_int(record, STEP_TABLE, "atMs", &out->created_ms, err) < 0 ||
	    step_get_digest(record, "blob", &out->blob, err) < 0 ||
	    step_get_digest(record, "diffId", &out->diff_id, err) < 0 ||
	    step_get_codec(record, &out->codec, err) < 0 ||
	    step_get_size(record, "blobBytes", &out->blob_size, err) < 0 ||
	    step_get_size(record, "tarBytes", &out->tar_size, err) < 0 ||
	    step_get_size(record, "linkedBytes", &out->linked_bytes, err) < 0)
		return -1;
	out->empty = step_is_zero(&out->blob);
	out->cut_off = json_is_true(json_object_get(record, "cutOff"));
	return 0;
}

int step_read_details(const json_t *details, struct step_record *out, struct err *err)
{
	if (step_get_digest(details, "parent", &out->parent, err) < 0 ||
	    step_get_digest(details, "content", &out->content, err) < 0 ||
	    json_need_int(details, STEP_DETAILS, "ms", &out->duration_ms, err) < 0)
		return -1;
	json_decref(out->components);
	out->components = json_incref(json_object_get(details, "components"));
	return step_log_parse(details, &out->log, err);
}

static int step_find_details(struct meta *meta, struct str key, struct step_record *out,
			     struct err *err)
{
	AUTO(json) json_t *details = NULL;
	int found = meta_get(meta, STEP_DETAILS, key, &details, err);

	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_CORRUPT, "its details are missing");
	return step_read_details(details, out, err);
}

int step_find(struct meta *meta, const struct digest *key, bool with_details,
	      struct step_record *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char hex[DIGEST_HEX_MAX];
	int found = meta_get(meta, STEP_TABLE, str_of(digest_hex(key, hex)), &record, err);

	if (found <= 0)
		return found;
	out->key = *key;
	if (step_read(record, out, err) < 0 ||
	    (with_details && step_find_details(meta, str_of(hex), out, err) < 0)) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "step %s", hex);
	}
	return 1;
}

static void step_set_digest(json_t *record, const char *name, const struct digest *digest)
{
	char hex[DIGEST_HEX_MAX];

	if (!step_is_zero(digest))
		json_set_text(record, name, digest_hex(digest, hex));
}

void step_write(const struct step_record *record, json_t *out)
{
	json_set_int(out, "v", 1);
	json_set_int(out, "atMs", record->created_ms);
	if (record->empty)
		return;
	step_set_digest(out, "blob", &record->blob);
	step_set_digest(out, "diffId", &record->diff_id);
	json_set_size(out, "blobBytes", record->blob_size);
	json_set_size(out, "tarBytes", record->tar_size);
	if (record->linked_bytes > 0)
		json_set_size(out, "linkedBytes", record->linked_bytes);
	if (record->cut_off)
		json_set_bool(out, "cutOff", true);
	if (record->codec != LAYER_ZSTD)
		json_set_text(out, "codec", layer_codec_name(record->codec));
}

void step_write_details(const struct step_record *record, json_t *out)
{
	json_set_int(out, "v", 1);
	json_set_int(out, "ms", record->duration_ms);
	step_set_digest(out, "parent", &record->parent);
	step_set_digest(out, "content", &record->content);
	if (record->components)
		json_set(out, "components", json_incref(record->components));
	step_log_format(&record->log, out);
}

static struct str step_content_key(const struct digest *parent, const struct digest *content,
				   char space[static STEP_CONTENT_KEY_MAX])
{
	char hex[DIGEST_HEX_MAX];
	size_t used = strlen(digest_hex(parent, hex));

	memcpy(space, hex, used);
	memcpy(space + used, digest_hex(content, hex), used);
	return (struct str){space, 2 * used};
}

/* The key of the step whose layer it was first. 1, 0 or -1. */
static int step_content_owner(struct meta *meta, struct str content_key, struct digest *out,
			      struct err *err)
{
	AUTO(json) json_t *entry = NULL;
	int found = meta_get(meta, STEP_CONTENT, content_key, &entry, err);

	if (found <= 0)
		return found;
	return step_get_digest(entry, "key", out, err) < 0 ? -1 : !step_is_zero(out);
}

int step_find_content(struct meta *meta, const struct digest *parent, const struct digest *content,
		      struct step_record *out, struct err *err)
{
	char space[STEP_CONTENT_KEY_MAX];
	struct digest owner;
	int found = step_content_owner(meta, step_content_key(parent, content, space), &owner, err);

	if (found <= 0)
		return found;
	found = step_find(meta, &owner, true, out, err);
	if (found == 1 && !digest_equal(&out->content, content))
		return 0; /* the step was run anew and made something else */
	return found;
}

/*
 * Early cut-off: the earliest layer stays the one that later equal ones are
 * replaced by, with its time. 1 there was one, 0 the record keeps its own, -1.
 */
static int step_cut_off(struct meta *meta, struct step_record *record, struct err *err)
{
	auto_step_record struct step_record earlier = STEP_RECORD_INIT;
	int found = step_find_content(meta, &record->parent, &record->content, &earlier, err);

	if (found != 1)
		return found;
	record->cut_off = !digest_equal(&earlier.diff_id, &record->diff_id) ||
			  !digest_equal(&earlier.key, &record->key);
	record->blob = earlier.blob;
	record->codec = earlier.codec;
	record->diff_id = earlier.diff_id;
	record->blob_size = earlier.blob_size;
	record->tar_size = earlier.tar_size;
	record->linked_bytes = earlier.linked_bytes;
	record->created_ms = earlier.created_ms;
	return 1;
}

/* A step run again to no layer again keeps the time of the first. */
static int step_keep_time(struct meta *meta, struct step_record *record, struct err *err)
{
	auto_step_record struct step_record earlier = STEP_RECORD_INIT;
	int found = step_find(meta, &record->key, false, &earlier, err);

	if (found == 1 && earlier.empty)
		record->created_ms = earlier.created_ms;
	return found < 0 ? -1 : 0;
}

/* From now on later equal layers are replaced by this one. */
static int step_put_content(struct meta *meta, struct str key, const struct step_record *record,
			    struct err *err)
{
	AUTO(json) json_t *entry = json_pack("{s:i, s:s%}", "v", 1, "key", key.ptr, key.len);
	char space[STEP_CONTENT_KEY_MAX];

	return meta_put(meta, STEP_CONTENT,
			step_content_key(&record->parent, &record->content, space), entry, err);
}

int step_settle(struct meta *meta, struct step_record *record, struct err *err)
{
	int found;

	record->cut_off = false;
	if (record->empty)
		return step_keep_time(meta, record, err);
	assert(!step_is_zero(&record->blob));
	if (step_is_zero(&record->content))
		return 0;
	found = step_cut_off(meta, record, err);
	return found < 0 ? -1 : found == 0;
}

int step_store(struct meta *meta, const struct step_record *record, bool first, struct err *err)
{
	AUTO(json) json_t *hot = json_object();
	AUTO(json) json_t *details = json_object();
	char hex[DIGEST_HEX_MAX];
	struct str key = str_of(digest_hex(&record->key, hex));

	if (first && step_put_content(meta, key, record, err) < 0)
		return -1;
	step_write(record, hot);
	step_write_details(record, details);
	if (meta_put(meta, STEP_TABLE, key, hot, err) < 0 ||
	    meta_put(meta, STEP_DETAILS, key, details, err) < 0)
		return -1;
	return failure_remove(meta, &record->key, err) < 0 ? -1 : 0;
}

int step_put(struct meta *meta, struct step_record *record, struct err *err)
{
	int first = step_settle(meta, record, err);

	return first < 0 ? -1 : step_store(meta, record, first == 1, err);
}

struct step_walk {
	step_each_fn *fn;
	step_log_each_fn *log_fn;
	void *ctx;
};

int step_parse_key(struct str hex, struct digest *out, struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(hex));
	return digest_parse(str_of(text), out, err);
}

static int step_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct step_walk *walk = ctx;
	struct step_record record = {0};

	if (step_parse_key(key, &record.key, err) < 0 || step_read(value, &record, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "step " STR_FMT, STR_ARG(key));
	}
	return walk->fn(walk->ctx, &record, err);
}

int step_each(struct meta *meta, step_each_fn *fn, void *ctx, struct err *err)
{
	struct step_walk walk = {.fn = fn, .ctx = ctx};

	return meta_each(meta, STEP_TABLE, STR(""), step_visit, &walk, err);
}

int step_find_listing(const json_t *components, struct digest *out, struct err *err)
{
	const json_t *files = json_object_get(components, "files");

	*out = (struct digest){0};
	return json_is_string(files) ? digest_parse(json_str(files), out, err) : 0;
}

static int step_visit_log(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct step_walk *walk = ctx;
	struct digest digest;
	struct digest blob;
	struct digest listing;
	int result = 0;

	if (step_parse_key(key, &digest, err) < 0 ||
	    step_get_digest(value, "log", &blob, err) < 0 ||
	    step_find_listing(json_object_get(value, "components"), &listing, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "log of step " STR_FMT, STR_ARG(key));
	}
	if (!step_is_zero(&listing))
		result = walk->log_fn(walk->ctx, &digest, &listing, err);
	if (result == 0 && !step_is_zero(&blob))
		result = walk->log_fn(walk->ctx, &digest, &blob, err);
	return result;
}

int step_each_log(struct meta *meta, step_log_each_fn *fn, void *ctx, struct err *err)
{
	struct step_walk walk = {.log_fn = fn, .ctx = ctx};
	int result = meta_each(meta, STEP_DETAILS, STR(""), step_visit_log, &walk, err);

	if (result != 0)
		return result;
	return meta_each(meta, FAILURE_TABLE, STR(""), step_visit_log, &walk, err);
}

/* Later equal layers are replaced by another one, then. */
static int step_remove_content(struct meta *meta, const struct step_record *record, struct err *err)
{
	char space[STEP_CONTENT_KEY_MAX];
	struct str content_key = step_content_key(&record->parent, &record->content, space);
	struct digest owner;
	int found = step_content_owner(meta, content_key, &owner, err);

	if (found == 1 && digest_equal(&owner, &record->key))
		found = meta_del(meta, STEP_CONTENT, content_key, err);
	return found < 0 ? -1 : 0;
}

int step_remove(struct meta *meta, const struct digest *key, struct err *err)
{
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	char hex[DIGEST_HEX_MAX];
	struct str name = str_of(digest_hex(key, hex));
	int found = step_find(meta, key, true, &record, err);

	if (found <= 0)
		return found;
	if (step_remove_content(meta, &record, err) < 0 ||
	    meta_del(meta, STEP_TABLE, name, err) < 0 ||
	    meta_del(meta, STEP_DETAILS, name, err) < 0)
		return -1;
	return 1;
}
