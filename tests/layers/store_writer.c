/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_writer.c - a process that fills a store until it is killed.
 *
 *	store_writer DIR SEED COUNT [POINT]
 *
 * Prints "open" once the store is, and the digest of each blob once it is
 * durable and a record names it. With POINT it kills itself while it makes the
 * last of COUNT blobs: added, spilled, committed or recorded.
 */
#include "layers/blob.h"
#include "layers/meta.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define WRITER_MAP ((uint64_t)1 << 30)
#define WRITER_PIECE ((size_t)64 * 1024)
#define WRITER_FEW 24
#define WRITER_MANY 160 /* more than a batch */

struct writer {
	struct store *store;
	uint64_t seed;
	const char *point; /* NULL, or where this blob's making ends */
	char piece[WRITER_PIECE];
};

static void die_at(const struct writer *writer, const char *point)
{
	if (writer->point && strcmp(writer->point, point) == 0)
		(void)raise(SIGKILL);
}

static uint64_t next(struct writer *writer)
{
	writer->seed ^= writer->seed << 13;
	writer->seed ^= writer->seed >> 7;
	writer->seed ^= writer->seed << 17;
	return writer->seed;
}

/* Small blobs share pieces, large ones are new. */
static struct str piece(struct writer *writer, bool fresh)
{
	uint64_t which = fresh ? next(writer) : next(writer) % 61;

	for (size_t i = 0; i < WRITER_PIECE; i += sizeof(which)) {
		uint64_t word = which * 0x9e3779b97f4a7c15 + i;

		memcpy(writer->piece + i, &word, sizeof(word));
	}
	return (struct str){writer->piece, WRITER_PIECE};
}

/* As frames, every other time: those are committed with their fingerprint. */
static int add_pieces(struct writer *writer, struct blob_writer *blob, struct err *err)
{
	bool many = writer->point || next(writer) % 8 == 0;
	size_t pieces = many ? WRITER_MANY : next(writer) % WRITER_FEW;

	for (size_t i = 0; i < pieces; i++) {
		struct str bytes = piece(writer, many);
		const struct fingerprint_key key = {{0}};
		struct fingerprint plain;
		int known = 0;

		fingerprint_of(&key, bytes, &plain);
		if (i % 2 == 0)
			known = blob_writer_add_known(blob, "test", &plain, err);
		else if (blob_writer_add(blob, bytes, err) < 0)
			return -1;
		if (known < 0 || (i % 2 == 0 && known == 0 &&
				  blob_writer_add_frame(blob, "test", &plain, 1, bytes, err) < 0))
			return -1;
		if (i == 0)
			die_at(writer, "added");
	}
	die_at(writer, "spilled"); /* the first batch is committed */
	return 0;
}

static int record(struct writer *writer, const char *digest, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *value = json_pack("{s:i}", "v", 1);

	if (meta_begin(writer->store, META_WRITE, &meta, err) < 0 ||
	    meta_put(meta, "written", str_of(digest), value, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int write_one(struct writer *writer, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *blob = NULL;
	char text[DIGEST_TEXT_MAX];
	struct blob_info info;

	if (blob_writer_open(writer->store, &blob, err) < 0 || add_pieces(writer, blob, err) < 0 ||
	    blob_writer_commit(blob, NULL, &info, err) < 0)
		return -1;
	die_at(writer, "committed");
	if (record(writer, digest_format(&info.digest, text), err) < 0)
		return -1;
	die_at(writer, "recorded");
	printf("%s\n", text);
	(void)fflush(stdout);
	return 0;
}

static int write_all(const char *path, uint64_t count, const char *point, struct writer *writer,
		     struct err *err)
{
	struct store_options options = {.path = path, .map_bytes = WRITER_MAP, .create = true};

	if (store_open(&options, &writer->store, err) < 0)
		return -1;
	printf("open\n");
	(void)fflush(stdout);
	for (uint64_t i = 1; i <= count; i++) {
		writer->point = i == count ? point : NULL;
		if (write_one(writer, err) < 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct writer writer;
	uint64_t count;
	struct err err;

	if (argc < 4 || argc > 5)
		return 2;
	writer.seed = strtoumax(argv[2], NULL, 10) * 2 + 1;
	count = strtoumax(argv[3], NULL, 10);
	if (write_all(argv[1], count, argv[4], &writer, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	store_close(writer.store);
	return 0;
}
