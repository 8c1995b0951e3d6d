/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant.c - one table.
 *
 *	table     key                              members (v is 1)
 *	variants  diff id in hex, ".", "gzip"      blob (hex), blobBytes
 *	          or "zstd"
 *
 * The codec is named without level and version: what was made once stays what
 * it is, or an upgrade of a library would change images in which nothing moved.
 */
#include "layers/variant.h"

#include "layers/blob.h"

#include <stdio.h>

#define VARIANT_TABLE "variants"
#define VARIANT_KEY_MAX (DIGEST_HEX_MAX + sizeof(".gzip"))

static struct str variant_key(const struct digest *diff_id, enum layer_codec codec,
			      char space[static VARIANT_KEY_MAX])
{
	char hex[DIGEST_HEX_MAX];

	(void)snprintf(space, VARIANT_KEY_MAX, "%s.%s", digest_hex(diff_id, hex),
		       layer_codec_name(codec));
	return str_of(space);
}

static int variant_parse(const json_t *record, struct variant *out, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct str hex;
	int64_t size;

	if (json_need_string(record, VARIANT_TABLE, "blob", &hex, err) < 0 ||
	    json_need_int(record, VARIANT_TABLE, "blobBytes", &size, err) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(hex));
	out->size = (uint64_t)size;
	return digest_parse(str_of(text), &out->blob, err);
}

int variant_find(struct store *store, struct meta *meta, const struct digest *diff_id,
		 enum layer_codec codec, struct variant *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char space[VARIANT_KEY_MAX];
	struct str key = variant_key(diff_id, codec, space);
	struct blob_info held;
	struct variant variant;
	int found = meta_get(meta, VARIANT_TABLE, key, &record, err);

	if (found <= 0)
		return found;
	if (variant_parse(record, &variant, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "layer " STR_FMT, STR_ARG(key));
	}
	found = blob_find(store, &variant.blob, &held, err);
	if (found == 1)
		*out = variant;
	return found;
}

int variant_put(struct meta *meta, const struct digest *diff_id, enum layer_codec codec,
		const struct variant *variant, struct err *err)
{
	char space[VARIANT_KEY_MAX];
	char hex[DIGEST_HEX_MAX];
	AUTO(json)
	json_t *record =
		json_pack("{s:i, s:s, s:I}", "v", 1, "blob", digest_hex(&variant->blob, hex),
			  "blobBytes", (json_int_t)variant->size);

	return meta_put(meta, VARIANT_TABLE, variant_key(diff_id, codec, space), record, err);
}

struct variant_walk {
	variant_each_fn *fn;
	void *ctx;
};

static int variant_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct variant_walk *walk = ctx;
	struct variant variant;
	struct digest diff_id;
	struct str hex;
	char text[DIGEST_TEXT_MAX];
	struct str rest = key;

	(void)str_cut(&rest, '.', &hex);
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(hex));
	if (digest_parse(str_of(text), &diff_id, err) < 0 ||
	    variant_parse(value, &variant, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "layer " STR_FMT, STR_ARG(key));
	}
	return walk->fn(walk->ctx, &diff_id, &variant, err);
}

int variant_each(struct meta *meta, variant_each_fn *fn, void *ctx, struct err *err)
{
	struct variant_walk walk = {fn, ctx};

	return meta_each(meta, VARIANT_TABLE, STR(""), variant_visit, &walk, err);
}

struct variant_sweep {
	struct store *store;
	struct meta *meta; /* writing */
};

static int variant_sweep_one(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct variant_sweep *sweep = ctx;
	struct variant variant;
	struct blob_info held;
	int found;

	if (variant_parse(value, &variant, err) < 0)
		return -1;
	found = blob_find(sweep->store, &variant.blob, &held, err);
	if (found == 0)
		found = meta_del(sweep->meta, VARIANT_TABLE, key, err);
	return found < 0 ? -1 : 0;
}

int variant_sweep(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct variant_sweep sweep = {.store = store};

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	sweep.meta = meta;
	if (meta_each(meta, VARIANT_TABLE, STR(""), variant_sweep_one, &sweep, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}
