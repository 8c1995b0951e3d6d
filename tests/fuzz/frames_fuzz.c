/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a layer whose frames or whose list of chunks are anything at all
 * is read to its end, or is corrupt or too large.
 *
 * An input is a list of parts: a byte of enum fuzz_part, a byte that is added
 * to what the part says that it inflates to, a byte for the length of what
 * follows. The last may be FUZZ_LIST: the rest is done to the list of chunks.
 */
#include "layers/blob_priv.h"
#include "layers/codec_priv.h"
#include "layers/layer.h"
#include "tests/layers/listing.h"

#include <stdio.h>

#define FUZZ_PLAIN_MAX ((uint64_t)1 << 20)
#define FUZZ_FRAME_MAX ((size_t)1024)
#define FUZZ_PARENT "/dev/shm/frames-fuzz-XXXXXX"
#define FUZZ_STORE_RUNS 1000
#define FUZZ_MAP ((uint64_t)1 << 30)

enum fuzz_part { FUZZ_ZSTD, FUZZ_GZIP, FUZZ_FRAME, FUZZ_BYTES, FUZZ_LIST, FUZZ_PARTS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory, since a store syncs. */
static char fuzz_parent[sizeof(FUZZ_PARENT)];

static void fuzz_remove(void)
{
	if (fuzz_parent[0])
		scratch_remove(fuzz_parent);
}

/* A fresh one now and then, since making one takes longer than an input. */
static struct store *fuzz_store(void)
{
	static struct store *store;
	static unsigned runs;
	struct store_options options = {.map_bytes = FUZZ_MAP, .create = true};
	char path[64];
	struct err err;

	if (runs++ % FUZZ_STORE_RUNS != 0)
		return store;
	if (!store && atexit(fuzz_remove) != 0)
		abort();
	store_close(store);
	fuzz_remove();
	memcpy(fuzz_parent, FUZZ_PARENT, sizeof(FUZZ_PARENT));
	if (!mkdtemp(fuzz_parent))
		abort();
	(void)snprintf(path, sizeof(path), "%s/data", fuzz_parent);
	options.path = path;
	if (store_open(&options, &store, &err) < 0)
		abort();
	return store;
}

static int fuzz_frame(struct blob_writer *writer, struct str frame, uint32_t plain_size,
		      struct err *err)
{
	const struct fingerprint_key key = {{0}};
	struct fingerprint print;

	fingerprint_of(&key, frame, &print);
	return blob_writer_add_frame(writer, "fuzz", &print, plain_size, frame, err);
}

/* A frame of these bytes, which says that it is off by some. */
static int fuzz_compressed(struct blob_writer *writer, const struct codec *codec, struct str plain,
			   int8_t off, struct err *err)
{
	struct codec_context *context = codec->open();
	char frame[FUZZ_FRAME_MAX];
	int64_t says = (int64_t)plain.len + off;
	size_t len;
	int result = codec->compress(context, plain, frame, sizeof(frame), &len, err);

	codec->close(context);
	if (result < 0 || says <= 0)
		return result;
	return fuzz_frame(writer, (struct str){frame, len}, (uint32_t)says, err);
}

static int fuzz_part(struct blob_writer *writer, enum fuzz_part part, struct str bytes, int8_t off,
		     struct err *err)
{
	switch (part) {
	case FUZZ_ZSTD:
		return fuzz_compressed(writer, &codec_zstd, bytes, off, err);
	case FUZZ_GZIP:
		return fuzz_compressed(writer, &codec_gzip, bytes, off, err);
	case FUZZ_FRAME: /* from 1 byte to 4 GiB */
		return bytes.len == 0 ? 0
				      : fuzz_frame(writer, bytes, (uint32_t)1 << (off & 31), err);
	case FUZZ_BYTES:
		return blob_writer_add(writer, bytes, err);
	case FUZZ_LIST:
	case FUZZ_PARTS:
		break;
	}
	return 0;
}

/* What is left of the input is for the list of chunks. */
static struct str fuzz_build(struct blob_writer *writer, struct str input)
{
	struct err err;

