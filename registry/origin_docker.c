/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_docker.c - docker-archive: what `docker save` writes.
 *
 *	manifest.json  [{"Config": NAME, "RepoTags": [REF..], "Layers": [NAME..]}..]
 *
 * A name is that of a file in the archive: <hex>.json and <id>/layer.tar, which
 * may be a link to another's, of older versions; blobs/sha256/<hex> of newer
 * ones. It has no manifest that a registry would know, so one is made, always
 * the same of the same archive: the config's bytes as they are, and the layers
 * as they lie there, which are plain tars whose digests the config has, or
 * compressed, and then read once for theirs.
 */
#include "layers/layer.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"
#include "registry/tar_index_priv.h"

#include <inttypes.h>

#define DOCKER_IMAGES_MAX 1000

struct origin_docker_blob {
	struct digest digest;
	struct tar_file file;
};

struct origin_docker {
	struct origin origin;
	const struct reference *reference;
	struct tar_index *tar;            /* owned */
	struct buf manifest;              /* made by resolve, with these: */
	struct origin_docker_blob *blobs; /* owned: the layers, and the config */
	size_t blob_count;
};

/* A text that may be any spelling of a name. */
static bool origin_docker_name_is(const json_t *value, struct str canonical)
{
	auto_buf struct buf text = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct reference reference;
	struct err ignored;

	return json_is_string(value) &&
	       reference_parse(json_str(value), &reference, &ignored) == 0 &&
	       reference_format(&reference, &text, &ignored) == 0 &&
	       str_equal(buf_str(&text), canonical);
}

static bool origin_docker_image_is(const json_t *image, struct str canonical)
{
	const json_t *tags = json_object_get(image, "RepoTags");
	const json_t *tag;
	size_t at;

	json_array_foreach(tags, at, tag)
	{
		if (origin_docker_name_is(tag, canonical))
			return true;
	}
	return false;
}

/* What there is to choose from, for the error. */
static int origin_docker_no_such_image(const json_t *list, struct str wanted, struct err *err)
{
	auto_buf struct buf names = BUF_INIT(300);
	struct err full;
	const json_t *image;
	size_t at;

	json_array_foreach(list, at, image)
	{
		const json_t *name = json_array_get(json_object_get(image, "RepoTags"), 0);

		if (json_is_string(name) &&
		    buf_addf(&names, &full, "%s" STR_FMT, names.len ? ", " : "",
			     STR_ARG(json_str(name))) < 0)
			break;
	}
	if (json_array_size(list) == 0)
		return err_set(err, ERR_NOT_FOUND, "the archive holds no image");
	if (wanted.len == 0)
		return err_set(err, ERR_INVALID,
			       "the archive holds %zu images; name one behind the file (there is "
			       "%s)",
			       json_array_size(list), names.len ? names.ptr : "none with a name");
	return err_set(err, ERR_NOT_FOUND, "the archive has no " STR_FMT "; there is %s",
		       STR_ARG(wanted), names.len ? names.ptr : "none with a name");
}

/* The image of that name; without one, the only one. */
static int origin_docker_choose(const json_t *list, struct str wanted, const json_t **out,
				struct err *err)
{
	const json_t *image;
	size_t at;

	if (!json_is_array(list))
		return err_set(err, ERR_CORRUPT, "manifest.json is no list");
	if (json_array_size(list) > DOCKER_IMAGES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d images", DOCKER_IMAGES_MAX);
	json_array_foreach(list, at, image)
	{
		if (wanted.len > 0 ? origin_docker_image_is(image, wanted)
				   : json_array_size(list) == 1) {
			*out = image;
			return 0;
		}
	}
	return origin_docker_no_such_image(list, wanted, err);
}

static int origin_docker_find(const struct origin_docker *archive, struct str name,
			      struct tar_file *out, struct err *err)
{
	int found = tar_index_find(archive->tar, name, out, err);

	if (found == 0)
		return err_set(err, ERR_CORRUPT, "the archive has no " STR_FMT, STR_ARG(name));
	return found < 0 ? -1 : 0;
}

struct origin_docker_hasher {
	struct sink sink;
	struct hasher hasher;
};

static int origin_docker_hash_write(struct sink *sink, struct str bytes, struct err *err)
{
	(void)err;
	hasher_add(&container_of(sink, struct origin_docker_hasher, sink)->hasher, bytes);
	return 0;
}

static int origin_docker_hash(const struct origin_docker *archive, const struct tar_file *file,
			      struct digest *out, struct err *err)
{
	struct origin_docker_hasher hash = {.sink = {origin_docker_hash_write}};
	int result;

