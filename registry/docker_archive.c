/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/docker_archive.h"

#include "layers/blob.h"
#include "layers/layer.h"
#include "layers/unpack.h"
#include "registry/local_names.h"
#include "registry/tar_out_priv.h"

#include <stdio.h>

/* Counts and hashes what passes; out may be NULL. */
struct measure {
	struct sink sink;
	struct sink *out;
	struct hasher hasher;
	uint64_t size;
};

static int measure_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct measure *measure = container_of(sink, struct measure, sink);

	measure->size += bytes.len;
	if (!measure->out)
		return 0;
	hasher_add(&measure->hasher, bytes);
	return measure->out->write(measure->out, bytes, err);
}

/* By the frames of a layer that we made: 1 and its size, 0 it is another's, -1. */
static int docker_framed_size(struct store *store, const struct digest *blob, uint64_t *out,
			      struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct blob_chunk chunk;
	struct str bytes;
	int more;

	*out = 0;
	if (blob_reader_open(store, blob, &reader, err) < 0)
		return -1;
	while ((more = blob_reader_next(reader, &bytes, &chunk, err)) == 1) {
		if (chunk.plain_size == 0)
			return 0;
		*out += chunk.plain_size;
	}
	return more < 0 ? -1 : *out > 0;
}

/* A tar header wants the size before the bytes, so a layer of unknown size is inflated twice. */
static int docker_plain_size(struct store *store, const struct digest *blob, uint64_t *out,
			     struct err *err)
{
	struct measure measure = {.sink = {measure_write}};
	int known = docker_framed_size(store, blob, out, err);

	if (known != 0)
		return known < 0 ? -1 : 0;
	if (layer_read(store, blob, UNPACK_BYTES_MAX, &measure.sink, err) < 0)
		return -1;
	*out = measure.size;
	return 0;
}

static int docker_copy_layer(struct store *store, const struct digest *blob,
			     const struct digest *diff_id, uint64_t size, struct sink *out,
			     struct err *err)
{
	struct measure measure = {.sink = {measure_write}, .out = out};
	char text[DIGEST_TEXT_MAX];
	struct digest found;
	int result;

	hasher_init_as(&measure.hasher, diff_id->algorithm);
	result = layer_read(store, blob, size, &measure.sink, err);
	if (result == 0)
		hasher_final(&measure.hasher, &found);
	hasher_done(&measure.hasher);
	if (result < 0)
		return -1;
	if (measure.size != size || !digest_equal(&found, diff_id))
		return err_set(err, ERR_CORRUPT,
			       "layer %s: its tar is not the one that the config "
			       "names",
			       digest_format(blob, text));
	return 0;
}

static const char *docker_name(const struct digest *digest, const char *suffix,
			       char name[static TAR_OUT_NAME_MAX])
{
	char text[DIGEST_TEXT_MAX];

	(void)snprintf(name, TAR_OUT_NAME_MAX, "%s%s", strchr(digest_format(digest, text), ':') + 1,
		       suffix);
	return name;
}

static int docker_write_layer(struct store *store, const struct descriptor *layer,
			      const struct digest *diff_id, struct sink *out, struct err *err)
{
	char name[TAR_OUT_NAME_MAX];
	uint64_t size;

	if (docker_plain_size(store, &layer->digest, &size, err) < 0 ||
	    tar_out_begin_file(out, docker_name(diff_id, ".tar", name), size, err) < 0 ||
	    docker_copy_layer(store, &layer->digest, diff_id, size, out, err) < 0)
		return -1;
	return tar_out_end_file(out, size, err);
}

/* A layer that comes twice lies there once. */
static bool docker_is_first(const struct image_config *config, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (digest_equal(&config->diff_ids[i], &config->diff_ids[at]))
			return false;
	}
	return true;
}

static int docker_write_list(const struct manifest *manifest, const struct image_config *config,
			     const json_t *names, struct sink *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	AUTO(json) json_t *document = NULL;
	json_t *layers = json_array();
	char name[TAR_OUT_NAME_MAX];

	for (size_t i = 0; i < config->diff_id_count; i++)
		(void)json_array_append_new(
			layers, json_string(docker_name(&config->diff_ids[i], ".tar", name)));
	document = json_pack("[{s:s, s:o, s:o}]", "Config",
			     docker_name(&manifest->config.digest, ".json", name), "RepoTags",
			     names ? json_deep_copy(names) : json_array(), "Layers", layers);
	if (!document)
		abort();
	if (json_format(document, &text, err) < 0)
		return -1;
	return tar_out_file(out, "manifest.json", buf_str(&text), err);
}

static int docker_write_all(struct store *store, const struct manifest *manifest,
			    const json_t *names, struct sink *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_image_config struct image_config config = {0};
	char name[TAR_OUT_NAME_MAX];

	if (blob_read_all(store, &manifest->config.digest, &text, err) < 0 ||
	    image_config_parse(buf_str(&text), &config, err) < 0)
		return -1;
	if (config.diff_id_count != manifest->layer_count)
		return err_set(err, ERR_CORRUPT, "the manifest has %zu layers and the config %zu",
			       manifest->layer_count, config.diff_id_count);
	docker_name(&manifest->config.digest, ".json", name);
	if (docker_write_list(manifest, &config, names, out, err) < 0 ||
	    tar_out_file(out, name, buf_str(&text), err) < 0)
		return -1;
	for (size_t i = 0; i < manifest->layer_count; i++) {
		if (docker_is_first(&config, i) &&
		    docker_write_layer(store, &manifest->layers[i], &config.diff_ids[i], out, err) <
			    0)
			return -1;
	}
	return tar_out_end(out, err);
}

int docker_archive_write(struct store *store, const struct docker_archive_spec *spec,
			 struct sink *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	bool index;

	if (blob_read_all(store, &spec->image, &text, err) < 0 ||
	    manifest_is_index(buf_str(&text), &index, err) < 0)
		return -1;
	if (index)
		return err_set(err, ERR_INVALID,
			       "docker-archive: holds the image of one platform, and this is of "
			       "several; name one with --platform, or write oci-archive:");
	if (manifest_parse(buf_str(&text), &manifest, err) < 0 ||
	    local_names_take(store, &manifest, err) < 0)
		return -1;
	return docker_write_all(store, &manifest, spec->names, out, err);
}
