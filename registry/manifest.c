/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/manifest_priv.h"

#include <ctype.h>
#include <inttypes.h>

#define MANIFEST_CONFIG_DOCKER "application/vnd.docker.container.image.v1+json"

const char *manifest_layer_type(enum layer_codec codec)
{
	static const char *const types[LAYER_CODECS] = {
		[LAYER_ZSTD] = MEDIA_OCI_LAYER_ZSTD,
		[LAYER_GZIP] = MEDIA_OCI_LAYER_GZIP,
	};

	return types[codec];
}

const char *manifest_layer_word(struct str media_type)
{
	static const char *const words[] = {"gzip", "zstd", "tar"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if (media_type.len > len &&
		    memcmp(media_type.ptr + media_type.len - len, words[i], len) == 0)
			return words[i];
	}
	return "?";
}

int manifest_refuse(const char *what, const struct err *why, struct err *err)
{
	return err_set(err, why->kind == ERR_INVALID ? ERR_CORRUPT : why->kind, "%s: %s", what,
		       why->text);
}

static bool str_has(struct str text, const char *word)
{
	return text.len > 0 && memmem(text.ptr, text.len, word, strlen(word));
}

static int manifest_load_document(struct str text, json_t **out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	int64_t version = 2;

	if (json_parse(text, MANIFEST_MAX, &document, err) < 0)
		return -1;
	if (!json_is_object(document))
		return err_set(err, ERR_INVALID, "not a JSON object");
	if (json_get_int(document, "", "schemaVersion", &version, err) < 0)
		return -1;
	if (version == 1)
		return err_set(err, ERR_UNSUPPORTED,
			       "schema 1, which was given up years ago; push the image again "
			       "with a current tool");
	if (version != 2)
		return err_set(err, ERR_UNSUPPORTED, "schema version %" PRId64, version);
	*out = steal_ptr(&document);
	return 0;
}

static size_t manifest_digest_word(struct str text, size_t at, const char *others)
{
	while (at < text.len && text.ptr[at] &&
	       (isdigit((unsigned char)text.ptr[at]) || islower((unsigned char)text.ptr[at]) ||
		strchr(others, text.ptr[at])))
		at++;
	return at;
}

