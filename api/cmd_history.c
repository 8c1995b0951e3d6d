/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c - `hearth history`: the steps behind an image, oldest first. */
#include "api/cli.h"
#include "api/human.h"
#include "api/lookup.h"
#include "bake/image.h"
#include "layers/digest_json.h"
#include "layers/step.h"

#define HISTORY_COLUMNS ((size_t)200)        /* of a step's text */
#define HISTORY_CREATED_COLUMNS ((size_t)19) /* to the second */

static json_t *history_row(const struct lookup *image, const json_t *entry, size_t *layer)
{
	json_t *row = json_object();
	const struct descriptor *blob;

	(void)json_object_set(row, "created", json_object_get(entry, "created"));
	(void)json_object_set(row, "step", json_object_get(entry, "created_by"));
	if (json_is_true(json_object_get(entry, "empty_layer")) ||
	    *layer >= image->manifest.layer_count) {
		(void)json_object_set_new(row, "layer", json_null());
		return row;
	}
	blob = &image->manifest.layers[(*layer)++];
	digest_json_set(row, "layer", &blob->digest);
	json_set_size(row, "sizeBytes", blob->size);
	(void)json_object_set_new(row, "mediaType", json_from_str(blob->media_type));
	return row;
}

static int history_add_step(struct meta *meta, const struct digest *key, json_t *row,
			    struct err *err)
{
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	int found = step_find(meta, key, false, &record, err);

	if (found == 1 && record.linked_bytes > 0)
		json_set_size(row, "linkedBytes", record.linked_bytes);
	return found < 0 ? -1 : 0;
}

/*
 * Add each step's key to the entry of it; the steps' entries are the last ones.
 * Nothing is added for an image that was not baked here.
 */
static int history_add_steps(struct store *store, const struct lookup *image, json_t *rows,
			     struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_free struct digest *keys = NULL;
	size_t count = 0;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = image_find_steps(meta, &image->digest, &keys, &count, err);
	for (size_t i = 0; found == 1 && i < count && count <= json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, json_array_size(rows) - count + i);

		if (history_add_step(meta, &keys[i], row, err) < 0)
			return -1;
	}
	return found < 0 ? -1 : 0;
}

static int history_print(const json_t *row, struct err *err)
{
	auto_buf struct buf step = BUF_INIT(4 * HISTORY_COLUMNS + 1);
	auto_buf struct buf created = BUF_INIT(4 * HISTORY_CREATED_COLUMNS + 1);
	json_int_t linked = json_integer_value(json_object_get(row, "linkedBytes"));
	char note[HUMAN_LINKED_MAX];
	char size[HUMAN_TEXT_MAX] = "-";
	const char *codec = "-";

	if (json_is_string(json_object_get(row, "layer"))) {
		human_size((uint64_t)json_integer_value(json_object_get(row, "sizeBytes")), size);
		codec = manifest_layer_word(json_str(json_object_get(row, "mediaType")));
	}
	if (human_line(json_str(json_object_get(row, "created")), HISTORY_CREATED_COLUMNS, &created,
		       err) < 0 ||
	    human_line(json_str(json_object_get(row, "step")), HISTORY_COLUMNS, &step, err) < 0)
		return -1;
	(void)printf("%-19s %10s  %-5s  %s\n", created.len > 0 ? created.ptr : "-", size, codec,
		     buf_str(&step).ptr);
	if (linked > 0)
		(void)printf("%-19s %10s  %s\n", "", "", human_linked((uint64_t)linked, note));
	return 0;
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_lookup struct lookup image = LOOKUP_INIT;
	AUTO(json) json_t *rows = json_array();
	const json_t *history;
	size_t layer = 0;

	if (lookup_named(cli, &store, &image, err) < 0)
		return -1;
	history = json_object_get(image.config.document, "history");
	for (size_t i = 0; i < json_array_size(history); i++)
		(void)json_array_append_new(
			rows, history_row(&image, json_array_get(history, i), &layer));
	if (history_add_steps(store, &image, rows, err) < 0)
		return -1;
	if (cli_has(cli, "json")) {
		human_json(rows, stdout);
		return 0;
	}
	(void)printf("%-19s %10s  %-5s  %s\n", "CREATED", "SIZE", "CODEC", "STEP");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (history_print(json_array_get(rows, i), err) < 0)
			return -1;
	}
	return 0;
}

static const struct cli_option options[] = {
	LOOKUP_OPTION_PLATFORM,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_history = {
	.name = "history",
	.arguments = "IMAGE",
	.summary = "show the steps that made an image",
	.detail = "IMAGE is a tag, a digest, or six hex digits or more of its beginning.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