	while (input.len >= 3 && (uint8_t)input.ptr[0] % FUZZ_PARTS != FUZZ_LIST) {
		size_t len = (uint8_t)input.ptr[2];

		if (len > input.len - 3)
			len = input.len - 3;
		if (fuzz_part(writer, (uint8_t)input.ptr[0] % FUZZ_PARTS,
			      (struct str){input.ptr + 3, len}, (int8_t)input.ptr[1], &err) < 0)
			abort();
		input.ptr += 3 + len;
		input.len -= 3 + len;
	}
	return input.len > 1 ? (struct str){input.ptr + 1, input.len - 1} : STR("");
}

struct fuzz_out {
	struct sink sink;
	uint64_t size;
};

static int fuzz_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct fuzz_out *out = container_of(sink, struct fuzz_out, sink);

	(void)err;
	for (size_t i = 0; i < bytes.len; i++)
		out->size += 1 + 0 * (uint64_t)(uint8_t)bytes.ptr[i]; /* each is read */
	return 0;
}

static void fuzz_read(struct store *store, const struct digest *blob)
{
	struct fuzz_out out = {.sink = {fuzz_write}};
	struct err err = {0};
	int rc = layer_read(store, blob, FUZZ_PLAIN_MAX, &out.sink, &err);

	if (out.size > FUZZ_PLAIN_MAX)
		abort();
	if (rc < 0 && err.kind != ERR_CORRUPT && err.kind != ERR_LIMIT)
		abort();
}

/* The first byte is how many go from the end; the others are places, and what changes there. */
static void fuzz_change(struct buf *list, struct str input)
{
	size_t cut = input.len > 0 ? (uint8_t)input.ptr[0] : 0;

	list->len -= cut < list->len ? cut : list->len;
	for (size_t i = 1; list->len > 0 && i + 1 < input.len; i += 2) {
		char *at = list->ptr + (uint8_t)input.ptr[i] % list->len;

		*at = (char)(*at ^ input.ptr[i + 1]);
	}
}

/* The first page of a blob's list of chunks (blob_entry.c), in place of which comes another. */
static void fuzz_swap_list(struct store *store, const struct digest *blob, struct str list,
			   struct buf *before)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	char name[36] = {0};
	struct str key = {name, sizeof(name)};
	struct str value;
	struct err err;

	memcpy(name, blob->bytes, 32);
	if (store_blobs(store, &blobs, &err) < 0 ||
	    db_begin(&blobs->db, DB_WRITE, &txn, &err) < 0 ||
	    db_get(&blobs->db, txn, blobs->pages, key, &value, &err) != 1 ||
	    (before && buf_add(before, value, &err) < 0))
		abort();
	if (list.ptr && (db_put(&blobs->db, txn, blobs->pages, key, list, &err) < 0 ||
			 db_commit(&blobs->db, steal_ptr(&txn), &err) < 0))
		abort();
}

/* Read the blob with its list changed, which is put right again. */
static void fuzz_read_changed(struct store *store, const struct digest *blob, struct str input)
{
	auto_buf struct buf before = BUF_INIT(BLOB_PAGE_REFS * sizeof(struct blob_ref));
	auto_buf struct buf list = BUF_INIT(BLOB_PAGE_REFS * sizeof(struct blob_ref));
	struct err err;

	fuzz_swap_list(store, blob, (struct str){0}, &before);
	if (buf_add(&list, buf_str(&before), &err) < 0)
		abort();
	fuzz_change(&list, input);
	fuzz_swap_list(store, blob, buf_str(&list), NULL);
	fuzz_read(store, blob);
	fuzz_swap_list(store, blob, buf_str(&before), NULL);
}

static void fuzz_run(struct store *store, struct str input)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;
	struct str list;
	struct err err;

	if (blob_writer_open(store, &writer, &err) < 0)
		abort();
	list = fuzz_build(writer, input);
	if (blob_writer_commit(writer, NULL, &info, &err) < 0)
		abort();
	fuzz_read(store, &info.digest);
	if (list.len > 0 && info.chunks > 0)
		fuzz_read_changed(store, &info.digest, list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(fuzz_store(), (struct str){(const char *)data, size});
	return 0;
}
