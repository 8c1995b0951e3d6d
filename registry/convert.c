/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/convert.h"

#include "layers/blob.h"
#include "layers/digest_json.h"
#include "layers/unpack.h"
#include "layers/variant.h"
#include "registry/manifest.h"

struct conversion {
	struct store *store;
	enum layer_codec codec;
	const struct cancel *cancel;
};

/* A document of the store, as it is before and after. */
struct converted {
	struct digest digest;
	uint64_t size; /* bytes */
};

static bool convert_type_fits(struct str type, enum layer_codec codec)
{
	return str_equal(type, str_of(manifest_layer_type(codec))) ||
	       (codec == LAYER_GZIP && str_equal(type, STR(MEDIA_DOCKER_LAYER_GZIP)));
}

/* Whether it is a layer, and not an attestation's or another artifact's blob. */
static bool convert_is_layer(const struct descriptor *layer)
{
	return layer->media_type.len == 0 ||
	       memmem(layer->media_type.ptr, layer->media_type.len, ".tar", strlen(".tar"));
}

static bool convert_is_image(const struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->layer_count; i++) {
		if (!convert_is_layer(&manifest->layers[i]))
			return false;
	}
	return true;
}

/* The annotations of a layer that stay true in another codec. NULL for none. */
static json_t *convert_annotations(json_t *entry)
{
	static const char *const of_the_bytes[] = {"containerd.io/snapshot/stargz/",
						   "io.containers.estargz.",
						   "io.github.containers.zstd-chunked."};
	json_t *kept = json_copy(json_object_get(entry, "annotations"));
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(kept, next, key, value)
	{
		for (size_t i = 0; i < sizeof(of_the_bytes) / sizeof(of_the_bytes[0]); i++) {
			if (!str_starts(str_of(key), str_of(of_the_bytes[i])))
				continue;
			(void)json_object_del(kept, key);
			break;
		}
	}
	if (json_object_size(kept) > 0)
		return kept;
	json_decref(kept);
	return NULL;
}

static json_t *convert_entry(json_t *entry, const char *media_type, const struct variant *variant)
{
	json_t *value = json_object();
	json_t *annotations = convert_annotations(entry);

	json_set_text(value, "mediaType", media_type);
	digest_json_set(value, "digest", &variant->blob);
	json_set_size(value, "size", variant->size);
	if (annotations)
		(void)json_object_set_new(value, "annotations", annotations);
	return value;
}

/* The layers of the document, one by one: each uses all cores. */
static int convert_layers(const struct conversion *conversion, const struct manifest *manifest,
			  const struct image_config *config, bool *out_changed, struct err *err)
{
	json_t *entries = json_object_get(manifest->document, "layers");
	char text[DIGEST_TEXT_MAX];
	bool changed = false;

	if (config->diff_id_count != manifest->layer_count)
		return err_set(err, ERR_CORRUPT, "the manifest has %zu layers and the config %zu",
			       manifest->layer_count, config->diff_id_count);
	for (size_t i = 0; i < manifest->layer_count; i++) {
		const struct descriptor layer = manifest->layers[i];
		const struct variant_source source = {.blob = layer.digest,
						      .diff_id = config->diff_ids[i],
						      .size = layer.size,
						      .max_bytes = UNPACK_BYTES_MAX,
						      .cancel = conversion->cancel};
		bool fits = convert_type_fits(layer.media_type, conversion->codec);
		struct variant variant;

		if (variant_make(conversion->store, &source, conversion->codec, &variant, err) < 0)
			return err_ctx(err, "layer %s", digest_format(&layer.digest, text));
		changed = changed || !fits || !digest_equal(&variant.blob, &layer.digest);
		(void)json_array_set_new(entries, i,
					 convert_entry(json_array_get(entries, i),
						       manifest_layer_type(conversion->codec),
						       &variant));
	}
	*out_changed = changed;
	return 0;
}

