/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/db_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define DB_LOW_BYTES ((uint64_t)16 * 1024 * 1024)   /* below this, EIO is a full disk */
#define DB_AHEAD_BYTES ((uint64_t)32 * 1024 * 1024) /* eight of the largest transactions */
#define DB_ADVICE "remove the data directory: all in it is made again by the next bakes"

static bool db_is_disk_full(const struct db *db)
{
	struct statvfs fs;

	return statvfs(db->path, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < DB_LOW_BYTES;
}

int(db_fail)(const struct db *db, int rc, struct err *err)
{
	switch (rc) {
	case ENOSPC:
	case EDQUOT:
		return err_os(err, ENOSPC, "%s", db->path);
	case EIO: /* what LMDB makes of a short write, too */
		if (db_is_disk_full(db))
			return err_os(err, ENOSPC, "%s", db->path);
		return err_os(err, rc, "%s", db->path);
	case ENOMEM:
		return err_set(err, ERR_UNSUPPORTED,
			       "%s: no address space for its map: raise ulimit -v, or make the map "
			       "smaller (HEARTH_MAP_BYTES)",
			       db->path);
	case MDB_MAP_FULL:
		return err_set(err, ERR_FULL, "%s: as large as its map allows", db->path);
	case MDB_READERS_FULL:
		return err_set(err, ERR_BUSY, "%s: more than %d readers at once", db->path,
			       DB_READERS_MAX);
	case MDB_MAP_RESIZED:
		return err_set(err, ERR_UNAVAILABLE,
			       "%s: another process outgrew this one's smaller map", db->path);
	case MDB_PANIC:
		return err_set(err, ERR_OS, "%s: an earlier write failed; start this program again",
			       db->path);
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INCOMPATIBLE:
		return err_set(err, ERR_CORRUPT,
			       "%s: not a database of this program, or damaged (%s); " DB_ADVICE,
			       db->path, mdb_strerror(rc));
	default:
		if (rc > 0)
			return err_os(err, rc, "%s", db->path);
		return err_set(err, ERR_OS, "%s: %s", db->path, mdb_strerror(rc));
	}
}

static int db_check_file(const struct db *db, struct err *err)
{
	auto_free char *file = NULL;
	struct stat st;

	if (asprintf(&file, "%s/data.mdb", db->path) < 0)
		abort();
	if (stat(file, &st) == 0 && st.st_size > 0)
		return 0;
	return err_set(err, ERR_CORRUPT, "%s: missing or empty; " DB_ADVICE, file);
}

static int db_configure(MDB_env *env, uint64_t map_bytes)
{
	int rc = mdb_env_set_mapsize(env, map_bytes);

	if (rc == 0)
		rc = mdb_env_set_maxreaders(env, DB_READERS_MAX);
	if (rc == 0)
		rc = mdb_env_set_maxdbs(env, DB_TABLES_MAX);
	return rc;
}

/* LMDB opens one of its descriptors without O_CLOEXEC; no step's command may get it. */
static int db_keep_from_children(MDB_env *env)
{
	mdb_filehandle_t fd;
	int rc = mdb_env_get_fd(env, &fd);

	if (rc == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		rc = errno;
	return rc;
}

/* The bytes up to the last page that is in use, and those that there are. */
static int db_measure(const struct db *db, uint64_t *out_used, uint64_t *out_size)
{
	mdb_filehandle_t fd;
	MDB_envinfo info;
	MDB_stat pages;
	struct stat st;
	int rc = mdb_env_info(db->env, &info);

	if (rc == 0)
		rc = mdb_env_stat(db->env, &pages);
	if (rc == 0)
		rc = mdb_env_get_fd(db->env, &fd);
	if (rc == 0 && fstat(fd, &st) < 0) /* last: others make it longer, and never shorter */
		rc = errno;
	if (rc != 0)
		return rc;
	*out_used = (info.me_last_pgno + 1) * (uint64_t)pages.ms_psize;
	*out_size = (uint64_t)st.st_size;
	return 0;
}

static int db_check_size(const struct db *db, struct err *err)
{
	uint64_t used;
	uint64_t size;
	int rc = db_measure(db, &used, &size);

	if (rc != 0)
		return db_fail(db, rc, err);
	if (size >= used)
		return 0;
	return err_set(err, ERR_CORRUPT,
		       "%s/data.mdb was truncated: it has %ju bytes of %ju; " DB_ADVICE, db->path,
		       (uintmax_t)size, (uintmax_t)used);
}

/*
 * LMDB never writes a page that was taken and given back in one transaction. If
 * that is the last one the file would end before it and look truncated; so the
 * file is first made longer, with a hole. The caller has the write transaction.
 */
static int db_lengthen(const struct db *db)
{
	mdb_filehandle_t fd;
	uint64_t used;
	uint64_t size;
	int rc = db_measure(db, &used, &size);

	if (rc != 0 || size >= used + DB_AHEAD_BYTES)
		return rc;
	rc = mdb_env_get_fd(db->env, &fd);
	if (rc == 0 && ftruncate(fd, (off_t)(used + 2 * DB_AHEAD_BYTES)) < 0)
		rc = errno;
	return rc;
}

int db_open(const char *dir, const char *name, uint64_t map_bytes, bool create, struct db *out,
	    struct err *err)
{
	AUTO(db) struct db db = {0};
	int stale;
	int rc;

	if (asprintf(&db.path, "%s/%s", dir, name) < 0)
		abort();
	if (!create && db_check_file(&db, err) < 0)
		return -1;
	rc = mdb_env_create(&db.env);
	if (rc == 0)
		rc = db_configure(db.env, map_bytes);
	if (rc == 0)
		rc = mdb_env_open(db.env, db.path, MDB_NOTLS, 0600);
	if (rc == 0)
		rc = db_keep_from_children(db.env);
	if (rc == 0)
		rc = mdb_reader_check(db.env, &stale);
	if (rc != 0)
		return db_fail(&db, rc, err);
	if (db_check_size(&db, err) < 0)
		return -1;
	*out = db;
	db = (struct db){0};
	return 0;
}

void db_close(struct db *db)
{
	if (db->env)
		mdb_env_close(db->env);
	free(db->path);
	*db = (struct db){0};
}

int db_begin(const struct db *db, enum db_mode mode, MDB_txn **out, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	int rc = mdb_txn_begin(db->env, NULL, mode == DB_READ ? MDB_RDONLY : 0, &txn);

	if (rc == 0 && mode == DB_WRITE)
		rc = db_lengthen(db);
	if (rc != 0)
		return db_fail(db, rc, err);
	*out = steal_ptr(&txn);
	return 0;
}

int db_commit(const struct db *db, MDB_txn *txn, struct err *err)
{
	int rc = mdb_txn_commit(txn);

	return rc == 0 ? 0 : db_fail(db, rc, err);
}

int db_get(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct str *out,
	   struct err *err)
{
	MDB_val k = db_val(key);
	MDB_val v;
	int rc = mdb_get(txn, table, &k, &v);

	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc != 0)
		return db_fail(db, rc, err);
	*out = db_str(v);
	return 1;
}

int db_put(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct str value,
	   struct err *err)
{
	MDB_val k = db_val(key);
	MDB_val v = db_val(value);
	int rc = mdb_put(txn, table, &k, &v, 0);

	return rc == 0 ? 0 : db_fail(db, rc, err);
}

int db_del(const struct db *db, MDB_txn *txn, MDB_dbi table, struct str key, struct err *err)
{
	MDB_val k = db_val(key);
	int rc = mdb_del(txn, table, &k, NULL);

	if (rc == MDB_NOTFOUND)
		return 0;
	return rc == 0 ? 1 : db_fail(db, rc, err);
}
