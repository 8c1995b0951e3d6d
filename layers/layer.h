/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.h - a tar stream as a compressed layer, and back.
 *
 * A layer is a tar (its sha256 is the diff id) in a compressed blob. One that
 * we make is cut by content (FastCDC on the tar: 16/64/256 KiB, with a cut
 * forced where the data of a file of 64 KiB or more starts); every chunk is
 * one complete zstd frame or gzip member, so the chunks that deduplicate in
 * the store are the very bytes of a standard tar+zstd or tar+gzip blob, made
 * and inflated on all cores.
 *
 * Formats: OCI image-spec 1.1, layer.md; RFC 8878 (zstd), RFC 1952 (gzip).
 * A foreign layer may be zstd, gzip (any number of members) or plain, told by
 * its first bytes and not by its media type; what follows the last stream and
 * is no other stream (padding) is part of the blob and not of the tar.
 *
 * Memory, whatever the layer's size: a writer holds two chunks and frames a
 * worker and 14 more, 1 MiB of context a worker, and 40 bytes a chunk (3 MiB
 * for 4 GiB): 26 MiB with LAYER_WORKERS_MAX workers, 14 with two, beside the 12
 * MiB of blob.h. A reader holds as many frames, and hardly any context. An
 * inflater holds the window of its stream: 32 KiB for gzip, 8 MiB for most of
 * zstd, and never more than INFLATER_WINDOW_MAX.
 */
#pragma once

#include "layers/blob.h"
#include "layers/codec.h"

#define LAYER_CUT_MIN ((size_t)16 * 1024)
#define LAYER_CUT_NORMAL ((size_t)64 * 1024)
#define LAYER_CUT_MAX ((size_t)256 * 1024)
#define LAYER_FILE_CUT ((size_t)64 * 1024) /* data of larger files starts a chunk */
#define LAYER_WORKERS_MAX ((size_t)8)
#define INFLATER_WINDOW_MAX ((size_t)128 * 1024 * 1024) /* what the zstd program takes unasked */

struct layer_info {
	struct digest blob;
	struct digest diff_id;
	uint64_t blob_size; /* bytes */
	uint64_t tar_size;  /* bytes */
	uint64_t new_bytes; /* compressed bytes that the store did not have */
};

/*
 * Takes bytes and makes a durable blob of them: a layer's tar, or a long log
 * (step_log.h), cut and compressed the same way.
 */
struct layer_writer;
int layer_writer_open(struct store *store, enum layer_codec codec, struct layer_writer **out,
		      struct err *err) MUST_CHECK;
void layer_writer_close(struct layer_writer *writer);
struct sink *layer_writer_sink(struct layer_writer *writer);

/* The next byte written starts a chunk. */
int layer_writer_cut(struct layer_writer *writer, struct err *err) MUST_CHECK;

/* The end of the bytes; the blob is durable when this returns 0. */
int layer_writer_finish(struct layer_writer *writer, struct layer_info *out, struct err *err)
	MUST_CHECK;

/*
 * Inflate what is written to it into a sink, in the caller's thread. Ceilings
 * guard against bombs: more than max_plain bytes is ERR_LIMIT. Truncated or
 * damaged streams are ERR_CORRUPT.
 */
struct inflater;
int inflater_open(struct sink *out, uint64_t max_plain, struct inflater **inflater, struct err *err)
	MUST_CHECK;
void inflater_close(struct inflater *inflater);
int inflater_write(struct inflater *inflater, struct str bytes, struct err *err) MUST_CHECK;
int inflater_finish(struct inflater *inflater, struct err *err) MUST_CHECK;

/* After that: how many bytes behind the last stream were ignored. */
uint64_t inflater_behind(const struct inflater *inflater);

/* The format that bytes which begin so are compressed in, if any; INFLATER_FIRST are enough. */
#define INFLATER_FIRST ((size_t)4)
bool inflater_recognizes(struct str first, enum layer_codec *out);

/* What is no tar and begins so (6 bytes are enough): the program that inflates it, or NULL. */
const char *inflater_other(struct str first);

/*
 * The plain tar of a stored layer, to a sink, in order; frames that we made
 * are inflated on all cores.
 */
int layer_read(struct store *store, const struct digest *blob, uint64_t max_plain, struct sink *out,
	       struct err *err) MUST_CHECK;

DEFINE_AUTO(layer_writer, struct layer_writer *, layer_writer_close);
DEFINE_AUTO(inflater, struct inflater *, inflater_close);
