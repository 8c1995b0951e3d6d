/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.c - named tables in one B-tree.
 *
 * 	key                              value
 * 	table's name, NUL, record's key  JSON object, compact, keys sorted
 *
 * A table is only a prefix: it needs no handle and need not be created, and a
 * commit that touches three tables writes one path of pages.
 */
#include "layers/meta.h"

#include "layers/store_priv.h"

#include <assert.h>

#define META_FULL_KEY_MAX ((size_t)511) /* LMDB's own ceiling */

struct meta_key {
	char bytes[META_FULL_KEY_MAX];
	size_t len;
};

struct meta_hook {
	meta_committed_fn *fn;
	void *ctx;
};

struct meta {
	struct store *store;
	const struct db *db;
	MDB_dbi records;
	MDB_txn *txn;
	enum meta_mode mode;
	struct share_turn turn; /* of META_SHARED, whose transaction this is */
	struct meta_key failed; /* what meta_each() ended on, or nothing */
	struct meta_hook hooks[META_COMMITTED_MAX];
	size_t hook_count;
};

uint64_t meta_generation(const struct store *store)
{
	MDB_envinfo info;

	if (mdb_env_info(store->meta.env, &info) != 0)
		abort(); /* it is open */
	return info.me_last_txnid + 1;
}

static int meta_begin_txn(struct meta *meta, struct err *err)
{
	if (meta->mode != META_SHARED)
		return db_begin(meta->db, meta->mode == META_WRITE ? DB_WRITE : DB_READ, &meta->txn,
				err);
	if (share_begin(&meta->store->share, meta->db, &meta->turn, err) < 0)
		return -1;
	meta->txn = meta->turn.txn;
	return 0;
}

int meta_begin(struct store *store, enum meta_mode mode, struct meta **out, struct err *err)
{
	struct meta *meta = malloc(sizeof(*meta));

	if (!meta)
		abort();
	*meta = (struct meta){
		.store = store, .db = &store->meta, .records = store->records, .mode = mode};
	if (meta_begin_txn(meta, err) < 0) {
		free(meta);
		return -1;
	}
	*out = meta;
	return 0;
}

int meta_commit(struct meta *meta, struct err *err)
{
	int rc = meta->mode == META_SHARED
			 ? share_commit(&meta->store->share, meta->db, &meta->turn, err)
			 : db_commit(meta->db, steal_ptr(&meta->txn), err);

	for (size_t i = 0; rc == 0 && i < meta->hook_count; i++)
		meta->hooks[i].fn(meta->hooks[i].ctx);
	free(meta);
	return rc;
}

struct store *meta_store(const struct meta *meta)
{
	return meta->store;
}

bool meta_is_outdated(const struct meta *meta)
{
	return meta->mode == META_READ && mdb_txn_id(meta->txn) + 1 != meta_generation(meta->store);
}

void meta_on_commit(struct meta *meta, meta_committed_fn *fn, void *ctx)
{
	assert(meta->mode != META_READ);
	for (size_t i = 0; i < meta->hook_count; i++) {
		if (meta->hooks[i].fn == fn && meta->hooks[i].ctx == ctx)
			return;
	}
	assert(meta->hook_count < META_COMMITTED_MAX);
	meta->hooks[meta->hook_count++] = (struct meta_hook){fn, ctx};
}

void meta_abort(struct meta *meta)
{
	if (!meta)
		return;
	if (meta->mode == META_SHARED)
		share_abort(&meta->store->share, &meta->turn);
	else
		mdb_txn_abort(meta->txn);
	free(meta);
}

static int meta_key_make(const char *table, struct str key, struct meta_key *out, struct err *err)
{
	size_t prefix = strlen(table) + 1;

	assert(prefix > 1 && prefix <= META_TABLE_MAX);
	if (key.len > META_KEY_MAX)
		return err_set(err, ERR_LIMIT, "%s: a key of more than %zu bytes", table,
			       META_KEY_MAX);
	memcpy(out->bytes, table, prefix);
	if (key.len > 0)
		memcpy(out->bytes + prefix, key.ptr, key.len);
	out->len = prefix + key.len;
	return 0;
}

static struct str meta_key_str(const struct meta_key *key)
{
	return (struct str){key->bytes, key->len};
}

static int meta_parse(const struct meta *meta, const char *table, struct str key, struct str value,
		      json_t **out, struct err *err)
{
	json_error_t why;
	json_t *record = json_loadb(value.ptr, value.len, 0, &why);

	if (json_is_object(record)) {
		*out = record;
		return 0;
	}
	json_decref(record);
	return err_set(err, ERR_CORRUPT, "%s: record %s " STR_FMT " is not a JSON object",
		       meta->db->path, table, STR_ARG(key));
}

