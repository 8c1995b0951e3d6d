/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_images.c - `hearth images`: what is in the store, newest first. */
#include "api/cli.h"
#include "api/human.h"
#include "api/lookup.h"
#include "bake/image.h"
#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/digest_json.h"
#include "registry/outline.h"
#include "registry/tag.h"

#include <string.h>

#define IMAGES_MAX ((size_t)100000) /* rows of one listing */

struct row {
	char *name; /* owned; NULL for an image without a tag */
	struct digest digest;
	int64_t at_ms;
};

struct rows {
	struct row *at; /* owned */
	size_t count;
};

static int rows_add(struct rows *rows, struct str name, const struct digest *digest, int64_t at_ms,
		    struct err *err)
{
	if (array_make_room(&rows->at, sizeof(*rows->at), rows->count, IMAGES_MAX, "images", err) <
	    0)
		return -1;
	rows->at[rows->count++] = (struct row){
		.name = name.len > 0 ? str_dup(name) : NULL,
		.digest = *digest,
		.at_ms = at_ms,
	};
	return 0;
}

static int rows_add_tag(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	return rows_add(ctx, reference, &tag->manifest, tag->at_ms, err);
}

/* An image that has a tag has its row already. */
static int rows_add_image(void *ctx, const struct image *image, struct err *err)
{
	struct rows *rows = ctx;

	for (size_t i = 0; i < rows->count; i++) {
		if (digest_equal(&rows->at[i].digest, &image->manifest))
			return 0;
	}
	return rows_add(rows, STR(""), &image->manifest, image->baked_ms, err);
}

static int rows_newest_first(const void *a, const void *b)
{
	const struct row *left = a;
	const struct row *right = b;

	return (left->at_ms < right->at_ms) - (left->at_ms > right->at_ms);
}

/* What a row says of its document. */
struct facts {
	char platform[PLATFORM_TEXT_MAX]; /* "" where it is no image that runs */
	uint64_t size;
	size_t layers;
};

/* What was pushed may be anything that a registry takes: then its parts are counted. */
static int facts_read_other(struct store *store, const struct digest *digest, struct facts *out,
			    struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};

	if (blob_read_all(store, digest, &text, err) < 0 ||
	    outline_parse(buf_str(&text), &outline, err) < 0)
		return err_ctx(err, "read the image");
	*out = (struct facts){.size = text.len, .layers = outline.count};
	for (size_t i = 0; i < outline.count; i++)
		out->size += outline.items[i].what.size;
	return 0;
}

static int facts_read(struct store *store, const struct digest *digest, struct facts *out,
		      struct err *err)
{
	auto_lookup struct lookup image = LOOKUP_INIT;

	if (lookup_read(store, digest, &image, err) < 0)
		return err->kind == ERR_NOT_FOUND || err->kind == ERR_OS
			       ? -1
			       : facts_read_other(store, digest, out, err);
	out->size = lookup_size(&image);
	out->layers = image.manifest.layer_count;
	(void)platform_format(&image.config.platform, out->platform);
	return 0;
}

static int images_print_json(struct store *store, const struct row *row, json_t *out,
			     struct err *err)
{
	struct facts facts = {.size = 0};
	json_t *value = json_object();
	char when[CLOCK_TEXT_MAX];

	(void)json_array_append_new(out, value);
	if (facts_read(store, &row->digest, &facts, err) < 0)
		return -1;
	(void)json_object_set_new(value, "name",
				  row->name ? json_from_str(str_of(row->name)) : json_null());
	digest_json_set(value, "digest", &row->digest);
	(void)json_object_set_new(value, "platform",
				  facts.platform[0] ? json_string(facts.platform) : json_null());
	json_set_size(value, "sizeBytes", facts.size);
	json_set_size(value, "layers", facts.layers);
	json_set_text(value, "at", clock_format(row->at_ms, when));
	return 0;
}

static int images_print_row(struct store *store, const struct row *row, int width, struct err *err)
{
	struct facts facts = {.size = 0};
	auto_free char *name = human_text(str_of(row->name ? row->name : "-"));
	char hex[DIGEST_HEX_MAX];
	char size[HUMAN_TEXT_MAX];
	char age[HUMAN_TEXT_MAX];

	if (facts_read(store, &row->digest, &facts, err) < 0)
		return -1;
	(void)printf("%-*s %.12s %10s %6zu  %s\n", width, name, digest_hex(&row->digest, hex),
		     human_size(facts.size, size), facts.layers,
		     human_age(clock_now_ms() - row->at_ms, age));
	return 0;
}

static int images_print(const struct cli *cli, struct store *store, const struct rows *rows,
			struct err *err)
{
	AUTO(json) json_t *list = json_array();
	bool json = cli_has(cli, "json");
	int width = HUMAN_NAME_MIN;

	for (size_t i = 0; i < rows->count; i++)
		width = human_widen(width, rows->at[i].name ? rows->at[i].name : "-");
	if (!json && rows->count > 0)
		(void)printf("%-*s %-12s %10s %6s  %s\n", width, "NAME", "DIGEST", "SIZE", "LAYERS",
			     "WHEN");
	for (size_t i = 0; i < rows->count; i++) {
		if ((json ? images_print_json(store, &rows->at[i], list, err)
			  : images_print_row(store, &rows->at[i], width, err)) < 0)
			return -1;
	}
	if (json)
		human_json(list, stdout);
	return 0;
}

static int images_read(struct store *store, struct rows *rows, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_READ, &meta, err) < 0 ||
	    tag_each(meta, rows_add_tag, rows, err) < 0 ||
	    image_each(meta, rows_add_image, rows, err) < 0)
		return -1;
	if (rows->count > 0)
		qsort(rows->at, rows->count, sizeof(*rows->at), rows_newest_first);
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	struct rows rows = {0};
	int result = cli_find_store(cli, &store, err);

	if (result == 1)
		result = images_read(store, &rows, err);
	if (result == 0)
		result = images_print(cli, store, &rows, err);
	for (size_t i = 0; i < rows.count; i++)
		free(rows.at[i].name);
	free(rows.at);
	return result;
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_images = {
	.name = "images",
	.arguments = "",
	.summary = "list the images in the store",
	.detail = "",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 0,
	.run = run,
};
