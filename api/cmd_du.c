/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_du.c - `hearth du`: what takes the space in the data directory. */
#include "api/cli.h"
#include "api/human.h"
#include "bake/usage.h"
#include "layers/digest_json.h"

#define DU_SMALL ((uint64_t)16 * 1024) /* no line of its own; in the sum all the same */

static const char *const du_classes[ACCOUNT_CLASSES] = {
	[ACCOUNT_IMAGES] = "images",     [ACCOUNT_STEPS] = "steps", [ACCOUNT_LOGS] = "logs",
	[ACCOUNT_CONTEXTS] = "contexts", [ACCOUNT_OTHER] = "other", [ACCOUNT_UNNAMED] = "unnamed",
};

static const char *const du_class_texts[ACCOUNT_CLASSES] = {
	[ACCOUNT_IMAGES] = "of images",
	[ACCOUNT_STEPS] = "of steps that no image has",
	[ACCOUNT_LOGS] = "of logs",
	[ACCOUNT_CONTEXTS] = "of contexts",
	[ACCOUNT_OTHER] = "of indexes, and layers in another codec",
	[ACCOUNT_UNNAMED] = "that nothing names: hearth gc",
};

static const struct {
	const char *name;
	const char *text;
} du_dirs[] = {
	{"blobs", "layers and documents, and logs"},
	{"trees", "unpacked layers; made again when needed"},
	{"caches", "of RUN --mount=type=cache"},
	{"meta", "records"},
	{"contexts", "what is known of contexts' files"},
	{"uploads", "what clients are pushing"},
	{"machines", "running steps"},
	{"tmp", "what is being made"},
	{"trash", "on its way out"},
	{"run", "sockets and leases"},
	{"used", "when images were used"},
	{"reserve", "room for a collection on a full disk"},
};

static json_t *du_image_json(const struct usage_image *image)
{
	json_t *value = json_object();
	json_t *names = json_array();

	for (size_t i = 0; image->tagged && i < image->name_count; i++)
		(void)json_array_append_new(names, json_from_str(str_of(image->names[i])));
	digest_json_set(value, "digest", &image->manifest);
	(void)json_object_set_new(value, "names", names);
	json_set_size(value, "sizeBytes", image->bytes);
	json_set_size(value, "uniqueBytes", image->unique);
	json_set_size(value, "sharedBytes",
		      image->bytes > image->unique ? image->bytes - image->unique : 0);
	return value;
}

static json_t *du_layer_json(const struct usage_layer *layer)
{
	json_t *value = json_object();

	digest_json_set(value, "digest", &layer->blob);
	digest_json_set(value, "diffId", &layer->diff_id);
	json_set_size(value, "sizeBytes", layer->bytes);
	json_set_size(value, "treeBytes", layer->tree_bytes);
	json_set_int(value, "images", layer->images);
	return value;
}

static json_t *du_chunks_json(const struct account_totals *totals)
{
	json_t *value = json_object();
	json_t *classes = json_object();

	json_set_size(value, "count", totals->chunks);
	json_set_size(value, "bytes", totals->chunk_bytes);
	json_set_size(value, "blobsBytes", totals->blob_bytes);
	json_set_size(value, "sharedCount", totals->shared_chunks);
	json_set_size(value, "sharedBytes", totals->shared_bytes);
	json_set_size(value, "looseCount", totals->loose_chunks);
	for (size_t i = 0; i < ACCOUNT_CLASSES; i++)
		json_set_size(classes, du_classes[i], totals->class_bytes[i]);
	(void)json_object_set_new(value, "of", classes);
	return value;
}

static json_t *du_list_json(const struct usage_list *list)
{
	json_t *value = json_array();

	for (size_t i = 0; i < list->count; i++) {
		json_t *item = json_object();

		json_set_text(item, "name", list->at[i].name);
		json_set_text(item, "id", list->at[i].label);
		json_set_size(item, "bytes", list->at[i].bytes);
		(void)json_array_append_new(value, item);
	}
	return value;
}

static void du_print_json(const struct usage *usage)
{
	AUTO(json) json_t *value = json_object();
	json_t *databases = json_object();
	json_t *images = json_array();
	json_t *layers = json_array();

	for (size_t i = 0; i < usage->image_count; i++)
		(void)json_array_append_new(images, du_image_json(&usage->images[i]));
	for (size_t i = 0; i < usage->layer_count; i++)
		(void)json_array_append_new(layers, du_layer_json(&usage->layers[i]));
	json_set_size(value, "bytes", usage->bytes);
	json_set_size(databases, "diskBytes", usage->databases.disk_bytes);
	json_set_size(databases, "usedBytes", usage->databases.live_bytes);
	(void)json_object_set_new(value, "databases", databases);
	(void)json_object_set_new(value, "directories", du_list_json(&usage->dirs));
	(void)json_object_set_new(value, "chunks", du_chunks_json(&usage->totals));
	(void)json_object_set_new(value, "images", images);
	(void)json_object_set_new(value, "layers", layers);
	(void)json_object_set_new(value, "trees", du_list_json(&usage->trees));
	(void)json_object_set_new(value, "caches", du_list_json(&usage->caches));
	human_json(value, stdout);
}

