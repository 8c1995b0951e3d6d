/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/text.h"

#include "layers/blob.h"
#include "layers/codec_priv.h"
#include "layers/fingerprint.h"
#include "layers/layer.h"

#define TEXT_FRAME ((size_t)128 * 1024) /* plain bytes */

/* A text on its way into the store. */
struct text_writer {
	struct blob_writer *blob;
	struct fingerprint_key key;
	struct codec_context *context;
	char codec[CODEC_NAME_MAX];
	char *frame; /* owned; room for the largest */
};

static int text_add_frame(struct text_writer *writer, struct str plain, struct err *err)
{
	struct fingerprint print;
	size_t len;
	int known;

	fingerprint_of(&writer->key, plain, &print);
	known = blob_writer_add_known(writer->blob, writer->codec, &print, err);
	if (known != 0)
		return known < 0 ? -1 : 0;
	if (codec_zstd.compress(writer->context, plain, writer->frame, codec_zstd.bound(TEXT_FRAME),
				&len, err) < 0)
		return -1;
	return blob_writer_add_frame(writer->blob, writer->codec, &print, (uint32_t)plain.len,
				     (struct str){writer->frame, len}, err);
}

static int text_write(struct text_writer *writer, struct str text, struct digest *out,
		      struct err *err)
{
	struct blob_info info;

	for (size_t at = 0; at < text.len; at += TEXT_FRAME) {
		size_t rest = text.len - at;
		struct str plain = {text.ptr + at, rest < TEXT_FRAME ? rest : TEXT_FRAME};

		if (text_add_frame(writer, plain, err) < 0)
			return -1;
	}
	if (blob_writer_commit(writer->blob, NULL, &info, err) < 0)
		return -1;
	*out = info.digest;
	return 0;
}

int text_put(struct store *store, struct str text, struct digest *out, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *blob = NULL;
	auto_free char *frame = malloc(codec_zstd.bound(TEXT_FRAME));
	struct text_writer writer = {.frame = frame};
	int result;

	if (!frame)
		abort();
	if (fingerprint_key(store, &writer.key, err) < 0 || blob_writer_open(store, &blob, err) < 0)
		return -1;
	writer.blob = blob;
	writer.context = codec_zstd.open();
	codec_zstd.name(writer.codec);
	result = text_write(&writer, text, out, err);
	codec_zstd.close(writer.context);
	return result;
}

static int text_read_frame(struct codec_context *context, struct str frame,
			   const struct blob_chunk *chunk, struct sink *out, struct err *err)
{
	auto_free char *plain = malloc(LAYER_CUT_MAX);

	if (!plain)
		abort();
	if (chunk->plain_size == 0 || chunk->plain_size > LAYER_CUT_MAX)
		return err_set(err, ERR_CORRUPT, "a frame of %u plain bytes", chunk->plain_size);
	if (codec_zstd.inflate(context, frame, plain, chunk->plain_size, err) < 0)
		return -1;
	return out->write(out, (struct str){plain, chunk->plain_size}, err);
}

int text_copy(struct store *store, const struct digest *blob, struct sink *out, struct err *err)
{
	AUTO(blob_reader) struct blob_reader *reader = NULL;
	struct codec_context *context;
	struct blob_chunk chunk;
	struct str frame;
	int more;

	if (blob_reader_open(store, blob, &reader, err) < 0)
		return -1;
	context = codec_zstd.open();
	while ((more = blob_reader_next(reader, &frame, &chunk, err)) == 1) {
		if (text_read_frame(context, frame, &chunk, out, err) < 0)
			break;
	}
	codec_zstd.close(context);
	return more == 0 ? 0 : -1;
}
