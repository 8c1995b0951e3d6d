/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/reach.h"

#include "layers/base/array.h"
#include "layers/blob_priv.h"

struct reach {
	reach_names_fn *names;
	const struct store_blobs *blobs;
	MDB_txn *txn;
	struct digest_set reached;
	struct digest *waiting; /* reached, and not looked at yet */
	size_t count;
	struct buf document; /* one that lies in several chunks */
};

int reach_open(struct store *store, reach_names_fn *names, struct reach **out, struct err *err)
{
	AUTO(reach) struct reach *reach = calloc(1, sizeof(*reach));

	if (!reach)
		abort();
	reach->names = names;
	reach->document = BUF_INIT(REACH_DOCUMENT_MAX);
	if (store_blobs(store, &reach->blobs, err) < 0 ||
	    db_begin(&reach->blobs->db, DB_READ, &reach->txn, err) < 0)
		return -1;
	*out = steal_ptr(&reach);
	return 0;
}

void reach_end(struct reach *reach)
{
	mdb_txn_abort(steal_ptr(&reach->txn));
}

void reach_close(struct reach *reach)
{
	if (!reach)
		return;
	reach_end(reach);
	digest_set_done(&reach->reached);
	buf_done(&reach->document);
	free(reach->waiting);
	free(reach);
}

bool reach_has(const struct reach *reach, const struct digest *digest)
{
	return digest_set_has(&reach->reached, digest);
}

void reach_forget(struct reach *reach)
{
	digest_set_clear(&reach->reached);
}

/* A sha512 is what somebody else calls a blob, if it is one here. 1, 0, -1. */
static int reach_name(const struct reach *reach, const struct digest *digest, struct digest *out,
		      struct err *err)
{
	struct blob_entry entry;
	int found;

	*out = *digest;
	if (digest->algorithm == DIGEST_SHA256)
		return 1;
	found = blob_entry_find(reach->blobs, reach->txn, digest, &entry, err);
	if (found == 1)
		*out = entry.digest;
	return found;
}

static int reach_add(void *ctx, const struct digest *named, struct err *err)
{
	struct reach *reach = ctx;
	struct digest digest;
	int added = reach_name(reach, named, &digest, err);

	if (added == 1)
		added = digest_set_add(&reach->reached, &digest, err);
	if (added <= 0)
		return added;
	/* at most as many as there are in the set */
	reach->waiting = array_grow(reach->waiting, reach->count, sizeof(*reach->waiting));
	reach->waiting[reach->count++] = digest;
	return 0;
}

/* The bytes of one chunk, in the map. */
static int reach_chunk(const struct reach *reach, const struct blob_ref *ref, struct str *out,
		       struct err *err)
{
	struct blob_chunk chunk;

	blob_ref_read(ref, &chunk);
	return chunk_find(reach->blobs, reach->txn, &chunk.id, out, err);
}

static bool reach_is_document(struct str start)
{
	size_t at = 0;

	while (at < start.len && strchr(" \t\r\n", start.ptr[at]) && start.ptr[at])
		at++;
	return at < start.len && start.ptr[at] == '{';
}

static int reach_damaged(const struct blob_entry *entry, struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	return err_set(err, ERR_CORRUPT, "blob %s: a chunk is missing",
		       digest_format(&entry->digest, text));
}

/* All of a document that lies in several chunks. */
static int reach_gather(struct reach *reach, const struct blob_entry *entry,
			const struct blob_ref *refs, size_t count, struct err *err)
{
	buf_clear(&reach->document);
	for (size_t i = 0; i < count; i++) {
		struct str bytes;
		int found = reach_chunk(reach, &refs[i], &bytes, err);

		if (found < 0)
			return -1;
		if (found == 0)
			return reach_damaged(entry, err);
		if (buf_add(&reach->document, bytes, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * The text of a blob that may be a document: 1, 0 for any other. ERR_CORRUPT
 * where it cannot be read, since what it names would be lost with it.
 */
static int reach_read(struct reach *reach, const struct blob_entry *entry, struct str *out,
		      struct err *err)
{
	auto_free struct blob_ref *refs = NULL;
	size_t count;
	int found;

	if (entry->chunks == 0 || entry->size > REACH_DOCUMENT_MAX ||
	    entry->chunks > BLOB_PAGE_REFS)
		return 0;
	refs = malloc(BLOB_PAGE_REFS * sizeof(*refs));
	if (!refs)
		abort();
	if (blob_entry_page(reach->blobs, reach->txn, entry, 0, refs, &count, err) < 0)
		return -1;
	found = reach_chunk(reach, &refs[0], out, err);
	if (found == 0)
		return reach_damaged(entry, err);
	if (found < 0 || !reach_is_document(*out))
		return found < 0 ? -1 : 0;
	if (count == 1)
		return 1;
	if (reach_gather(reach, entry, refs, count, err) < 0)
		return -1;
	*out = buf_str(&reach->document);
	return 1;
}

static int reach_visit(struct reach *reach, const struct digest *digest, reach_each_fn *fn,
		       void *ctx, struct err *err)
{
	struct reach_item item = {.digest = *digest, .kind = REACH_OTHER};
	struct blob_entry entry;
	struct str text;
	int found = blob_entry_find(reach->blobs, reach->txn, digest, &entry, err);

	if (found < 0)
		return -1;
	if (found == 1) {
		found = reach_read(reach, &entry, &text, err);
		if (found < 0 || (found == 1 && reach->names(text, reach_add, reach, err) < 0))
			return -1;
		item.kind = found == 1 ? REACH_DOCUMENT : REACH_BYTES;
		item.size = entry.size;
	}
	return fn ? fn(ctx, &item, err) : 0;
}

int reach_from(struct reach *reach, const struct digest *root, reach_each_fn *fn, void *ctx,
	       struct err *err)
{
	int result = reach_add(reach, root, err);

	while (result == 0 && reach->count > 0) {
		const struct digest next = reach->waiting[--reach->count];

		result = reach_visit(reach, &next, fn, ctx, err);
	}
	reach->count = 0;
	return result;
}