int meta_get(struct meta *meta, const char *table, struct str key, json_t **out, struct err *err)
{
	struct meta_key full = {.len = 0};
	struct str value;
	int found;

	if (meta_key_make(table, key, &full, err) < 0)
		return -1;
	found = db_get(meta->db, meta->txn, meta->records, meta_key_str(&full), &value, err);
	if (found == 1 && meta_parse(meta, table, key, value, out, err) < 0)
		return -1;
	return found;
}

int meta_view(struct meta *meta, const char *table, struct str key, struct str *out,
	      struct err *err)
{
	struct meta_key full = {.len = 0};

	if (meta_key_make(table, key, &full, err) < 0)
		return -1;
	return db_get(meta->db, meta->txn, meta->records, meta_key_str(&full), out, err);
}

int meta_has(struct meta *meta, const char *table, struct str key, struct err *err)
{
	struct str value;

	return meta_view(meta, table, key, &value, err);
}

static int meta_store_text(struct meta *meta, const char *table, struct str key, struct str text,
			   struct err *err)
{
	struct meta_key full = {.len = 0};

	assert(meta->mode != META_READ);
	if (meta_key_make(table, key, &full, err) < 0)
		return -1;
	return db_put(meta->db, meta->txn, meta->records, meta_key_str(&full), text, err);
}

int meta_put(struct meta *meta, const char *table, struct str key, const json_t *value,
	     struct err *err)
{
	auto_buf struct buf text = BUF_INIT(META_VALUE_MAX);

	if (!value)
		abort(); /* whoever made it was out of memory */
	assert(json_is_integer(json_object_get(value, "v")));
	if (json_format(value, &text, err) < 0)
		return err_ctx(err, "%s " STR_FMT, table, STR_ARG(key));
	return meta_store_text(meta, table, key, buf_str(&text), err);
}

int meta_put_text(struct meta *meta, const char *table, struct str key, struct str text,
		  struct err *err)
{
	assert(str_starts(text, STR("{\"v\":")));
	return meta_store_text(meta, table, key, text, err);
}

int meta_del(struct meta *meta, const char *table, struct str key, struct err *err)
{
	struct meta_key full = {.len = 0};

	assert(meta->mode != META_READ);
	if (meta_key_make(table, key, &full, err) < 0)
		return -1;
	return db_del(meta->db, meta->txn, meta->records, meta_key_str(&full), err);
}

/* What is called for each record: one of the two. */
struct meta_visitor {
	meta_each_fn *fn;
	meta_each_key_fn *key_fn;
	void *ctx;
};

/* Visit the record under the cursor. */
static int meta_each_one(struct meta *meta, const char *table, struct str full, struct str value,
			 const struct meta_visitor *visitor, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	size_t prefix = strlen(table) + 1;
	struct meta_key copy = {.len = full.len}; /* fn may write, which moves what the map holds */
	struct str key = {copy.bytes + prefix, full.len - prefix};
	int result;

	memcpy(copy.bytes, full.ptr, full.len);
	if (visitor->key_fn)
		return visitor->key_fn(visitor->ctx, key, err);
	result = meta_parse(meta, table, key, value, &record, err);
	if (result == 0)
		result = visitor->fn(visitor->ctx, key, record, err);
	if (result < 0)
		meta->failed = copy;
	return result;
}

/* Where a cursor begins, and which way it goes from there. */
struct meta_way {
	struct meta_key start;
	MDB_cursor_op step;
	bool past; /* upwards: not what has that very key */
};