	hasher_init(&hash.hasher);
	result = tar_index_copy(archive->tar, file, &hash.sink, err);
	if (result == 0)
		hasher_final(&hash.hasher, out);
	hasher_done(&hash.hasher);
	return result;
}

/* What a layer is, by its first bytes: manifest.json does not say. */
static const char *origin_docker_media_type(struct str first)
{
	enum layer_codec codec;

	return inflater_recognizes(first, &codec) ? manifest_layer_type(codec)
						  : MEDIA_OCI_LAYER_TAR;
}

static json_t *origin_docker_descriptor(const char *media_type,
					const struct origin_docker_blob *blob)
{
	char text[DIGEST_TEXT_MAX];
	json_t *value =
		json_pack("{s:s, s:s, s:I}", "mediaType", media_type, "digest",
			  digest_format(&blob->digest, text), "size", (json_int_t)blob->file.size);

	if (!value)
		abort();
	return value;
}

static int origin_docker_add_layer(struct origin_docker *archive, struct str name,
				   const struct digest *diff_id, json_t *layers, struct err *err)
{
	struct origin_docker_blob *blob = &archive->blobs[archive->blob_count];
	char first[INFLATER_FIRST];
	const char *media_type;
	ssize_t n;

	if (origin_docker_find(archive, name, &blob->file, err) < 0)
		return -1;
	n = tar_index_peek(archive->tar, &blob->file, first, sizeof(first), err);
	if (n < 0)
		return -1;
	media_type = origin_docker_media_type((struct str){first, (size_t)n});
	blob->digest = *diff_id;
	if (strcmp(media_type, MEDIA_OCI_LAYER_TAR) != 0 &&
	    origin_docker_hash(archive, &blob->file, &blob->digest, err) < 0)
		return -1;
	archive->blob_count++;
	(void)json_array_append_new(layers, origin_docker_descriptor(media_type, blob));
	return 0;
}

static int origin_docker_add_layers(struct origin_docker *archive, const json_t *names,
				    const struct image_config *config, json_t *layers,
				    struct err *err)
{
	json_t *name;
	size_t at;

