/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortcut.c - a table for each context, in a file of its own; not in LMDB,
 * where a megabyte that may well be lost would wait for a sync and for other
 * writers.
 *
 * 	file                     holds
 * 	contexts/<dev>-<inode>   head, entries sorted by device and inode
 * 	contexts/<ulid>.new      one that is being written
 *
 * A table replaces the one before it by a rename, and carries the sha256 of its
 * entries, so one that a power cut has torn is none. An entry that no bake has
 * met for SHORTCUT_UNUSED_DAYS goes with the next writing, and so does a table
 * that nobody has read for as long (the kernel notes when a file was read).
 */
#include "bake/shortcut_priv.h"

#include "layers/base/array.h"
#include "layers/base/lock.h"
#include "layers/base/ulid.h"

#define LOG_MODULE "bake"
#include "layers/base/log.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define SHORTCUT_DIR "contexts"
#define SHORTCUT_MAGIC "hearth\2"
#define SHORTCUT_NAME_MAX ((size_t)48)
#define SHORTCUT_FILE_MAX (sizeof(struct table_head) + SHORTCUT_FILES_MAX * sizeof(struct entry))
#define SHORTCUT_PIECE ((size_t)512) /* entries written at once */
#define SHORTCUT_NEW_SECONDS 3600    /* no writing takes that long */
#define SECOND_NS ((int64_t)1000000000)
#define DAY_SECONDS ((time_t)24 * 3600)

/* Files are stamped with the time of the last timer tick: there are 100 a second or more. */
#define SHORTCUT_TICK_NS ((int64_t)20 * 1000 * 1000)
/* Where stamps have no fractions they may be of two seconds. */
#define SHORTCUT_COARSE_NS (2 * SECOND_NS)

struct table_head {
	char magic[8];
	uint64_t order; /* 1, as this machine writes it */
	uint64_t count;
	uint8_t sha256[32]; /* of the entries */
};

struct entry {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime;
	int64_t ctime;
	int64_t read_at;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint32_t met; /* the day on which a bake met it last, when the table was written */
	uint8_t what[32];
};

struct shortcut {
	struct store *store; /* NULL for none */
	char name[SHORTCUT_NAME_MAX];
	const struct table_head *table; /* mapped, or NULL */
	size_t table_size;
	const struct entry *known;
	size_t known_count;
	atomic_uchar *met; /* of each known entry */
	struct lock lock;
	/* guarded by lock: */
	struct entry *added; /* owned */
	size_t added_count;
};

int64_t shortcut_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static uint32_t shortcut_today(void)
{
	return (uint32_t)(shortcut_now() / SECOND_NS / DAY_SECONDS);
}

