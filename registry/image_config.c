/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/image_config.h"

#include <stdio.h>

static int image_config_read_diff_ids(const json_t *document, struct image_config *out,
				      struct err *err)
{
	json_t *rootfs = NULL;
	json_t *list = NULL;
	json_t *item;
	size_t at;

	if (json_get_object(document, "", "rootfs", &rootfs, err) < 0)
		return -1;
	if (rootfs && json_get_array(rootfs, "rootfs", "diff_ids", &list, err) < 0)
		return -1;
	if (json_array_size(list) > IMAGE_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d layers", IMAGE_LAYERS_MAX);
	out->diff_ids = calloc(json_array_size(list) + 1, sizeof(*out->diff_ids));
	if (!out->diff_ids)
		abort();
	json_array_foreach(list, at, item)
	{
		if (!json_is_string(item) ||
		    digest_parse(json_str(item), &out->diff_ids[at], err) < 0)
			return err_set(err, ERR_INVALID,
				       "rootfs.diff_ids[%zu]: expected a sha256 or sha512 digest",
				       at);
		out->diff_id_count = at + 1;
	}
	return 0;
}

static int image_config_read_platform(const json_t *document, struct platform *out, struct err *err)
{
	struct str os = STR("");
	struct str architecture = STR("");
	struct str variant = STR("");

	if (json_get_string(document, "", "os", &os, err) < 0 ||
	    json_get_string(document, "", "architecture", &architecture, err) < 0 ||
	    json_get_string(document, "", "variant", &variant, err) < 0)
		return -1;
	if (os.len == 0 && architecture.len == 0)
		return 0;
	return platform_set(out, os, architecture, variant, err);
}

static int image_config_check_texts(const json_t *config, const char *key, struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t at;

	if (json_get_array(config, "config", key, &list, err) < 0)
		return -1;
	json_array_foreach(list, at, item)
	{
		if (!json_is_string(item))
			return err_set(err, ERR_INVALID,
				       "config.%s[%zu]: expected a string, found %s", key, at,
				       json_type_name(json_typeof(item)));
	}
	return 0;
}

/* Check what steps run with; later nobody does. */
static int image_config_check_process(const json_t *config, struct err *err)
{
	static const char *const texts[] = {"Env", "Shell", "Entrypoint", "Cmd"};
	struct str ignored;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (image_config_check_texts(config, texts[i], err) < 0)
			return -1;
	}
	if (json_get_string(config, "config", "User", &ignored, err) < 0 ||
	    json_get_string(config, "config", "WorkingDir", &ignored, err) < 0)
		return -1;
	return 0;
}

static int image_config_read(struct str text, struct image_config *out, struct err *err)
{
	json_t *config = NULL;

	if (json_parse(text, IMAGE_CONFIG_MAX, &out->document, err) < 0)
		return -1;
	if (!json_is_object(out->document))
		return err_set(err, ERR_INVALID, "not a JSON object");
	if (json_get_object(out->document, "", "config", &config, err) < 0 ||
	    (config && image_config_check_process(config, err) < 0) ||
	    image_config_read_platform(out->document, &out->platform, err) < 0)
		return -1;
	return image_config_read_diff_ids(out->document, out, err);
}

int image_config_parse(struct str text, struct image_config *out, struct err *err)
{
	auto_image_config struct image_config config = {0};
	struct err why = {0};

	if (image_config_read(text, &config, &why) < 0)
		return err_set(err, why.kind == ERR_INVALID ? ERR_CORRUPT : why.kind,
			       "image config: %s", why.text);
	*out = config;
	config = (struct image_config){0};
	return 0;
}

void image_config_done(struct image_config *config)
{
	json_decref(config->document);
	free(config->diff_ids);
	*config = (struct image_config){0};
}

void image_config_chain_id(const struct digest *parent, const struct digest *diff_id,
			   struct digest *out)
{
	char text[2 * DIGEST_TEXT_MAX];
	char upper[DIGEST_TEXT_MAX];
	char lower[DIGEST_TEXT_MAX];

	if (!parent) {
		*out = *diff_id;
		return;
	}
	(void)snprintf(text, sizeof(text), "%s %s", digest_format(parent, lower),
		       digest_format(diff_id, upper));
	digest_of(str_of(text), out);
}