	if (config->diff_id_count != json_array_size(names))
		return err_set(err, ERR_CORRUPT, "the image has %zu layers and its config %zu",
			       json_array_size(names), config->diff_id_count);
	json_array_foreach(names, at, name)
	{
		if (!json_is_string(name))
			return err_set(err, ERR_CORRUPT, "manifest.json: a layer without a name");
		if (origin_docker_add_layer(archive, json_str(name), &config->diff_ids[at], layers,
					    err) < 0)
			return err_ctx(err, "layer %zu", at + 1);
	}
	return 0;
}

/* <hex>.json, or blobs/<algorithm>/<hex>: a config that says what it is. */
static int origin_docker_check_config(struct str name, struct str text, struct err *err)
{
	struct str stem = name;
	const char *slash = name.len ? memrchr(name.ptr, '/', name.len) : NULL;
	char said[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err none;
	int n;

	if (slash)
		stem = (struct str){slash + 1, name.len - (size_t)(slash + 1 - name.ptr)};
	if (stem.len > 5 && memcmp(stem.ptr + stem.len - 5, ".json", 5) == 0)
		stem.len -= 5;
	n = snprintf(said, sizeof(said), "sha%s:" STR_FMT, stem.len == 128 ? "512" : "256",
		     STR_ARG(stem));
	if (n < 0 || (size_t)n >= sizeof(said) || digest_parse(str_of(said), &digest, &none) < 0 ||
	    digest_is_of(&digest, text))
		return 0;
	return err_set(err, ERR_CORRUPT, "the archive's " STR_FMT " is not what its name says",
		       STR_ARG(name));
}

static int origin_docker_add_config(struct origin_docker *archive, struct str name,
				    struct image_config *config, struct err *err)
{
	struct origin_docker_blob *blob = &archive->blobs[archive->blob_count];
	auto_buf struct buf text = BUF_INIT(IMAGE_CONFIG_MAX);

	if (origin_docker_find(archive, name, &blob->file, err) < 0 ||
	    tar_index_read(archive->tar, name, &text, err) < 0)
		return -1;
	digest_of(buf_str(&text), &blob->digest);
	if (origin_docker_check_config(name, buf_str(&text), err) < 0 ||
	    image_config_parse(buf_str(&text), config, err) < 0)
		return -1;
	archive->blob_count++;
	return 0;
}

static int origin_docker_make_manifest(struct origin_docker *archive, struct str config_name,
				       const json_t *names, struct err *err)
{
	auto_image_config struct image_config config = {0};
	AUTO(json) json_t *layers = json_array();
	AUTO(json) json_t *document = NULL;

	if (json_array_size(names) > IMAGE_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d layers", IMAGE_LAYERS_MAX);
	archive->blobs = calloc(json_array_size(names) + 1, sizeof(*archive->blobs));
	if (!archive->blobs)
		abort();
	if (origin_docker_add_config(archive, config_name, &config, err) < 0 ||
	    origin_docker_add_layers(archive, names, &config, layers, err) < 0)
		return -1;
	document = json_pack("{s:i, s:s, s:o, s:O}", "schemaVersion", 2, "mediaType",
			     MEDIA_OCI_MANIFEST, "config",
			     origin_docker_descriptor(MEDIA_OCI_CONFIG, &archive->blobs[0]),
			     "layers", layers);
	if (!document)
		abort();
	return json_format(document, &archive->manifest, err);
}

/* The image of manifest.json that was asked for, as a document that the caller owns. */
static int origin_docker_read_list(const struct origin_docker *archive, json_t **out,
				   struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct tar_file file;
	struct err why = {0};

	if (tar_index_read(archive->tar, STR("manifest.json"), &text, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		if (tar_index_find(archive->tar, STR("index.json"), &file, &why) == 1)
			return err_set(err, ERR_CORRUPT,
				       "an archive of an OCI layout; oci-archive: reads it");
		return err_set(err, ERR_CORRUPT,
			       "no manifest.json, as docker save has written since 1.10");
	}
	if (json_parse(buf_str(&text), MANIFEST_MAX, out, &why) < 0)
		return err_set(err, ERR_CORRUPT, "manifest.json: %s", why.text);
	return 0;
}

static int origin_docker_resolve(struct origin *origin, struct digest *out, struct err *err)
{
	struct origin_docker *archive = container_of(origin, struct origin_docker, origin);
	AUTO(json) json_t *list = NULL;
	const json_t *image = NULL;
	const json_t *config;
	const json_t *tag;
	size_t at;

	if (archive->manifest.len == 0) {
		if (origin_docker_read_list(archive, &list, err) < 0 ||
		    origin_docker_choose(list, archive->reference->tag, &image, err) < 0)
			return -1;
		config = json_object_get(image, "Config");
		if (!json_is_string(config))
			return err_set(err, ERR_CORRUPT, "manifest.json: an image without Config");
		if (origin_docker_make_manifest(archive, json_str(config),
						json_object_get(image, "Layers"), err) < 0)
			return -1;
		json_array_foreach(json_object_get(image, "RepoTags"), at, tag)
		{
			if (json_is_string(tag))
				origin_add_name(origin, json_str(tag));
		}
	}
	digest_of(buf_str(&archive->manifest), out);
	return 0;
}

static int origin_docker_document(struct origin *origin, const struct digest *digest,
				  struct buf *out, struct err *err)
{
	const struct origin_docker *archive = container_of(origin, struct origin_docker, origin);
	char text[DIGEST_TEXT_MAX];
	struct digest made;

	digest_of(buf_str(&archive->manifest), &made);
	if (!digest_equal(digest, &made))
		return err_set(err, ERR_NOT_FOUND, "the archive has no %s",
			       digest_format(digest, text));
	return buf_add(out, buf_str(&archive->manifest), err);
}

static int origin_docker_blob(struct origin *origin, size_t lane, const struct descriptor *blob,
			      struct sink *out, struct err *err)
{
	const struct origin_docker *archive = container_of(origin, struct origin_docker, origin);
	char text[DIGEST_TEXT_MAX];

	(void)lane; /* files need no connection */
	for (size_t i = 0; i < archive->blob_count; i++) {
		if (digest_equal(&archive->blobs[i].digest, &blob->digest))
			return tar_index_copy(archive->tar, &archive->blobs[i].file, out, err);
	}
	return err_set(err, ERR_NOT_FOUND, "the archive has no %s",
		       digest_format(&blob->digest, text));
}

static void origin_docker_close(struct origin *origin)
{
	struct origin_docker *archive = container_of(origin, struct origin_docker, origin);

	tar_index_close(archive->tar);
	json_decref(origin->names);
	buf_done(&archive->manifest);
	free(archive->blobs);
	free(archive);
}

void origin_docker_open(const struct pull_spec *spec, struct tar_index *tar, struct origin **out)
{
	struct origin_docker *archive = calloc(1, sizeof(*archive));

	if (!archive)
		abort();
	archive->origin = (struct origin){.resolve = origin_docker_resolve,
					  .document = origin_docker_document,
					  .blob = origin_docker_blob,
					  .close = origin_docker_close};
	archive->reference = spec->reference;
	archive->tar = tar;
	archive->manifest = BUF_INIT(MANIFEST_MAX);
	*out = &archive->origin;
}
