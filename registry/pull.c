/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.c - the order in which an image arrives.
 *
 *	1 what the name stands for: a digest          asked, or given
 *	2 that document; of an index, the platform's  held, or fetched and verified
 *	3 config, then layers, in parallel            held, or fetched and verified
 *	4 config, manifest and index into the store   durable each
 *	5 the tag                                     names nothing that is not durable
 *
 * A crash before 5 leaves blobs and trees that the next pull finds, and no name.
 */
#include "layers/base/clock.h"
#include "registry/pull_priv.h"
#include "registry/transport.h"

#include <inttypes.h>

void pull_tell(struct pull *pull, enum pull_event_kind kind, const struct descriptor *blob,
	       uint64_t done)
{
	const struct pull_event event = {
		.kind = kind, .digest = blob->digest, .done = done, .size = blob->size};

	if (!pull->spec->event)
		return;
	lock_take(&pull->event_lock);
	pull->spec->event(pull->spec->event_ctx, &event);
	lock_drop(&pull->event_lock);
}

void pull_warn(void *ctx, struct str text)
{
	const struct pull_event event = {.kind = PULL_WARNING, .text = text};
	struct pull *pull = ctx;

	if (!pull->spec->event)
		return;
	lock_take(&pull->event_lock);
	pull->spec->event(pull->spec->event_ctx, &event);
	lock_drop(&pull->event_lock);
}

int pull_hold(struct pull *pull, const struct digest *digest, struct err *err)
{
	struct digest id = *digest;
	int held = 1;

	if (digest->algorithm != DIGEST_SHA256)
		held = blob_find_id(pull->store, digest, &id, err);
	if (held <= 0)
		return held;
	return lease_add(pull->lease, &id, err);
}

/* Whether the store gave the whole of it, undamaged. */
static bool pull_held(struct pull *pull, const struct digest *digest, struct buf *out)
{
	struct blob_info info;
	struct err err;

	if (blob_find(pull->store, digest, &info, &err) != 1 ||
	    blob_read_all(pull->store, digest, out, &err) < 0)
		return false;
	if (digest_is_of(digest, buf_str(out)))
		return true;
	buf_clear(out);
	return false;
}

int pull_document(struct pull *pull, const struct digest *digest, struct buf *out, struct err *err)
{
	if (pull_hold(pull, digest, err) < 0)
		return -1;
	if (pull_held(pull, digest, out))
		return 0;
	return pull->origin->document(pull->origin, digest, out, err);
}

int pull_target(struct pull *pull, struct digest *out, struct buf *out_text, struct err *err)
{
	if (pull->origin->resolve(pull->origin, out, err) < 0)
		return -1;
	return pull_document(pull, out, out_text, err);
}

static int pull_config(struct pull *pull, const struct descriptor *config, struct buf *out,
		       struct err *err)
{
	struct buf_sink sink = BUF_SINK(out);

	if (pull_hold(pull, &config->digest, err) < 0)
		return -1;
	if (pull_held(pull, &config->digest, out) && out->len == config->size)
		return 0;
	buf_clear(out);
	if (pull->origin->blob(pull->origin, 0, config, &sink.sink, err) < 0)
		return err_ctx(err, "image config");
	if (!digest_is_of(&config->digest, buf_str(out)))
		return err_set(err, ERR_CORRUPT, "the image config does not have its digest");
	return 0;
}

/* A document, and what it was asked for by. */
struct pull_text {
	struct digest name;
	struct buf text;
};

/* The texts that make an image, outermost first. */
struct pull_texts {
	struct pull_text index; /* empty where the reference stands for a manifest */
	struct pull_text manifest;
	struct pull_text config;
};

static void pull_texts_done(struct pull_texts *texts)
{
	buf_done(&texts->index.text);
	buf_done(&texts->manifest.text);
	buf_done(&texts->config.text);
}

static int pull_texts_get(struct pull *pull, struct pull_texts *texts, struct err *err)
{
	struct pull_text *manifest = &texts->manifest;
	bool index;

	if (pull_target(pull, &manifest->name, &manifest->text, err) < 0 ||
	    manifest_is_index(buf_str(&manifest->text), &index, err) < 0)
		return -1;
	if (!index)
		return 0;
	texts->index = *manifest;
	manifest->text = BUF_INIT(MANIFEST_MAX);
	return pull_choose(pull, buf_str(&texts->index.text), &manifest->name, &manifest->text,
			   err);
}

static int pull_check_platform(const struct pull *pull, const struct image_config *config,
			       struct err *err)
{
	char wanted[PLATFORM_TEXT_MAX];
	char offered[PLATFORM_TEXT_MAX];

	if (!config->platform.os[0] || platform_matches(&pull->wanted, &config->platform))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "the image is for %s, and %s was asked for",
		       platform_format(&config->platform, offered),
		       platform_format(&pull->wanted, wanted));
}

int pull_store(struct pull *pull, const struct digest *name, const struct buf *text,
	       struct digest *out, struct err *err)
{
	int found = blob_find_id(pull->store, name, out, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	return blob_put_as(pull->store, buf_str(text), name, out, err);
}

static int pull_store_texts(struct pull *pull, const struct pull_texts *texts, struct tag *out,
			    struct err *err)
{
	const struct pull_text *index = &texts->index;
	struct digest config;