/* Whether a digest is well formed, and of an algorithm that nobody here knows. */
static bool manifest_is_strange_digest(struct str text)
{
	size_t colon = manifest_digest_word(text, 0, "+._-");

	if (colon == 0 || colon + 1 >= text.len || text.ptr[colon] != ':' ||
	    str_starts(text, STR("sha256:")) || str_starts(text, STR("sha512:")))
		return false;
	return manifest_digest_word(text, colon + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ=_-") == text.len;
}

int manifest_read_descriptor(const json_t *value, const char *path, struct descriptor *out,
			     struct err *err)
{
	struct descriptor descriptor = {.media_type = STR("")};
	struct str digest;
	int64_t size;

	if (!json_is_object(value))
		return err_set(err, ERR_INVALID, "%s: expected an object", path);
	if (json_get_string(value, path, "mediaType", &descriptor.media_type, err) < 0 ||
	    json_need_string(value, path, "digest", &digest, err) < 0 ||
	    json_need_int(value, path, "size", &size, err) < 0)
		return -1;
	if (size < 0)
		return err_set(err, ERR_INVALID, "%s.size: less than 0", path);
	if (manifest_is_strange_digest(digest))
		return err_set(err, ERR_UNSUPPORTED,
			       "%s.digest: only sha256 and sha512 are supported", path);
	if (digest_parse(digest, &descriptor.digest, err) < 0)
		return err_ctx(err, "%s.digest", path);
	descriptor.size = (uint64_t)size;
	*out = descriptor;
	return 0;
}

bool manifest_is_config(struct str media_type)
{
	return media_type.len == 0 || str_equal(media_type, STR(MEDIA_OCI_CONFIG)) ||
	       str_equal(media_type, STR(MANIFEST_CONFIG_DOCKER));
}

static int manifest_check_config(const struct descriptor *config, struct err *err)
{
	if (!manifest_is_config(config->media_type))
		return err_set(err, ERR_UNSUPPORTED,
			       "not a container image but an artifact (its config is " STR_FMT ")",
			       STR_ARG(config->media_type));
	if (config->size > IMAGE_CONFIG_MAX)
		return err_set(err, ERR_LIMIT, "image config of more than %zu bytes",
			       IMAGE_CONFIG_MAX);
	return 0;
}

bool manifest_is_foreign(struct str media_type)
{
	return str_has(media_type, "nondistributable") || str_has(media_type, ".foreign.");
}

static int manifest_check_layer(const struct descriptor *layer, size_t at, struct err *err)
{
	if (manifest_is_foreign(layer->media_type))
		return err_set(err, ERR_UNSUPPORTED,
			       "layers[%zu] is not distributed with the image (" STR_FMT
			       "), as in Windows images",
			       at, STR_ARG(layer->media_type));
	if (str_has(layer->media_type, "+encrypted"))
		return err_set(err, ERR_UNSUPPORTED, "layers[%zu] is encrypted", at);
	return 0;
}

static int manifest_read_layers(const json_t *list, struct manifest *out, struct err *err)
{
	json_t *item;
	size_t at;

	if (json_array_size(list) > MANIFEST_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d layers", MANIFEST_LAYERS_MAX);
	out->layers = calloc(json_array_size(list) + 1, sizeof(*out->layers));
	if (!out->layers)
		abort();
	json_array_foreach(list, at, item)
	{
		char path[32];

		(void)snprintf(path, sizeof(path), "layers[%zu]", at);
		if (manifest_read_descriptor(item, path, &out->layers[at], err) < 0 ||
		    manifest_check_layer(&out->layers[at], at, err) < 0)
			return -1;
		out->layer_count = at + 1;
	}
	return 0;
}

static bool manifest_document_has(const json_t *document, const char *key)
{
	const json_t *value = json_object_get(document, key);

	return value && !json_is_null(value);
}

/* CVE-2021-41190: one document, an index to one reader and a manifest to another. */
static int manifest_document_kind(const json_t *document, bool *out_index, struct err *err)
{
	bool entries = manifest_document_has(document, "manifests");
	bool layers = manifest_document_has(document, "layers") ||
		      manifest_document_has(document, "config");
	struct str type = STR("");
	bool index;

	if (entries && layers)
		return err_set(err, ERR_INVALID, "both an index and a manifest");
	if (json_get_string(document, "", "mediaType", &type, err) < 0)
		return -1;
	index = str_equal(type, STR(MEDIA_OCI_INDEX)) || str_equal(type, STR(MEDIA_DOCKER_LIST));
	if ((index && layers) || (entries && (str_equal(type, STR(MEDIA_OCI_MANIFEST)) ||
					      str_equal(type, STR(MEDIA_DOCKER_MANIFEST)))))
		return err_set(err, ERR_INVALID, "its mediaType is not what it is");
	*out_index = index || entries;
	return 0;
}

int manifest_load(struct str text, json_t **out, bool *out_index, struct err *err)
{
	AUTO(json) json_t *document = NULL;

	if (manifest_load_document(text, &document, err) < 0 ||
	    manifest_document_kind(document, out_index, err) < 0)
		return -1;
	*out = steal_ptr(&document);
	return 0;
}

static int manifest_read(struct str text, struct manifest *out, struct err *err)
{
	json_t *layers = NULL;
	json_t *config;
	bool index = false;

	if (manifest_load(text, &out->document, &index, err) < 0)
		return -1;
	if (index)
		return err_set(err, ERR_UNSUPPORTED, "an index where a manifest was expected");
	out->media_type = STR(MEDIA_OCI_MANIFEST);
	if (json_get_string(out->document, "", "mediaType", &out->media_type, err) < 0 ||
	    json_need_object(out->document, "", "config", &config, err) < 0 ||
	    manifest_read_descriptor(config, "config", &out->config, err) < 0 ||
	    manifest_check_config(&out->config, err) < 0 ||
	    json_get_array(out->document, "", "layers", &layers, err) < 0)
		return -1;
	return manifest_read_layers(layers, out, err);
}

int manifest_parse(struct str text, struct manifest *out, struct err *err)
{
	auto_manifest struct manifest manifest = {0};
	struct err why = {0};

	if (manifest_read(text, &manifest, &why) < 0)
		return manifest_refuse("manifest", &why, err);
	*out = manifest;
	manifest = (struct manifest){0};
	return 0;
}

void manifest_done(struct manifest *manifest)
{
	json_decref(manifest->document);
	free(manifest->layers);
	*manifest = (struct manifest){0};
}

int manifest_is_index(struct str text, bool *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct err why = {0};

	if (manifest_load(text, &document, out, &why) < 0)
		return manifest_refuse("manifest", &why, err);
	return 0;
}

/* The choice so far, and the platforms seen, for the error. */
struct manifest_choice {
	const struct platform *wanted;
	struct descriptor best;
	int best_rank;          /* 0 while nothing matches */
	struct descriptor bare; /* the last entry without a platform */
	size_t bare_count;
	size_t image_count;
	struct buf seen;
};

static void manifest_note_choice(struct manifest_choice *choice, const struct platform *platform)
{
	char text[PLATFORM_TEXT_MAX];
	struct err full;

	/* A list that is too long to show ends where it is full. */
	if (buf_addf(&choice->seen, &full, "%s%s", choice->seen.len ? ", " : "",
		     platform_format(platform, text)) < 0)
		return;
}

int manifest_entry_platform(const json_t *entry, struct platform *out, struct err *err)
{
	json_t *platform = NULL;
	struct str os = STR("");
	struct str architecture = STR("");
	struct str variant = STR("");
	int found = json_get_object(entry, "platform", "platform", &platform, err);

	if (found <= 0)
		return found;
	if (json_get_string(platform, "platform", "os", &os, err) < 0 ||
	    json_get_string(platform, "platform", "architecture", &architecture, err) < 0 ||
	    json_get_string(platform, "platform", "variant", &variant, err) < 0)
		return -1;
	if (os.len == 0 && architecture.len == 0)
		return 0;
	if (platform_set(out, os, architecture, variant, err) < 0)
		*out = (struct platform){.os = "unknown"}; /* one odd entry spoils no index */
	return 1;
}

static bool manifest_entry_is_index(const struct descriptor *entry)
{
	return str_equal(entry->media_type, STR(MEDIA_OCI_INDEX)) ||
	       str_equal(entry->media_type, STR(MEDIA_DOCKER_LIST));
}

static bool manifest_entry_is_image(const struct descriptor *entry)
{
	return entry->media_type.len == 0 ||
	       str_equal(entry->media_type, STR(MEDIA_OCI_MANIFEST)) ||
	       str_equal(entry->media_type, STR(MEDIA_DOCKER_MANIFEST));
}

static int manifest_consider(struct manifest_choice *choice, const json_t *value, size_t at,
			     struct err *err)
{
	struct descriptor entry;
	struct platform offered;
	struct err why = {0};
	char path[32];
	int found;
	int rank;

	(void)snprintf(path, sizeof(path), "manifests[%zu]", at);
	if (manifest_read_descriptor(value, path, &entry, &why) < 0) {
		/* An entry of an unknown algorithm is somebody else's. */
		if (why.kind == ERR_UNSUPPORTED)
			return 0;
		return err_set(err, why.kind, "%s", why.text);
	}
	if (!manifest_entry_is_image(&entry))
		return 0;
	choice->image_count++;
	found = manifest_entry_platform(value, &offered, err);
	if (found < 0)
		return err_ctx(err, "%s", path);
	if (found == 0) {
		choice->bare = entry;
		choice->bare_count++;
		return 0;
	}
	if (strcmp(offered.os, "unknown") != 0) /* attestations call themselves so */
		manifest_note_choice(choice, &offered);
	rank = platform_rank(choice->wanted, &offered);
	if (rank > choice->best_rank) {
		choice->best = entry;
		choice->best_rank = rank;
	}
	return 0;
}

static int manifest_judge_choice(struct manifest_choice *choice, struct err *err)
{
	char text[PLATFORM_TEXT_MAX];

	if (choice->best_rank > 0)
		return 0;
	if (choice->bare_count == 1 && choice->image_count == 1) {
		choice->best = choice->bare; /* its config will say what it is for */
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "no image for %s; there is %s",
		       platform_format(choice->wanted, text),
		       choice->seen.len ? choice->seen.ptr : "none at all");
}

static int manifest_choose_from(const json_t *document, struct manifest_choice *choice,
				struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t at;

	if (json_get_array(document, "", "manifests", &list, err) < 0)
		return -1;
	if (json_array_size(list) > MANIFEST_INDEX_MAX)
		return err_set(err, ERR_LIMIT, "more than %d entries", MANIFEST_INDEX_MAX);
	json_array_foreach(list, at, item)
	{
		if (manifest_consider(choice, item, at, err) < 0)
			return -1;
	}
	return manifest_judge_choice(choice, err);
}

int manifest_choose(struct str index_text, const struct platform *wanted, struct descriptor *out,
		    struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct manifest_choice choice = {.wanted = wanted, .seen = BUF_INIT(300)};
	struct err why = {0};
	int result;

	result = manifest_load_document(index_text, &document, &why);
	if (result == 0)
		result = manifest_choose_from(document, &choice, &why);
	buf_done(&choice.seen);
	if (result < 0)
		return manifest_refuse("index", &why, err);
	*out = (struct descriptor){.digest = choice.best.digest, .size = choice.best.size};
	return 0;
}

static int manifest_find_index(const json_t *document, size_t at, struct descriptor *out,
			       struct err *err)
{
	const json_t *item;
	json_t *list = NULL;
	size_t i;

	if (json_get_array(document, "", "manifests", &list, err) < 0)
		return -1;
	json_array_foreach(list, i, item)
	{
		struct descriptor entry;
		struct err odd;

		/* What cannot be read was judged by manifest_choose(). */
		if (manifest_read_descriptor(item, "manifests", &entry, &odd) < 0 ||
		    !manifest_entry_is_index(&entry) || at-- > 0)
			continue;
		*out = (struct descriptor){.digest = entry.digest, .size = entry.size};
		return 1;
	}
	return 0;
}

int manifest_index_in(struct str index_text, size_t at, struct descriptor *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct err why = {0};
	int found = manifest_load_document(index_text, &document, &why);

	if (found == 0)
		found = manifest_find_index(document, at, out, &why);
	return found < 0 ? manifest_refuse("index", &why, err) : found;
}

int manifest_platforms(struct str text, json_t **out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	AUTO(json) json_t *list = json_array();
	struct err why = {0};
	const json_t *entry;
	size_t at;
	bool index;

	if (manifest_load(text, &document, &index, &why) < 0)
		return manifest_refuse("index", &why, err);
	json_array_foreach(json_object_get(document, "manifests"), at, entry)
	{
		char shown[PLATFORM_TEXT_MAX];
		struct platform platform;

		if (manifest_entry_platform(entry, &platform, &why) == 1 &&
		    strcmp(platform.os, "unknown") != 0)
			(void)json_array_append_new(list,
						    json_string(platform_format(&platform, shown)));
	}
	*out = steal_ptr(&list);
	return 0;
}
