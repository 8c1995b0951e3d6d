/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - a data directory comes to be, once, and is opened often.
 *
 * A data directory's life:  has                      under           to others
 *	1 empty            nothing                  -               no store
 *	2 half made        lock, some of the rest   lock exclusive  no store; they wait
 *	3 store            VERSION                  lock shared     a store
 *
 * VERSION comes last, by rename, after everything else is synced: what dies at
 * 2 is made again from the start by the next one that may create.
 */
#include "layers/reserve.h"
#include "layers/store_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define STORE_VERSION_TEXT "1\n"  /* STORE_FORMAT */
#define STORE_EMPTY_DB_BYTES 8192 /* LMDB's two meta pages and no more */

static const struct {
	const char *name;
	bool topdir; /* trees and uppers are born in it */
} store_dirs[STORE_DIRS] = {
	[STORE_ROOT] = {".", false},           [STORE_TREES] = {"trees", true},
	[STORE_MACHINES] = {"machines", true}, [STORE_TMP] = {"tmp", true},
	[STORE_TRASH] = {"trash", false},      [STORE_RUN] = {"run", false},
};

static const char *const store_tables[] = {"chunks", "counts", "frames",
					   "blobs",  "pages",  "receipts"};

static struct store *store_new(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		abort();
	store->path = strdup(options->path);
	if (!store->path)
		abort();
	store->map_bytes = options->map_bytes ? options->map_bytes : STORE_MAP_BYTES;
	store->lock = (struct lock)LOCK_INIT;
	store->use_lock = (struct lock)LOCK_INIT;
	store->reading_lock = (struct lock)LOCK_INIT;
	store->listen_lock = (struct lock)LOCK_INIT;
	store->lockfd = -1;
	for (int i = 0; i < STORE_DIRS; i++)
		store->dirs[i] = -1;
	batch_queue_init(&store->queue);
	share_init(&store->share);
	return store;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	batch_queue_done(&store->queue);
	share_done(&store->share);
	db_close(&store->blobs.db);
	db_close(&store->meta);
	for (int i = 0; i < STORE_DIRS; i++)
		auto_close_release(&store->dirs[i]);
	auto_close_release(&store->lockfd);
	free(store->path);
	free(store);
}

int store_dirfd(const struct store *store, enum store_dir dir)
{
	return store->dirs[dir];
}

const char *store_path(const struct store *store)
{
	return store->path;
}

uint64_t store_map_bytes(const struct store *store)
{
	return store->map_bytes;
}

/* A directory with somebody's files, none of which is ours, is nothing to do with us. */
static int store_check_ours(const struct store *store, struct err *err)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	bool empty = true;

	if (fd_open_dir(store->dirs[STORE_ROOT], ".", &dir, err) < 0)
		return err_ctx(err, "%s", store->path);
	while (empty && (entry = readdir(dir)))
		empty = fd_is_dots(entry->d_name);
	if (empty || faccessat(store->dirs[STORE_ROOT], "lock", F_OK, 0) == 0 ||
	    faccessat(store->dirs[STORE_ROOT], "VERSION", F_OK, 0) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "%s is not empty, and not a store: it has neither VERSION nor lock",
		       store->path);
}

static int store_open_root(struct store *store, bool create, struct err *err)
{
	struct stat st;

	if (create && mkdir(store->path, 0700) < 0 && errno != EEXIST && errno != ENOENT &&
	    errno != ENOTDIR)
		return err_os(err, errno, "make the data directory %s", store->path);
	store->dirs[STORE_ROOT] = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dirs[STORE_ROOT] < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "there is no store in %s", store->path);
	if (store->dirs[STORE_ROOT] < 0 && errno == ENOTDIR)
		return err_set(err, ERR_INVALID, "%s is no directory", store->path);
	if (store->dirs[STORE_ROOT] < 0 || fstat(store->dirs[STORE_ROOT], &st) < 0)
		return err_os(err, errno, "open the data directory %s", store->path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_DENIED, "the data directory %s belongs to user %u, not %u",
			       store->path, st.st_uid, geteuid());
	if (st.st_mode & 077 && store_check_ours(store, err) < 0)
		return -1;
	if (st.st_mode & 077)
		return err_set(err, ERR_DENIED,
			       "others may enter the data directory %s, and an image's setuid "
			       "files lie in it: chmod 700 it",
			       store->path);
	return 0;
}

static int store_wrong_version(const struct store *store, struct str text, struct err *err)
{
	size_t line = 0;

	while (line < text.len && text.ptr[line] >= ' ')
		line++;
	return err_set(err, ERR_CORRUPT,
		       "the store in %s has format \"%.*s\"; this program knows format %d only",
		       store->path, (int)line, text.ptr, STORE_FORMAT);
}

