/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_writer.c - a tar becomes chunks: bytes are collected until it is known
 * where they are cut, and given to frames.c, which makes a blob of them.
 */
#include "layers/base/embed.h"
#include "layers/cut_priv.h"
#include "layers/frames_priv.h"

#define WRITER_BUFFER (4 * LAYER_CUT_MAX) /* bytes not cut yet; what is over moves to the front */

struct layer_writer {
	struct sink sink;
	struct frames *frames;
	struct cutter cutter;
	uint64_t tar_size;
	char *buffer; /* owned; WRITER_BUFFER bytes */
	size_t buffered;
};

/* Cut what is buffered while a cut cannot move any more; all of it at an end. */
static int writer_cut_buffer(struct layer_writer *writer, bool all, struct err *err)
{
	size_t at = 0;

	while (writer->buffered - at >= LAYER_CUT_MAX || (all && at < writer->buffered)) {
		struct str rest = {writer->buffer + at, writer->buffered - at};
		size_t n = cutter_find(&writer->cutter, rest);

		if (frames_add(writer->frames, (struct str){rest.ptr, n}, err) < 0)
			return -1;
		at += n;
	}
	memmove(writer->buffer, writer->buffer + at, writer->buffered - at);
	writer->buffered -= at;
	return 0;
}

static int writer_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct layer_writer *writer = container_of(sink, struct layer_writer, sink);

	writer->tar_size += bytes.len;
	while (bytes.len > 0) {
		size_t n = WRITER_BUFFER - writer->buffered;

		if (n > bytes.len)
			n = bytes.len;
		memcpy(writer->buffer + writer->buffered, bytes.ptr, n);
		writer->buffered += n;
		bytes.ptr += n;
		bytes.len -= n;
		if (writer->buffered == WRITER_BUFFER && writer_cut_buffer(writer, false, err) < 0)
			return -1;
	}
	return 0;
}

int layer_writer_open(struct store *store, enum layer_codec codec, struct layer_writer **out,
		      struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		abort();
	writer->sink.write = writer_write;
	cutter_init(&writer->cutter);
	writer->buffer = malloc(WRITER_BUFFER);
	if (!writer->buffer)
		abort();
	if (frames_open(store, codec, &writer->frames, err) < 0)
		return -1;
	*out = steal_ptr(&writer);
	return 0;
}

void layer_writer_close(struct layer_writer *writer)
{
	if (!writer)
		return;
	frames_close(writer->frames);
	free(writer->buffer);
	free(writer);
}

struct sink *layer_writer_sink(struct layer_writer *writer)
{
	return &writer->sink;
}

int layer_writer_cut(struct layer_writer *writer, struct err *err)
{
	return writer_cut_buffer(writer, true, err);
}

int layer_writer_finish(struct layer_writer *writer, struct layer_info *out, struct err *err)
{
	struct layer_info info;

	if (writer_cut_buffer(writer, true, err) < 0 ||
	    frames_finish(writer->frames, &info, err) < 0)
		return -1;
	info.tar_size = writer->tar_size;
	*out = info;
	return 0;
}