static int meta_way_begin(MDB_cursor *cursor, const struct meta_way *way, MDB_val *key,
			  MDB_val *value)
{
	int rc;

	*key = db_val(meta_key_str(&way->start));
	rc = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
	if (way->step == MDB_PREV)
		return mdb_cursor_get(cursor, key, value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
	if (rc == 0 && way->past && str_equal(db_str(*key), meta_key_str(&way->start)))
		return mdb_cursor_get(cursor, key, value, MDB_NEXT);
	return rc;
}

/* The first key that is behind all that begin with this one. */
static void meta_key_pass(struct meta_key *key)
{
	while ((unsigned char)key->bytes[key->len - 1] == 0xff)
		key->len--;
	key->bytes[key->len - 1]++; /* at the latest the NUL behind the table's name */
}

static int meta_walk(struct meta *meta, const char *table, struct str prefix,
		     const struct meta_way *way, const struct meta_visitor *visitor,
		     struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct meta_key below = {.len = 0};
	MDB_val key;
	MDB_val value;
	int rc;

	if (meta_key_make(table, prefix, &below, err) < 0)
		return -1;
	rc = mdb_cursor_open(meta->txn, meta->records, &cursor);
	for (rc = rc ? rc : meta_way_begin(cursor, way, &key, &value);
	     rc == 0 && str_starts(db_str(key), meta_key_str(&below));
	     rc = mdb_cursor_get(cursor, &key, &value, way->step)) {
		int stop = meta_each_one(meta, table, db_str(key), db_str(value), visitor, err);

		if (stop != 0)
			return stop;
	}
	return rc == 0 || rc == MDB_NOTFOUND ? 0 : db_fail(meta->db, rc, err);
}

int meta_each(struct meta *meta, const char *table, struct str prefix, meta_each_fn *fn, void *ctx,
	      struct err *err)
{
	return meta_each_after(meta, table, prefix, STR(""), fn, ctx, err);
}

static int meta_walk_up(struct meta *meta, const char *table, struct str prefix, struct str after,
			const struct meta_visitor *visitor, struct err *err)
{
	struct meta_way way = {.step = MDB_NEXT, .past = after.len > 0};

	if (meta_key_make(table, after.len > 0 ? after : prefix, &way.start, err) < 0)
		return -1;
	return meta_walk(meta, table, prefix, &way, visitor, err);
}

int meta_each_after(struct meta *meta, const char *table, struct str prefix, struct str after,
		    meta_each_fn *fn, void *ctx, struct err *err)
{
	const struct meta_visitor visitor = {.fn = fn, .ctx = ctx};

	return meta_walk_up(meta, table, prefix, after, &visitor, err);
}

int meta_each_key(struct meta *meta, const char *table, struct str prefix, struct str after,
		  meta_each_key_fn *fn, void *ctx, struct err *err)
{
	const struct meta_visitor visitor = {.key_fn = fn, .ctx = ctx};

	return meta_walk_up(meta, table, prefix, after, &visitor, err);
}

int meta_each_before(struct meta *meta, const char *table, struct str prefix, struct str before,
		     meta_each_fn *fn, void *ctx, struct err *err)
{
	const struct meta_visitor visitor = {.fn = fn, .ctx = ctx};
	struct meta_way way = {.step = MDB_PREV};

	if (meta_key_make(table, before.len > 0 ? before : prefix, &way.start, err) < 0)
		return -1;
	if (before.len == 0)
		meta_key_pass(&way.start);
	return meta_walk(meta, table, prefix, &way, &visitor, err);
}

int meta_find_end(struct meta *meta, const char *table, struct str prefix, enum meta_end end,
		  struct str *out, struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	struct meta_key below = {.len = 0};
	struct meta_way way = {.step = end == META_FIRST ? MDB_NEXT : MDB_PREV};
	MDB_val key;
	MDB_val value;
	int rc;

	if (meta_key_make(table, prefix, &below, err) < 0)
		return -1;
	way.start = below;
	if (end == META_LAST)
		meta_key_pass(&way.start);
	rc = mdb_cursor_open(meta->txn, meta->records, &cursor);
	rc = rc ? rc : meta_way_begin(cursor, &way, &key, &value);
	if (rc == MDB_NOTFOUND || (rc == 0 && !str_starts(db_str(key), meta_key_str(&below))))
		return 0;
	if (rc != 0)
		return db_fail(meta->db, rc, err);
	*out = str_skip(db_str(key), strlen(table) + 1);
	return 1;
}

int meta_new_id(struct meta *meta, const char *table, struct str prefix, int64_t now_ms,
		char out[static ID_TEXT_MAX], struct err *err)
{
	struct str last = STR("");
	int found = meta_find_end(meta, table, prefix, META_LAST, &last, err);

	assert(prefix.len == ID_PREFIX_LEN);
	if (found < 0)
		return -1;
	if (found == 1 && !ulid_is_id(prefix, last))
		return err_set(err, ERR_CORRUPT, "%s: a record's key " STR_FMT " is no id", table,
			       STR_ARG(last));
	memcpy(out, prefix.ptr, prefix.len);
	(void)ulid_after(found == 1 ? str_skip(last, prefix.len) : STR(""), now_ms,
			 out + prefix.len);
	return 0;
}

int meta_drop_failed(struct meta *meta, struct err *err)
{
	struct meta_key key = meta->failed;

	assert(meta->mode != META_READ);
	meta->failed.len = 0;
	return key.len > 0 ? db_del(meta->db, meta->txn, meta->records, meta_key_str(&key), err)
			   : 0;
}