static int convert_put(const struct conversion *conversion, const json_t *document,
		       struct converted *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);

	if (json_format(document, &text, err) < 0 ||
	    blob_put(conversion->store, buf_str(&text), &out->digest, err) < 0)
		return -1;
	out->size = text.len;
	return 0;
}

static int convert_manifest(const struct conversion *conversion, struct str text,
			    struct converted *out, struct err *err)
{
	auto_buf struct buf config_text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_image_config struct image_config config = {0};
	auto_manifest struct manifest manifest = {0};
	bool changed = false;

	if (manifest_parse(text, &manifest, err) < 0)
		return -1;
	if (!convert_is_image(&manifest))
		return 0;
	if (blob_read_all(conversion->store, &manifest.config.digest, &config_text, err) < 0 ||
	    image_config_parse(buf_str(&config_text), &config, err) < 0 ||
	    convert_layers(conversion, &manifest, &config, &changed, err) < 0)
		return -1;
	if (!changed)
		return 0;
	json_set_text(manifest.document, "mediaType", MEDIA_OCI_MANIFEST);
	json_set_text(json_object_get(manifest.document, "config"), "mediaType", MEDIA_OCI_CONFIG);
	return convert_put(conversion, manifest.document, out, err);
}

/* An entry of an index whose manifest was converted names the new one. */
static void convert_replace(json_t *entry, const struct converted *converted)
{
	json_set_text(entry, "mediaType", MEDIA_OCI_MANIFEST);
	digest_json_set(entry, "digest", &converted->digest);
	json_set_size(entry, "size", converted->size);
	(void)json_object_del(entry, "data");
}

/* 1 its manifest changed, 0 it stays, -1. */
static int convert_child(const struct conversion *conversion, json_t *entry, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct converted converted = {0};
	struct digest digest;
	char name[DIGEST_TEXT_MAX];
	struct blob_info held;
	bool index;
	int found;

	if (digest_json_need(entry, "manifests", "digest", &digest, err) < 0)
		return -1;
	found = blob_find(conversion->store, &digest, &held, err);
	if (found <= 0)
		return found;
	if (blob_read_all(conversion->store, &digest, &text, err) < 0 ||
	    manifest_is_index(buf_str(&text), &index, err) < 0)
		return -1;
	if (index)
		return 0;
	converted = (struct converted){digest, text.len};
	if (convert_manifest(conversion, buf_str(&text), &converted, err) < 0)
		return err_ctx(err, "manifest %s", digest_format(&digest, name));
	if (digest_equal(&converted.digest, &digest))
		return 0;
	convert_replace(entry, &converted);
	return 1;
}

static int convert_index(const struct conversion *conversion, struct str text,
			 struct converted *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	json_t *entries;
	json_t *entry;
	bool changed = false;
	size_t i;

	if (json_parse(text, MANIFEST_MAX, &document, err) < 0 ||
	    json_need_array(document, "", "manifests", &entries, err) < 0)
		return -1;
	json_array_foreach(entries, i, entry)
	{
		int result = convert_child(conversion, entry, err);

		if (result < 0)
			return -1;
		changed = changed || result == 1;
	}
	if (!changed)
		return 0;
	json_set_text(document, "mediaType", MEDIA_OCI_INDEX);
	return convert_put(conversion, document, out, err);
}

int convert_image(struct store *store, const struct digest *manifest, enum layer_codec codec,
		  const struct cancel *cancel, struct digest *out, struct err *err)
{
	const struct conversion conversion = {store, codec, cancel};
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct converted converted = {.digest = *manifest};
	bool index;
	int result;

	if (blob_read_all(store, manifest, &text, err) < 0 ||
	    manifest_is_index(buf_str(&text), &index, err) < 0)
		return -1;
	result = index ? convert_index(&conversion, buf_str(&text), &converted, err)
		       : convert_manifest(&conversion, buf_str(&text), &converted, err);
	if (result < 0)
		return -1;
	*out = converted.digest;
	return 0;
}