static void du_print_amount(uint64_t bytes, const char *name, const char *text)
{
	char size[HUMAN_TEXT_MAX];

	(void)printf("%10s  %-10s%s%s\n", human_size(bytes, size), name, *name ? " " : "", text);
}

static const char *du_dir_text(const char *name)
{
	for (size_t i = 0; i < sizeof(du_dirs) / sizeof(du_dirs[0]); i++) {
		if (strcmp(du_dirs[i].name, name) == 0)
			return du_dirs[i].text;
	}
	return "";
}

static void du_print_chunks(const struct usage *usage)
{
	const struct account_totals *totals = &usage->totals;
	const struct punch_account *databases = &usage->databases;
	uint64_t used = databases->live_bytes < databases->disk_bytes ? databases->live_bytes
								      : databases->disk_bytes;
	char texts[2][HUMAN_TEXT_MAX];

	(void)printf("\nin the databases\n");
	for (size_t i = 0; i < ACCOUNT_CLASSES; i++) {
		if (totals->class_bytes[i] > 0)
			du_print_amount(totals->class_bytes[i], "", du_class_texts[i]);
	}
	du_print_amount(used > totals->chunk_bytes ? used - totals->chunk_bytes : 0, "",
			"lists, records and rounding to pages");
	du_print_amount(databases->disk_bytes - used, "", "free, to be used again");
	(void)printf("without sharing it would be %s; %s lie in several layers, or twice in one\n",
		     human_size(totals->blob_bytes, texts[0]),
		     human_size(totals->shared_bytes, texts[1]));
}

static void du_print_images(const struct usage *usage)
{
	int width = HUMAN_NAME_MIN;

	if (usage->image_count == 0)
		return;
	for (size_t i = 0; i < usage->image_count; i++)
		width = human_widen(width,
				    usage->images[i].tagged ? usage->images[i].names[0] : "-");
	(void)printf("\n%-*s %-12s %10s %10s %10s\n", width, "IMAGE", "DIGEST", "SIZE", "ITS OWN",
		     "SHARED");
	for (size_t i = 0; i < usage->image_count; i++) {
		const struct usage_image *image = &usage->images[i];
		auto_free char *name = human_text(str_of(image->tagged ? image->names[0] : "-"));
		char hex[DIGEST_HEX_MAX];
		char texts[3][HUMAN_TEXT_MAX];

		(void)printf(
			"%-*s %.12s %10s %10s %10s\n", width, name,
			digest_hex(&image->manifest, hex), human_size(image->bytes, texts[0]),
			human_size(image->unique, texts[1]),
			human_size(image->bytes > image->unique ? image->bytes - image->unique : 0,
				   texts[2]));
	}
}

static void du_print_layers(const struct usage *usage)
{
	(void)printf("\n%-12s %10s %10s %7s\n", "LAYER", "SIZE", "TREE", "IMAGES");
	for (size_t i = 0; i < usage->layer_count; i++) {
		const struct usage_layer *layer = &usage->layers[i];
		char hex[DIGEST_HEX_MAX];
		char texts[2][HUMAN_TEXT_MAX];

		(void)printf("%.12s %10s %10s %7u\n", digest_hex(&layer->blob, hex),
			     human_size(layer->bytes, texts[0]),
			     human_size(layer->tree_bytes, texts[1]), layer->images);
	}
}

static void du_print_caches(const struct usage_list *caches)
{
	if (caches->count > 0)
		(void)printf("\nCACHES\n");
	for (size_t i = 0; i < caches->count; i++) {
		const struct usage_item *item = &caches->at[i];
		auto_free char *label = human_text(str_of(item->label ? item->label : item->name));

		du_print_amount(item->bytes, "", label);
	}
}

static void du_print(const struct cli *cli, const struct usage *usage)
{
	if (cli_has(cli, "json")) {
		du_print_json(usage);
		return;
	}
	du_print_amount(usage->bytes, "", cli->data_path);
	for (size_t i = 0; i < usage->dirs.count; i++) {
		const struct usage_item *item = &usage->dirs.at[i];

		if (item->bytes > DU_SMALL)
			du_print_amount(item->bytes, item->name, du_dir_text(item->name));
	}
	du_print_chunks(usage);
	du_print_images(usage);
	if (cli_has(cli, "layers"))
		du_print_layers(usage);
	du_print_caches(&usage->caches);
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_usage struct usage usage = {0};
	int found = cli_find_store(cli, &store, err);

	if (found < 0 || (found == 1 && usage_read(store, cli->cancel, &usage, err) < 0))
		return err_ctx(err, "du");
	du_print(cli, &usage);
	return 0;
}

static const struct cli_option options[] = {
	{"layers", NULL, "list the layers, too", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_du = {
	.name = "du",
	.arguments = "",
	.summary = "show what takes space",
	.detail = "Directories are counted in blocks of the file system, as df counts. Images are\n"
		  "counted in stored bytes: ITS OWN is what no other image holds, and comes back\n"
		  "when it is removed, unless a step that is kept needs it.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.run = run,
};
