/* SPDX-License-Identifier: Apache-2.0 */
/* variant_make.c - a layer read in one codec and written in the other. */
#include "layers/inflate_priv.h"
#include "layers/layer.h"
#include "layers/proof.h"
#include "layers/variant.h"

/* From a layer's reader to a layer's writer. */
struct variant_pipe {
	struct sink sink;
	struct layer_writer *writer;
	const struct cancel *cancel;
	bool frames;         /* each piece was a chunk, and becomes one again */
	struct hasher other; /* of the tar, for a diff id that is no sha256 */
};

static int variant_pass(struct sink *sink, struct str bytes, struct err *err)
{
	struct variant_pipe *pipe = container_of(sink, struct variant_pipe, sink);
	struct sink *to = layer_writer_sink(pipe->writer);

	if (cancel_check(pipe->cancel, err) < 0 || to->write(to, bytes, err) < 0)
		return -1;
	if (pipe->other.md)
		hasher_add(&pipe->other, bytes);
	return pipe->frames ? layer_writer_cut(pipe->writer, err) : 0;
}

/* What a blob is, by its first chunk. */
struct variant_look {
	bool frames; /* of ours */
	bool is[LAYER_CODECS];
};

static int variant_look(struct store *store, const struct digest *blob, struct variant_look *out,
			struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct blob_chunk chunk = {0};
	struct str first = {0};

	if (blob_reader_open(store, blob, &reader, err) < 0 ||
	    blob_reader_next(reader, &first, &chunk, err) < 0)
		return -1;
	out->frames = chunk.plain_size > 0;
	out->is[LAYER_GZIP] = inflate_gzip.starts(first);
	out->is[LAYER_ZSTD] = inflate_zstd.starts(first);
	return 0;
}

/* All of the layer through the pipe, whose tar is the one of the diff id. */
static int variant_pump(struct store *store, const struct variant_source *source,
			struct variant_pipe *pipe, struct layer_info *out, struct err *err)
{
	struct digest found;

	if (layer_read(store, &source->blob, source->max_bytes, &pipe->sink, err) < 0 ||
	    layer_writer_finish(pipe->writer, out, err) < 0)
		return -1;
	found = out->diff_id;
	if (pipe->other.md)
		hasher_final(&pipe->other, &found);
	return proof_compare(&found, &source->diff_id, err);
}

/* What this conversion has shown, and what it made. */
static int variant_record(struct store *store, const struct variant_source *source,
			  enum layer_codec codec, const struct layer_info *made, struct err *err)
{
	const struct variant variant = {made->blob, made->blob_size};
	AUTO(meta) struct meta *meta = NULL;
	struct digest blob;

	if (blob_find_id(store, &source->blob, &blob, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    proof_put(meta, &blob, &made->diff_id, err) < 0 ||
	    proof_put(meta, &blob, &source->diff_id, err) < 0 ||
	    proof_put(meta, &made->blob, &made->diff_id, err) < 0 ||
	    variant_put(meta, &made->diff_id, codec, &variant, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int variant_convert(struct store *store, const struct variant_source *source, bool frames,
			   enum layer_codec codec, struct variant *out, struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct variant_pipe pipe = {{variant_pass}, .cancel = source->cancel, .frames = frames};
	struct layer_info info;
	int result;

	if (layer_writer_open(store, codec, &writer, err) < 0)
		return -1;
	pipe.writer = writer;
	if (source->diff_id.algorithm != DIGEST_SHA256)
		hasher_init_as(&pipe.other, source->diff_id.algorithm);
	result = variant_pump(store, source, &pipe, &info, err);
	hasher_done(&pipe.other);
	if (result < 0 || variant_record(store, source, codec, &info, err) < 0)
		return -1;
	*out = (struct variant){info.blob, info.blob_size};
	return 0;
}

/* One that is remembered, of a layer that is known to be the tar: 1, 0, -1. */
static int variant_find_proven(struct store *store, const struct variant_source *source,
			       enum layer_codec codec, struct variant *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest blob;
	struct digest tar;
	int found = blob_find_id(store, &source->blob, &blob, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = proof_check(meta, &blob, &source->diff_id, &tar, err);
	return found == 1 ? variant_find(store, meta, &tar, codec, out, err) : found;
}

int variant_make(struct store *store, const struct variant_source *source, enum layer_codec codec,
		 struct variant *out, struct err *err)
{
	struct variant_look look;
	int found;

	if (variant_look(store, &source->blob, &look, err) < 0)
		return -1;
	if (look.is[codec]) {
		*out = (struct variant){source->blob, source->size};
		return 0;
	}
	found = variant_find_proven(store, source, codec, out, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	return variant_convert(store, source, look.frames, codec, out, err);
}
