/* SPDX-License-Identifier: Apache-2.0 */
/*
 * punch.c - which pages, and why it is safe.
 *
 *	FREE_DBI    key                          value
 *	            the transaction that freed   how many, and their numbers from
 *	            the pages                    the highest to the lowest
 *
 * A page that transaction n freed is in use in all snapshots before n. LMDB uses
 * it again when no reader is older than that and one more transaction was
 * committed, so that the older of its two meta pages does not lead to it either.
 * We punch under the same rule, in a writing transaction that is given up: until
 * then nobody takes a page. A reader that begins meanwhile sees the last commit.
 */
#include "layers/punch.h"

#include "layers/base/clock.h"
#include "layers/store_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

#define PUNCH_FREE_DBI ((MDB_dbi)0)

struct punch {
	const struct db *db;
	mdb_filehandle_t fd;
	size_t page_bytes;
	size_t oldest;    /* pages freed by it or later are still in sight */
	uint64_t reserve; /* pages to pass over, yet */
	size_t key;       /* where the next step goes on */
	size_t at;        /* in that record */
	int64_t end_ms;   /* of this step */
	bool unsupported;
};

/* A line of mdb_reader_list(): pid, thread, and the transaction or "-". */
static int punch_see_reader(const char *line, void *ctx)
{
	struct punch *punch = ctx;
	const char *last = strrchr(line, ' ');
	struct str text = str_of(last ? last + 1 : "");
	uint64_t number;

	if (str_take_number(&text, &number) && number < punch->oldest)
		punch->oldest = number;
	return 0;
}

static int punch_find_oldest(struct punch *punch, struct err *err)
{
	MDB_envinfo info;
	int rc = mdb_env_info(punch->db->env, &info);

	punch->oldest = info.me_last_txnid;
	if (rc == 0 && mdb_reader_list(punch->db->env, punch_see_reader, punch) < 0)
		rc = EIO;
	return rc == 0 ? 0 : db_fail(punch->db, rc, err);
}

static int punch_range(struct punch *punch, size_t first, size_t count, struct err *err)
{
	size_t bytes = punch->page_bytes;

	if (fallocate(punch->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(first * bytes),
		      (off_t)(count * bytes)) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return err_os(err, errno, "%s: give space back", punch->db->path);
	log_debug("no holes in this file system path=%s", punch->db->path);
	punch->unsupported = true;
	return 0;
}

/* A record's pages from punch->at on, neighbours at once. 1 done, 0 the step's time is over. */
static int punch_record(struct punch *punch, const size_t *pages, size_t count, struct err *err)
{
	while (punch->at < count) {
		size_t end = punch->at + 1;

		if (punch->reserve > 0) {
			punch->reserve--;
			punch->at++;
			continue;
		}
		if (punch->unsupported)
			return 1;
		if (clock_monotonic_ms() >= punch->end_ms)
			return 0;
		while (end < count && pages[end] + 1 == pages[end - 1])
			end++;
		if (punch_range(punch, pages[end - 1], end - punch->at, err) < 0)
			return -1;
		punch->at = end;
	}
	return 1;
}

/* Records from punch->key on: 1 all are done, 0 there are more, -1. */
static int punch_records(struct punch *punch, MDB_txn *txn, struct err *err)
{
	AUTO(cursor) MDB_cursor *cursor = NULL;
	size_t from = punch->key;
	MDB_val key = {sizeof(from), &from};
	MDB_val value;
	int rc = mdb_cursor_open(txn, PUNCH_FREE_DBI, &cursor);

	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); rc == 0;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		const size_t *list = value.mv_data;
		size_t freed_by;
		int done;

		memcpy(&freed_by, key.mv_data, sizeof(freed_by));
		if (freed_by >= punch->oldest || punch->unsupported)
			return 1;
		if (freed_by != punch->key)
			punch->at = 0;
		punch->key = freed_by;
		done = punch_record(punch, list + 1, list[0], err);
		if (done <= 0)
			return done;
		punch->at = list[0];
	}
	return rc == MDB_NOTFOUND ? 1 : db_fail(punch->db, rc, err);
}

static int punch_step(struct punch *punch, struct err *err)
{
	AUTO(txn) MDB_txn *writer = NULL; /* keeps other writers out, and is aborted */
	AUTO(txn) MDB_txn *reader = NULL; /* a writing one may not read the free list */

	if (db_begin(punch->db, DB_WRITE, &writer, err) < 0 ||
	    db_begin(punch->db, DB_READ, &reader, err) < 0 || punch_find_oldest(punch, err) < 0)
		return -1;
	punch->end_ms = clock_monotonic_ms() + PUNCH_STEP_MS;
	return punch_records(punch, reader, err);
}