static int64_t shortcut_ns(struct timespec time)
{
	return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

static struct entry shortcut_entry(const struct stat *st)
{
	return (struct entry){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime = shortcut_ns(st->st_mtim),
		.ctime = shortcut_ns(st->st_ctim),
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

static bool shortcut_is_same(const struct entry *a, const struct entry *b)
{
	return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime &&
	       a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* Whether any later change would get other stamps than these. */
static bool shortcut_is_settled(const struct entry *entry)
{
	bool coarse = entry->ctime % SECOND_NS == 0;
	int64_t tick = coarse ? SHORTCUT_COARSE_NS : SHORTCUT_TICK_NS;

	return entry->mtime < entry->read_at - tick && entry->ctime < entry->read_at - tick;
}

static int shortcut_compare(const void *a, const void *b)
{
	const struct entry *left = a;
	const struct entry *right = b;

	if (left->dev != right->dev)
		return left->dev < right->dev ? -1 : 1;
	return (left->ino > right->ino) - (left->ino < right->ino);
}

/* The sha256 over the entries' bytes, as they lie in the file. */
static void shortcut_digest(const struct entry *entries, size_t count, uint8_t out[static 32])
{
	struct digest digest;

	digest_of((struct str){(const char *)entries, count * sizeof(*entries)}, &digest);
	memcpy(out, digest.bytes, 32);
}

static bool shortcut_is_whole(const struct table_head *table, size_t size)
{
	const struct entry *entries = (const struct entry *)(table + 1);
	uint8_t sha256[32];

	if (memcmp(table->magic, SHORTCUT_MAGIC, sizeof(table->magic)) != 0 || table->order != 1 ||
	    table->count != (size - sizeof(*table)) / sizeof(*entries) ||
	    (size - sizeof(*table)) % sizeof(*entries) != 0)
		return false;
	shortcut_digest(entries, table->count, sha256);
	return memcmp(sha256, table->sha256, sizeof(sha256)) == 0;
}

static void shortcut_load(struct shortcut *shortcut, int dirfd)
{
	auto_close int fd = openat(dirfd, shortcut->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*shortcut->table) ||
	    (size_t)st.st_size > SHORTCUT_FILE_MAX)
		return;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return;
	if (!shortcut_is_whole(map, (size_t)st.st_size)) {
		log_debug("context table is damaged name=%s", shortcut->name);
		(void)munmap(map, (size_t)st.st_size);
		return;
	}
	shortcut->table = map;
	shortcut->table_size = (size_t)st.st_size;
	shortcut->known = (const struct entry *)(shortcut->table + 1);
	shortcut->known_count = shortcut->table->count;
	shortcut->met = calloc(shortcut->known_count + 1, sizeof(*shortcut->met));
	if (!shortcut->met)
		abort();
}

struct shortcut *shortcut_open(struct store *store, int contextfd)
{
	struct shortcut *shortcut = calloc(1, sizeof(*shortcut));
	auto_close int dirfd = -1;
	struct stat st;

	if (!shortcut)
		abort();
	shortcut->lock = (struct lock)LOCK_INIT;
	if (!store || fstat(contextfd, &st) < 0)
		return shortcut;
	shortcut->store = store;
	(void)snprintf(shortcut->name, sizeof(shortcut->name), "%jx-%jx", (uintmax_t)st.st_dev,
		       (uintmax_t)st.st_ino);
	dirfd = openat(store_dirfd(store, STORE_ROOT), SHORTCUT_DIR,
		       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd >= 0)
		shortcut_load(shortcut, dirfd);
	return shortcut;
}

void shortcut_close(struct shortcut *shortcut)
{
	if (!shortcut)
		return;
	if (shortcut->table)
		(void)munmap(drop_const(shortcut->table), shortcut->table_size);
	free(shortcut->met);
	free(shortcut->added);
	free(shortcut);
}

bool shortcut_find(struct shortcut *shortcut, const struct stat *st, struct digest *out)
{
	struct entry wanted = shortcut_entry(st);
	const struct entry *found;

	if (!shortcut || shortcut->known_count == 0)
		return false;
	found = bsearch(&wanted, shortcut->known, shortcut->known_count, sizeof(wanted),
			shortcut_compare);
	if (!found || !shortcut_is_same(found, &wanted))
		return false;
	atomic_store_explicit(&shortcut->met[found - shortcut->known], 1, memory_order_relaxed);
	*out = (struct digest){.algorithm = DIGEST_SHA256};
	memcpy(out->bytes, found->what, sizeof(found->what));
	return true;
}

static void shortcut_add_locked(struct shortcut *shortcut, const struct entry *entry)
	REQUIRES(shortcut->lock);
static void shortcut_add_locked(struct shortcut *shortcut, const struct entry *entry)
{
	if (shortcut->added_count == SHORTCUT_FILES_MAX)
		return;
	shortcut->added = array_grow(shortcut->added, shortcut->added_count, sizeof(*entry));
	shortcut->added[shortcut->added_count++] = *entry;
}

void shortcut_add(struct shortcut *shortcut, const struct stat *st, int64_t read_at,
		  const struct digest *what)
{
	struct entry entry = shortcut_entry(st);

	if (!shortcut || !shortcut->store)
		return;
	entry.read_at = read_at;
	entry.met = shortcut_today();
	memcpy(entry.what, what->bytes, sizeof(entry.what));
	if (!shortcut_is_settled(&entry))
		return;
	lock_take(&shortcut->lock);
	shortcut_add_locked(shortcut, &entry);
	lock_drop(&shortcut->lock);
}

/* A table on its way to disk. */
struct table_writer {
	int fd;
	struct table_head head;
	struct hasher hasher;
	struct entry piece[SHORTCUT_PIECE];
	size_t used;
};

static inline void auto_table_writer_release(struct table_writer *writer)
{
	auto_close_release(&writer->fd);
	hasher_done(&writer->hasher);
}

static int shortcut_flush(struct table_writer *writer, struct err *err)
{
	struct str bytes = {(const char *)writer->piece, writer->used * sizeof(*writer->piece)};

	writer->used = 0;
	hasher_add(&writer->hasher, bytes);
	return fd_write_all(writer->fd, bytes.ptr, bytes.len, err);
}

static int shortcut_write(struct table_writer *writer, const struct entry *entry, struct err *err)
{
	if (writer->head.count == SHORTCUT_FILES_MAX)
		return 0;
	writer->head.count++;
	writer->piece[writer->used++] = *entry;
	return writer->used == SHORTCUT_PIECE ? shortcut_flush(writer, err) : 0;
}

/* A known entry that nobody replaced: with its day, or not at all. */
static int shortcut_write_known(const struct shortcut *shortcut, size_t at,
				struct table_writer *writer, struct err *err)
{
	struct entry entry = shortcut->known[at];
	uint32_t today = shortcut_today();

	if (atomic_load_explicit(&shortcut->met[at], memory_order_relaxed))
		entry.met = today;
	if (entry.met + SHORTCUT_UNUSED_DAYS < today)
		return 0;
	return shortcut_write(writer, &entry, err);
}

/*
 * Merge two sorted lists; an added entry replaces a known one, and of several
 * added the last stays.
 */
static int shortcut_merge(const struct shortcut *shortcut, struct table_writer *writer,
			  struct err *err)
{
	size_t at = 0;

	for (size_t i = 0; i < shortcut->added_count; i++) {
		const struct entry *entry = &shortcut->added[i];
		int order = -1;

		if (i + 1 < shortcut->added_count && shortcut_compare(entry, entry + 1) == 0)
			continue;
		while (at < shortcut->known_count &&
		       (order = shortcut_compare(&shortcut->known[at], entry)) < 0) {
			if (shortcut_write_known(shortcut, at++, writer, err) < 0)
				return -1;
		}
		at += order == 0;
		if (shortcut_write(writer, entry, err) < 0)
			return -1;
	}
	while (at < shortcut->known_count) {
		if (shortcut_write_known(shortcut, at++, writer, err) < 0)
			return -1;
	}
	return shortcut_flush(writer, err);
}

static int shortcut_write_table(const struct shortcut *shortcut, struct table_writer *writer,
				struct err *err)
{
	struct digest sha256;

	if (fd_write_all(writer->fd, &writer->head, sizeof(writer->head), err) < 0 ||
	    shortcut_merge(shortcut, writer, err) < 0)
		return -1;
	hasher_final(&writer->hasher, &sha256);
	memcpy(writer->head.sha256, sha256.bytes, sizeof(writer->head.sha256));
	return fd_pwrite_all(writer->fd, &writer->head, sizeof(writer->head), 0, err);
}

static int shortcut_replace(const struct shortcut *shortcut, int dirfd, struct err *err)
{
	AUTO(table_writer) struct table_writer writer = {.fd = -1};
	char ulid[ULID_TEXT_MAX];
	char name[ULID_TEXT_MAX + sizeof(".new")];

	hasher_init(&writer.hasher);
	memcpy(writer.head.magic, SHORTCUT_MAGIC, sizeof(writer.head.magic));
	writer.head.order = 1;
	(void)snprintf(name, sizeof(name), "%s.new", ulid_new(ulid));
	writer.fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (writer.fd < 0)
		return err_os(err, errno, "make %s", name);
	if (shortcut_write_table(shortcut, &writer, err) == 0 &&
	    renameat(dirfd, name, dirfd, shortcut->name) == 0)
		return 0;
	(void)unlinkat(dirfd, name, 0);
	return -1;
}

/* The one that was not used for longest, of those that may be dropped. */
struct shortcut_oldest {
	char name[NAME_MAX + 1];
	time_t used;
	size_t count;
};

static void shortcut_look(int dirfd, const char *name, time_t now, struct shortcut_oldest *oldest)
{
	struct stat st;
	time_t used;

	if (fd_is_dots(name) || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	used = st.st_atim.tv_sec > st.st_mtim.tv_sec ? st.st_atim.tv_sec : st.st_mtim.tv_sec;
	if (used + (strstr(name, ".new") ? SHORTCUT_NEW_SECONDS
					 : SHORTCUT_UNUSED_DAYS * DAY_SECONDS) <
	    now) {
		(void)unlinkat(dirfd, name, 0);
		return;
	}
	if (oldest->count++ == 0 || used < oldest->used) {
		oldest->used = used;
		(void)snprintf(oldest->name, sizeof(oldest->name), "%s", name);
	}
}

/* Remove as many tables as were added: one. */
static void shortcut_sweep(int dirfd)
{
	auto_dir DIR *dir = NULL;
	struct shortcut_oldest oldest = {.count = 0};
	struct dirent *entry;
	struct err ignored;

	if (fd_open_dir(dirfd, ".", &dir, &ignored) < 0)
		return;
	while ((entry = readdir(dir)))
		shortcut_look(dirfd, entry->d_name, time(NULL), &oldest);
	if (oldest.count > SHORTCUT_TABLES_MAX)
		(void)unlinkat(dirfd, oldest.name, 0);
}

bool shortcut_keep(struct shortcut *shortcut)
{
	auto_close int dirfd = -1;
	struct err err = {0};
	int rootfd;

	if (!shortcut || shortcut->added_count == 0)
		return false;
	rootfd = store_dirfd(shortcut->store, STORE_ROOT);
	(void)mkdirat(rootfd, SHORTCUT_DIR, 0700);
	dirfd = openat(rootfd, SHORTCUT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	qsort(shortcut->added, shortcut->added_count, sizeof(*shortcut->added), shortcut_compare);
	if (dirfd < 0 || shortcut_replace(shortcut, dirfd, &err) < 0) {
		log_debug("context table not kept why=\"%s\"", err.text);
		return false;
	}
	shortcut_sweep(dirfd);
	return true;
}
