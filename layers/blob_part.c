/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob_part.h"

#include "layers/blob_priv.h"

#include <assert.h>
#include <sys/mman.h>

#define BLOB_PART_PAGE ((uintptr_t)4096) /* of memory: the smallest that there is */
#define BLOB_PART_PAGES (BLOB_CHUNK_MAX / BLOB_PART_PAGE + 2) /* that a chunk may touch */

int blob_part_open(struct store *store, const struct digest *digest, struct blob_part *out,
		   struct err *err)
{
	const struct store_blobs *blobs;
	AUTO(txn) MDB_txn *txn = NULL;
	struct blob_entry entry;
	int found;

	if (store_blobs(store, &blobs, err) < 0 || db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	found = blob_entry_find(blobs, txn, digest, &entry, err);
	if (found == 1)
		*out = (struct blob_part){.store = store,
					  .blob = entry.digest,
					  .size = entry.size,
					  .chunks = entry.chunks};
	return found;
}

/* One call: what is wanted, and its view of the store. */
struct blob_part_look {
	char *out;
	size_t max;
	enum blob_part_where where;
	const struct store_blobs *blobs;
	MDB_txn *txn;
	struct blob_entry entry;
	uint64_t page; /* of the list: whose refs are there */
	struct str refs;
};

/* The ref of chunk number part->chunk, which is there. */
static int blob_part_ref(const struct blob_part *part, struct blob_part_look *look,
			 struct blob_chunk *out, struct err *err)
{
	uint64_t page = part->chunk / BLOB_PAGE_REFS;
	struct blob_ref ref;

	if (!look->refs.ptr || look->page != page) {
		if (blob_entry_view_page(look->blobs, look->txn, &look->entry, page, &look->refs,
					 err) < 0)
			return -1;
		look->page = page;
	}
	assert(look->refs.ptr);
	memcpy(&ref, look->refs.ptr + part->chunk % BLOB_PAGE_REFS * sizeof(ref), sizeof(ref));
	blob_ref_read(&ref, out);
	return 0;
}

/* Go to the chunk that holds this byte, which is before the end. */
static int blob_part_seek(struct blob_part *part, struct blob_part_look *look, uint64_t at,
			  struct blob_chunk *out, struct err *err)
{
	if (at < part->before)
		part->chunk = part->before = 0;
	while (part->chunk < part->chunks) {
		if (blob_part_ref(part, look, out, err) < 0)
			return -1;
		if (at - part->before < out->size)
			return 0;
		part->before += out->size;
		part->chunk++;
	}
	return err_set(err, ERR_CORRUPT,
		       "a blob's list of chunks is shorter than it; " BLOB_ADVICE);
}

/* Of these bytes of the map, how many from the first on need no disk. */
static size_t blob_part_resident(struct str bytes)
{
	uintptr_t first = (uintptr_t)bytes.ptr / BLOB_PART_PAGE * BLOB_PART_PAGE;
	size_t skipped = (uintptr_t)bytes.ptr - first;
	unsigned char in_memory[BLOB_PART_PAGES];
	size_t pages = (skipped + bytes.len + BLOB_PART_PAGE - 1) / BLOB_PART_PAGE;
	size_t n = 0;

	if (mincore(drop_const(bytes.ptr - skipped), pages * BLOB_PART_PAGE, in_memory) < 0)
		return 0;
	while (n < pages && (in_memory[n] & 1))
		n++;
	if (n == pages)
		return bytes.len;
	return n == 0 ? 0 : n * BLOB_PART_PAGE - skipped;
}

static int blob_part_lost(const struct blob_part *part, const struct blob_chunk *chunk,
			  struct err *err)
{
	char blob[DIGEST_TEXT_MAX];
	char id[DIGEST_TEXT_MAX];

	return err_set(err, ERR_CORRUPT,
		       "blob %s: chunk %s is missing or has another size; " BLOB_ADVICE,
		       digest_format(&part->blob, blob), digest_format(&chunk->id, id));
}

/* What one chunk has of it: 0 where nothing of that is in memory. */
static ssize_t blob_part_copy(struct blob_part *part, struct blob_part_look *look, uint64_t at,
			      struct err *err)
{
	struct blob_chunk chunk;
	struct str bytes;
	int found;

	if (blob_part_seek(part, look, at, &chunk, err) < 0)
		return -1;
	found = chunk_find(look->blobs, look->txn, &chunk.id, &bytes, err);
	if (found < 0)
		return -1;
	if (found == 0 || bytes.len != chunk.size)
		return blob_part_lost(part, &chunk, err);
	bytes = str_skip(bytes, (size_t)(at - part->before));
	if (bytes.len > look->max)
		bytes.len = look->max;
	if (look->where == BLOB_PART_IN_MEMORY)
		bytes.len = blob_part_resident(bytes);
	memcpy(look->out, bytes.ptr, bytes.len);
	look->out += bytes.len;
	look->max -= bytes.len;
	return (ssize_t)bytes.len;
}

ssize_t blob_part_read(struct blob_part *part, uint64_t at, char *out, size_t max,
		       enum blob_part_where where, struct err *err)
{
	uint64_t left = at < part->size ? part->size - at : 0;
	struct blob_part_look look = {
		.out = out,
		.max = max < left ? max : (size_t)left,
		.where = where,
		.entry = {.digest = part->blob, .size = part->size, .chunks = part->chunks},
	};
	AUTO(txn) MDB_txn *txn = NULL;
	ssize_t n = 1;

	if (look.max == 0)
		return 0;
	if (store_blobs(part->store, &look.blobs, err) < 0 ||
	    db_begin(&look.blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	look.txn = txn;
	while (look.max > 0 && n > 0)
		n = blob_part_copy(part, &look, at + (uint64_t)(look.out - out), err);
	return n < 0 ? -1 : look.out - out;
}