/* 1 a store of our format, 0 there is no VERSION yet, -1. */
static int store_read_version(const struct store *store, struct err *err)
{
	char text[16];
	ssize_t n;
	auto_close int fd = openat(store->dirs[STORE_ROOT], "VERSION", O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_os(err, errno, "open %s/VERSION", store->path);
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return err_os(err, errno, "read %s/VERSION", store->path);
	if (str_equal((struct str){text, (size_t)n}, STR(STORE_VERSION_TEXT)))
		return 1;
	return store_wrong_version(store, (struct str){text, (size_t)n}, err);
}

/*
 * If the lock file was removed it is made again. Somebody may still hold the
 * old one, which does no harm: nobody locks a store exclusively once it has
 * VERSION.
 */
static int store_open_lock(struct store *store, bool create, struct err *err)
{
	int root = store->dirs[STORE_ROOT];
	int version;

	store->lockfd = openat(root, "lock", O_RDWR | O_CLOEXEC);
	if (store->lockfd >= 0)
		return 0;
	if (errno != ENOENT)
		return err_os(err, errno, "open %s/lock", store->path);
	version = store_read_version(store, err);
	if (version < 0)
		return -1;
	if (version == 0 && !create)
		return err_set(err, ERR_NOT_FOUND, "there is no store in %s", store->path);
	if (version == 0 && store_check_ours(store, err) < 0)
		return -1;
	store->lockfd = openat(root, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (store->lockfd < 0)
		return err_os(err, errno, "make %s/lock", store->path);
	return 0;
}

static int store_flock(const struct store *store, int how, struct err *err)
{
	while (flock(store->lockfd, how) < 0) {
		if (errno != EINTR)
			return err_os(err, errno, "lock %s/lock", store->path);
	}
	return 0;
}

static int store_open_dir(struct store *store, enum store_dir dir, bool create, struct err *err)
{
	const char *name = store_dirs[dir].name;
	int root = store->dirs[STORE_ROOT];

	if (create && mkdirat(root, name, 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s/%s", store->path, name);
	store->dirs[dir] = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store->dirs[dir] < 0 && errno == ENOENT)
		return err_set(err, ERR_CORRUPT, "%s/%s is missing", store->path, name);
	if (store->dirs[dir] < 0)
		return err_os(err, errno, "open %s/%s", store->path, name);
	if (create && store_dirs[dir].topdir)
		fd_spread(store->dirs[dir]);
	return 0;
}

static int store_open_dirs(struct store *store, bool create, struct err *err)
{
	for (int i = STORE_ROOT + 1; i < STORE_DIRS; i++) {
		if (store_open_dir(store, (enum store_dir)i, create, err) < 0)
			return -1;
	}
	return 0;
}

static int store_make_tables(const struct db *db, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	MDB_dbi table;
	int rc = 0;

	if (db_begin(db, DB_WRITE, &txn, err) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < sizeof(store_tables) / sizeof(store_tables[0]); i++)
		rc = mdb_dbi_open(txn, store_tables[i], MDB_CREATE, &table);
	if (rc != 0)
		return db_fail(db, rc, err);
	return db_commit(db, steal_ptr(&txn), err);
}

/* LMDB syncs what is in its files, and leaves their names to us. */
static int store_make_db(struct store *store, const char *name, struct err *err)
{
	int root = store->dirs[STORE_ROOT];
	AUTO(db) struct db db = {0};
	auto_close int dirfd = -1;
	struct stat st;

	if (mkdirat(root, name, 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s/%s", store->path, name);
	dirfd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0)
		return err_os(err, errno, "open %s/%s", store->path, name);
	/* A power cut while it was made may have left a torn header. */
	if (fstatat(dirfd, "data.mdb", &st, 0) == 0 && st.st_size <= STORE_EMPTY_DB_BYTES)
		(void)unlinkat(dirfd, "data.mdb", 0);
	if (db_open(store->path, name, store->map_bytes, true, &db, err) < 0)
		return -1;
	/* Sync the header first: the longer file could become durable without it. */
	if (mdb_env_sync(db.env, 1) != 0)
		return err_os(err, errno, "sync %s/%s", store->path, name);
	if (str_equal(str_of(name), STR("blobs")) && store_make_tables(&db, err) < 0)
		return -1;
	if (fsync(dirfd) < 0)
		return err_os(err, errno, "sync %s/%s", store->path, name);
	return 0;
}

static int store_make_file(const struct store *store, const char *name, struct str text,
			   struct err *err)
{
	auto_close int fd = openat(store->dirs[STORE_ROOT], name,
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "make %s/%s", store->path, name);
	if (fd_write_all(fd, text.ptr, text.len, err) < 0)
		return err_ctx(err, "%s/%s", store->path, name);
	if (fsync(fd) < 0)
		return err_os(err, errno, "sync %s/%s", store->path, name);
	return 0;
}

/* With `lock` held exclusively, and no VERSION. */
static int store_make(struct store *store, struct err *err)
{
	int root = store->dirs[STORE_ROOT];
	auto_close int parent = openat(root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent < 0)
		return err_os(err, errno, "open the directory above %s", store->path);
	if (store_make_db(store, "meta", err) < 0 || store_make_db(store, "blobs", err) < 0 ||
	    store_make_file(store, "blobs/sessions", STR(""), err) < 0 ||
	    store_open_dirs(store, true, err) < 0 || reserve_make(store, err) < 0 ||
	    fsync(root) < 0 ||
	    store_make_file(store, "VERSION.new", STR(STORE_VERSION_TEXT), err) < 0)
		return -1;
	if (renameat(root, "VERSION.new", root, "VERSION") < 0 || fsync(root) < 0 ||
	    fsync(parent) < 0)
		return err_os(err, errno, "make %s/VERSION", store->path);
	return 0;
}

/* Hold the shared lock of a store of our format; make it first where asked to. */
static int store_claim(struct store *store, bool create, struct err *err)
{
	int version;

	if (store_open_lock(store, create, err) < 0 || store_flock(store, LOCK_SH, err) < 0)
		return -1;
	version = store_read_version(store, err);
	if (version != 0)
		return version < 0 ? -1 : 0;
	if (!create)
		return err_set(err, ERR_NOT_FOUND, "there is no store in %s", store->path);

	/* Between the two locks somebody else may make it. */
	if (store_flock(store, LOCK_EX, err) < 0)
		return -1;
	version = store_read_version(store, err);
	if (version < 0 || (version == 0 && store_make(store, err) < 0))
		return -1;
	return store_flock(store, LOCK_SH, err);
}

static int store_open_meta(struct store *store, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	int rc;

	if (db_open(store->path, "meta", store->map_bytes, false, &store->meta, err) < 0 ||
	    db_begin(&store->meta, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_dbi_open(txn, NULL, 0, &store->records);
	return rc == 0 ? 0 : db_fail(&store->meta, rc, err);
}

int store_open(const struct store_options *options, struct store **out, struct err *err)
{
	AUTO(store) struct store *store = NULL;

	if (options->path[0] != '/')
		return err_set(err, ERR_INVALID, "the data directory %s is not an absolute path",
			       options->path);
	store = store_new(options);
	if (store_open_root(store, options->create, err) < 0 ||
	    store_claim(store, options->create, err) < 0)
		return -1;
	if (store->dirs[STORE_TREES] < 0 && store_open_dirs(store, false, err) < 0)
		return -1;
	if (store_open_meta(store, err) < 0)
		return -1;
	*out = steal_ptr(&store);
	return 0;
}

/* A store that was made before there were receipts gets the table when it is opened. */
static int store_add_tables(const struct db *db, struct err *err)
{
	AUTO(txn) MDB_txn *txn = NULL;
	MDB_dbi table;
	int rc;

	if (db_begin(db, DB_READ, &txn, err) < 0)
		return -1;
	rc = mdb_dbi_open(txn, "receipts", 0, &table);
	mdb_txn_abort(steal_ptr(&txn));
	return rc == MDB_NOTFOUND ? store_make_tables(db, err) : 0;
}

static int store_open_tables(struct store_blobs *blobs, struct err *err)
{
	MDB_dbi *const tables[] = {&blobs->chunks, &blobs->counts, &blobs->frames,
				   &blobs->blobs,  &blobs->pages,  &blobs->receipts};
	AUTO(txn) MDB_txn *txn = NULL;

	if (db_begin(&blobs->db, DB_READ, &txn, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		int rc = mdb_dbi_open(txn, store_tables[i], 0, tables[i]);

		if (rc == MDB_NOTFOUND)
			return err_set(err, ERR_CORRUPT, "%s: the table %s is missing",
				       blobs->db.path, store_tables[i]);
		if (rc != 0)
			return db_fail(&blobs->db, rc, err);
	}
	return db_commit(&blobs->db, steal_ptr(&txn), err); /* else the handles are gone */
}

static int store_open_blobs_locked(struct store *store, struct err *err) REQUIRES(store->lock);
static int store_open_blobs_locked(struct store *store, struct err *err)
{
	struct store_blobs blobs = {0};

	if (store->blobs.db.env)
		return 0;
	if (db_open(store->path, "blobs", store->map_bytes, false, &blobs.db, err) < 0)
		return -1;
	if (store_add_tables(&blobs.db, err) < 0 || store_open_tables(&blobs, err) < 0) {
		db_close(&blobs.db);
		return -1;
	}
	store->blobs = blobs;
	return 0;
}

int store_blobs(struct store *store, const struct store_blobs **out, struct err *err)
{
	int rc;

	lock_take(&store->lock);
	rc = store_open_blobs_locked(store, err);
	lock_drop(&store->lock);
	*out = &store->blobs;
	return rc;
}

int store_session(struct store *store, struct err *err)
{
	auto_close int fd = openat(store->dirs[STORE_ROOT], "blobs/sessions",
				   O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "open %s/blobs/sessions", store->path);
	while (flock(fd, LOCK_SH) < 0) {
		if (errno != EINTR)
			return err_os(err, errno, "lock %s/blobs/sessions", store->path);
	}
	return steal_fd(&fd);
}

int store_boot(struct store *store, char out[static BOOT_ID_MAX], struct err *err)
{
	int rc = 0;

	lock_take(&store->lock);
	if (!store->boot[0])
		rc = clock_boot_id(store->boot, err);
	if (rc == 0)
		memcpy(out, store->boot, BOOT_ID_MAX);
	lock_drop(&store->lock);
	return rc;
}
