/* SPDX-License-Identifier: Apache-2.0 */
#include "api/lookup.h"

#include "bake/agent_tag.h"
#include "bake/image.h"
#include "layers/blob.h"
#include "registry/closure.h"
#include "registry/tag.h"

#define LOOKUP_HEX_MIN 6 /* shorter beginnings are names */

struct lookup_prefix {
	struct str hex;
	size_t count;
	struct digest found;
};

static int lookup_consider(struct lookup_prefix *prefix, const struct digest *digest)
{
	char hex[DIGEST_HEX_MAX];

	if (digest->algorithm != DIGEST_SHA256 ||
	    !str_starts(str_of(digest_hex(digest, hex)), prefix->hex))
		return 0;
	if (prefix->count == 0 || !digest_equal(&prefix->found, digest))
		prefix->count++;
	prefix->found = *digest;
	return 0;
}

static int lookup_baked(void *ctx, const struct image *image, struct err *err)
{
	(void)err;
	return lookup_consider(ctx, &image->manifest);
}

static int lookup_tagged(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	(void)err;
	(void)reference;
	return lookup_consider(ctx, &tag->manifest);
}

bool lookup_hex(struct str text, struct str *out)
{
	struct str sha256 = STR("sha256:");

	if (str_starts(text, sha256))
		text = str_skip(text, sha256.len);
	for (size_t i = 0; i < text.len; i++) {
		if (!strchr("0123456789abcdef", text.ptr[i]))
			return false;
	}
	*out = text;
	return text.len >= LOOKUP_HEX_MIN && text.len <= 2 * DIGEST_BYTES_MAX;
}

int lookup_digest(struct meta *meta, struct str text, struct digest *out, struct err *err)
{
	struct lookup_prefix prefix = {0};

	if (!lookup_hex(text, &prefix.hex))
		return 0;
	if (image_each(meta, lookup_baked, &prefix, err) < 0 ||
	    tag_each(meta, lookup_tagged, &prefix, err) < 0)
		return -1;
	if (prefix.count > 1)
		return err_set(err, ERR_INVALID,
			       "%zu images begin with " STR_FMT "; give more of the digest",
			       prefix.count, STR_ARG(text));
	*out = prefix.found;
	return prefix.count == 1;
}

/* What is asked for, and found. */
struct lookup_wish {
	const char *text;
	bool any_platform; /* the host's, or the only one */
	struct platform platform;
	struct tag found; /* its target and manifest */
	struct buf *name;
};

static int lookup_tag_named(struct meta *meta, struct lookup_wish *wish, struct err *err)
{
	int found = tag_find(meta, buf_str(wish->name), &wish->platform, &wish->found, err);

	if (found == 0 && wish->any_platform)
		found = tag_find_only(meta, buf_str(wish->name), &wish->found, err);
	return found;
}

static int lookup_tag(struct meta *meta, struct lookup_wish *wish, struct err *err)
{
	struct reference reference;
	int found;

	if (reference_parse(str_of(wish->text), &reference, err) < 0 ||
	    reference_format(&reference, wish->name, err) < 0)
		return -1;
	found = lookup_tag_named(meta, wish, err);
	if (found == 0 && agent_tag_name(&reference, wish->name))
		found = lookup_tag_named(meta, wish, err);
	return found;
}

static int lookup_refuse(struct str text, struct err *err)
{
	struct str hex = STR("");
	bool is_short = !lookup_hex(text, &hex) && hex.len > 0 && hex.len < LOOKUP_HEX_MIN;

	return err_set(err, ERR_NOT_FOUND,
		       "no image " STR_FMT " here%s; hearth images lists them, hearth pull "
		       "fetches one",
		       STR_ARG(text),
		       is_short ? ", and a digest's beginning has six hex digits at least" : "");
}

static int lookup_image(struct store *store, struct lookup_wish *wish, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct str name = str_of(wish->text);
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = lookup_digest(meta, name, &wish->found.manifest, err);
	wish->found.target = wish->found.manifest;
	if (found == 0 && !str_starts(name, STR("sha256:")))
		found = lookup_tag(meta, wish, err);
	if (found == 0)
		return lookup_refuse(name, err);
	return found < 0 ? -1 : 0;
}

int lookup_read(struct store *store, const struct digest *digest, struct lookup *out,
		struct err *err)
{
	out->digest = *digest;
	if (blob_read_all(store, digest, &out->manifest_text, err) < 0 ||
	    manifest_parse(buf_str(&out->manifest_text), &out->manifest, err) < 0 ||
	    blob_read_all(store, &out->manifest.config.digest, &out->config_text, err) < 0 ||
	    image_config_parse(buf_str(&out->config_text), &out->config, err) < 0)
		return err_ctx(err, "read the image");
	return 0;
}

uint64_t lookup_size(const struct lookup *lookup)
{
	uint64_t size = lookup->manifest.config.size + lookup->manifest_text.len;

	for (size_t i = 0; i < lookup->manifest.layer_count; i++)
		size += lookup->manifest.layers[i].size;
	return size;
}

static int lookup_find(const struct cli *cli, struct store **store, struct lookup_wish *wish,
		       struct err *err)
{
	const char *text = cli_text(cli, "platform");
	bool given = text && strcmp(text, "all") != 0;
	int found;

	wish->any_platform = !given;
	platform_host(&wish->platform);
	if (given && platform_parse(str_of(text), &wish->platform, err) < 0)
		return err_ctx(err, "--platform");
	found = cli_find_store(cli, store, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "no image %s here: there is no store in %s yet",
			       cli->args[0], cli->data_path);
	return found < 0 ? -1 : lookup_image(*store, wish, err);
}

int lookup_named(const struct cli *cli, struct store **store, struct lookup *out, struct err *err)
{
	struct lookup_wish wish = {.text = cli->args[0], .name = &out->name};

	if (lookup_find(cli, store, &wish, err) < 0)
		return -1;
	out->target = wish.found.target;
	return lookup_read(*store, &wish.found.manifest, out, err);
}

/* Whether every document of an index is here: 1, 0, -1. */
static int lookup_is_whole(struct store *store, const struct digest *index, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_closure struct closure closure = {0};
	int found = 1;

	if (blob_read_all(store, index, &text, err) < 0 ||
	    closure_parse(buf_str(&text), &closure, err) < 0)
		return -1;
	for (size_t i = 0; found == 1 && i < closure.count; i++) {
		struct blob_info info;

		found = blob_find(store, &closure.items[i].what.digest, &info, err);
	}
	return found;
}

int lookup_whole(const struct cli *cli, struct store **store, struct digest *out, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct lookup_wish wish = {.text = cli->args[0], .name = &name};
	const struct tag *tag = &wish.found;
	int whole = 0;

	if (lookup_find(cli, store, &wish, err) < 0)
		return -1;
	if (!cli_has(cli, "platform") && !digest_equal(&tag->target, &tag->manifest))
		whole = lookup_is_whole(*store, &tag->target, err);
	if (whole < 0)
		return -1;
	*out = whole ? tag->target : tag->manifest;
	return 0;
}

void lookup_done(struct lookup *lookup)
{
	manifest_done(&lookup->manifest);
	image_config_done(&lookup->config);
	buf_done(&lookup->name);
	buf_done(&lookup->manifest_text);
	buf_done(&lookup->config_text);
}
