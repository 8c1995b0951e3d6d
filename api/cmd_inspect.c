/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_inspect.c - `hearth inspect`: what an image is. */
#include "api/cli.h"
#include "api/human.h"
#include "api/lookup.h"
#include "layers/blob.h"
#include "layers/digest_json.h"

static void inspect_line(const char *title, const json_t *value)
{
	auto_free char *text = human_text(json_str(value));

	(void)printf("%-12s%s\n", title, text);
}

static void inspect_strings(const char *title, const json_t *array)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		inspect_line(i == 0 ? title : "", json_array_get(array, i));
}

static void inspect_string(const char *title, const json_t *value)
{
	if (json_string_length(value) > 0)
		inspect_line(title, value);
}

static void inspect_layers(const struct lookup *image)
{
	char digest[DIGEST_TEXT_MAX];
	char size[HUMAN_TEXT_MAX];

	for (size_t i = 0; i < image->manifest.layer_count; i++) {
		const struct descriptor *layer = &image->manifest.layers[i];
		auto_free char *type = human_text(layer->media_type);

		(void)printf("%-12s%s %10s  %s\n", i == 0 ? "layers" : "",
			     digest_format(&layer->digest, digest), human_size(layer->size, size),
			     type);
	}
}

/* Of the index that the image was chosen from. */
static int inspect_read_platforms(struct store *store, const struct lookup *image, json_t **out,
				  struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);

	if (digest_equal(&image->target, &image->digest)) {
		*out = json_array();
		return 0;
	}
	if (blob_read_all(store, &image->target, &text, err) < 0)
		return -1;
	return manifest_platforms(buf_str(&text), out, err);
}

static void inspect_print(const struct lookup *image, const json_t *platforms)
{
	const json_t *config = json_object_get(image->config.document, "config");
	char text[DIGEST_TEXT_MAX];
	char platform[PLATFORM_TEXT_MAX];
	char size[HUMAN_TEXT_MAX];

	(void)printf("%-12s%s\n", "digest", digest_format(&image->digest, text));
	(void)printf("%-12s%s\n", "config", digest_format(&image->manifest.config.digest, text));
	(void)printf("%-12s%s\n", "platform", platform_format(&image->config.platform, platform));
	inspect_strings("of", platforms);
	(void)printf("%-12s%s\n", "size", human_size(lookup_size(image), size));
	inspect_string("created", json_object_get(image->config.document, "created"));
	inspect_string("workdir", json_object_get(config, "WorkingDir"));
	inspect_string("user", json_object_get(config, "User"));
	inspect_strings("env", json_object_get(config, "Env"));
	inspect_strings("entrypoint", json_object_get(config, "Entrypoint"));
	inspect_strings("cmd", json_object_get(config, "Cmd"));
	inspect_layers(image);
}

static void inspect_json(const struct lookup *image, json_t *platforms)
{
	AUTO(json) json_t *value = json_object();

	digest_json_set(value, "digest", &image->digest);
	json_set_size(value, "sizeBytes", lookup_size(image));
	if (json_array_size(platforms) > 0) {
		digest_json_set(value, "index", &image->target);
		(void)json_object_set(value, "platforms", platforms);
	}
	(void)json_object_set(value, "manifest", image->manifest.document);
	(void)json_object_set(value, "config", image->config.document);
	human_json(value, stdout);
}

static int run(struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	auto_lookup struct lookup image = LOOKUP_INIT;
	AUTO(json) json_t *platforms = NULL;

	if (lookup_named(cli, &store, &image, err) < 0 ||
	    inspect_read_platforms(store, &image, &platforms, err) < 0)
		return -1;
	if (cli_has(cli, "json"))
		inspect_json(&image, platforms);
	else
		inspect_print(&image, platforms);
	return 0;
}

static const struct cli_option options[] = {
	LOOKUP_OPTION_PLATFORM,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_inspect = {
	.name = "inspect",
	.arguments = "IMAGE",
	.summary = "show an image's configuration and layers",
	.detail = "IMAGE is a tag, a digest, or six hex digits or more of its beginning.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