	if (pull_store(pull, &texts->config.name, &texts->config.text, &config, err) < 0 ||
	    pull_store(pull, &texts->manifest.name, &texts->manifest.text, &out->manifest, err) < 0)
		return -1;
	out->target = out->manifest;
	return index->text.len == 0
		       ? 0
		       : pull_store(pull, &index->name, &index->text, &out->target, err);
}

static int pull_tag_as(struct pull *pull, struct str name, const struct tag *tag, struct err *err)
{
	const struct pull_event event = {.kind = PULL_NAMED, .digest = tag->manifest, .text = name};

	if (tag_set(pull->store, name, tag, err) < 0)
		return -1;
	if (pull->spec->event)
		pull->spec->event(pull->spec->event_ctx, &event);
	return 0;
}

/* What the image will be called: asked before anything is fetched. */
static int pull_list_names(struct pull *pull, json_t **out, bool *out_own, struct err *err)
{
	const struct pull_spec *spec = pull->spec;
	auto_buf struct buf name = BUF_INIT(2 * REFERENCE_TEXT_MAX);

	*out_own = true;
	if (spec->unnamed) {
		*out = json_array();
		return 0;
	}
	if (spec->name.len > 0) {
		*out = json_pack("[o]", json_from_str(spec->name));
		return 0;
	}
	if (spec->name_as_there && json_array_size(pull->origin->names) > 0) {
		*out = json_incref(pull->origin->names);
		return 0;
	}
	if (transport_of(spec->reference->kind) && str_equal(spec->reference->path, STR("-")))
		return err_set(err, ERR_INVALID,
			       "the image has no name in it; give it one "
			       "with --tag NAME");
	if (reference_format(spec->reference, &name, err) < 0)
		return -1;
	*out_own = false;
	*out = json_pack("[o]", json_from_str(buf_str(&name)));
	return 0;
}

static int pull_parts(struct pull *pull, struct pull_texts *texts, struct tag *out, struct err *err)
{
	auto_image_config struct image_config config = {0};
	auto_manifest struct manifest manifest = {0};
	AUTO(json) json_t *names = NULL;
	struct descriptor self;
	struct tag tag = {.at_ms = 0};
	struct str text;
	bool own = false;

	if (pull_texts_get(pull, texts, err) < 0)
		return -1;
	text = buf_str(&texts->manifest.text);
	if (manifest_parse(text, &manifest, err) < 0 ||
	    pull_config(pull, &manifest.config, &texts->config.text, err) < 0 ||
	    image_config_parse(buf_str(&texts->config.text), &config, err) < 0 ||
	    pull_check_platform(pull, &config, err) < 0 ||
	    pull_list_names(pull, &names, &own, err) < 0)
		return -1;
	texts->config.name = manifest.config.digest;
	self = (struct descriptor){.media_type = manifest.media_type, .size = text.len};
	digest_of(text, &self.digest);
	pull_tell(pull, PULL_RESOLVED, &self, self.size);
	if (pull_layers(pull, &manifest, &config, err) < 0 ||
	    pull_store_texts(pull, texts, &tag, err) < 0)
		return -1;
	tag.platform = config.platform.os[0] ? config.platform : pull->wanted;
	tag.pulled = !own;
	tag.at_ms = clock_now_ms();
	for (size_t i = 0; i < json_array_size(names); i++) {
		if (pull_tag_as(pull, json_str(json_array_get(names, i)), &tag, err) < 0)
			return -1;
	}
	*out = tag;
	return 0;
}

/* A registry's image that is to be kept is pulled; what is handed on, or lies here, is read. */
static const char *pull_verb(const struct pull_spec *spec)
{
	return spec->bare || transport_of(spec->reference->kind) ? "read" : "pull";
}

/* What a user wrote stands in front of what went wrong with it. */
static int pull_failed(const struct pull_spec *spec, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct err ignored;

	if (reference_format(spec->mirror ? spec->mirror : spec->reference, &name, &ignored) == 0)
		(void)err_ctx(err, "%s %s", pull_verb(spec), name.ptr);
	return -1;
}

int pull_image(struct store *store, const struct pull_spec *spec, struct tag *out, struct err *err)
{
	struct pull pull = {
		.store = store, .spec = spec, .wanted = spec->platform, .event_lock = LOCK_INIT};
	struct pull_texts texts = {.index.text = BUF_INIT(MANIFEST_MAX),
				   .manifest.text = BUF_INIT(MANIFEST_MAX),
				   .config.text = BUF_INIT(IMAGE_CONFIG_MAX)};
	int result;

	if (!pull.wanted.os[0])
		platform_host(&pull.wanted);
	if (cancel_init(&pull.stop, err) < 0)
		return -1;
	result = lease_open(store, &pull.lease, err);
	if (result == 0)
		result = lease_rest(pull.lease, err);
	if (result == 0)
		result = origin_open(spec, store, &pull.stop, &pull.origin, err);
	if (result == 0) {
		pull.origin->warn = pull_warn;
		pull.origin->warn_ctx = &pull;
		result = spec->bare ? gather_image(&pull, out, err)
				    : pull_parts(&pull, &texts, out, err);
	}
	lease_close(pull.lease);
	origin_close(pull.origin);
	pull_texts_done(&texts);
	cancel_done(&pull.stop);
	return result < 0 ? pull_failed(spec, err) : 0;
}