/* One more commit, in which nothing changes: what the last one freed may go, too. */
static int punch_turn(const struct db *db, MDB_dbi table, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	struct str key = STR("\xff");

	if (db_begin(db, DB_WRITE, &txn, err) < 0 || db_put(db, txn, table, key, key, err) < 0 ||
	    db_del(db, txn, table, key, err) < 0)
		return -1;
	return db_commit(db, steal_ptr(&txn), err);
}

static int punch_blocks(const struct db *db, uint64_t *out, struct err *err)
{
	mdb_filehandle_t fd;
	struct stat st;
	int rc = mdb_env_get_fd(db->env, &fd);

	if (rc == 0 && fstat(fd, &st) < 0)
		rc = errno;
	if (rc != 0)
		return db_fail(db, rc, err);
	*out += (uint64_t)st.st_blocks * 512;
	return 0;
}

static int punch_db(const struct db *db, MDB_dbi table, const struct cancel *cancel,
		    struct err *err)
{
	struct punch punch = {.db = db};
	MDB_stat pages;
	int done = 0;
	int rc = mdb_env_get_fd(db->env, &punch.fd);

	if (rc == 0)
		rc = mdb_env_stat(db->env, &pages);
	if (rc != 0)
		return db_fail(db, rc, err);
	punch.page_bytes = pages.ms_psize;
	punch.reserve = PUNCH_RESERVE / pages.ms_psize;
	if (punch_turn(db, table, err) < 0)
		return -1;
	while (done == 0) {
		if (cancel_check(cancel, err) < 0)
			return -1;
		done = punch_step(&punch, err);
	}
	return done < 0 ? -1 : 0;
}

static int punch_all_blocks(struct store *store, const struct store_blobs *blobs, uint64_t *out,
			    struct err *err)
{
	*out = 0;
	if (punch_blocks(&store->meta, out, err) < 0)
		return -1;
	return punch_blocks(&blobs->db, out, err);
}

int punch_store(struct store *store, const struct cancel *cancel, uint64_t *out, struct err *err)
{
	const struct store_blobs *blobs;
	uint64_t before;
	uint64_t after;

	if (store_blobs(store, &blobs, err) < 0 ||
	    punch_all_blocks(store, blobs, &before, err) < 0 ||
	    punch_db(&blobs->db, blobs->frames, cancel, err) < 0 ||
	    punch_db(&store->meta, store->records, cancel, err) < 0 ||
	    punch_all_blocks(store, blobs, &after, err) < 0)
		return -1;
	*out = after < before ? before - after : 0; /* others may have written meanwhile */
	return 0;
}

/* Pages that some record of the list has. */
static int punch_count_free(const struct db *db, uint64_t *out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	AUTO(cursor) MDB_cursor *cursor = NULL;
	MDB_val key;
	MDB_val value;
	int rc;

	*out = 0;
	if (db_begin(db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_cursor_open(txn, PUNCH_FREE_DBI, &cursor);
	for (rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
	     rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
		*out += *(const size_t *)value.mv_data;
	return rc == MDB_NOTFOUND ? 0 : db_fail(db, rc, err);
}

static int punch_count_live(const struct db *db, uint64_t *out, struct err *err)
{
	uint64_t unused;
	MDB_envinfo info;
	MDB_stat pages;
	int rc = mdb_env_info(db->env, &info);

	if (rc == 0)
		rc = mdb_env_stat(db->env, &pages);
	if (rc != 0)
		return db_fail(db, rc, err);
	if (punch_count_free(db, &unused, err) < 0)
		return -1;
	*out += (info.me_last_pgno + 1 - unused) * pages.ms_psize;
	return 0;
}

int punch_measure(struct store *store, struct punch_account *out, struct err *err)
{
	const struct store_blobs *blobs;
	struct punch_account account = {0};

	if (store_blobs(store, &blobs, err) < 0 ||
	    punch_all_blocks(store, blobs, &account.disk_bytes, err) < 0 ||
	    punch_count_live(&store->meta, &account.live_bytes, err) < 0 ||
	    punch_count_live(&blobs->db, &account.live_bytes, err) < 0)
		return -1;
	*out = account;
	return 0;
}
