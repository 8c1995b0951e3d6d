/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/cache.h"

#include "layers/base/fd.h"
#include "layers/base/hold.h"
#include "layers/digest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_DIR "caches"
#define CACHE_RETRY_MS 20     /* between looks at one that others use */
#define CACHE_DEPTH_MAX 128   /* what lies deeper is not counted */
#define CACHE_BLOCK_BYTES 512 /* of st_blocks, whatever the file system's are */
#define CACHE_NAME_FILE_MAX (CACHE_ID_MAX + 256)

static int cache_open_dir(struct store *store, struct err *err)
{
	int fd = openat(store_dirfd(store, STORE_ROOT), CACHE_DIR,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_os(err, errno, "open " CACHE_DIR) : fd;
}

static int cache_make_dir(struct store *store, struct err *err)
{
	int fd = fd_make_dir(store_dirfd(store, STORE_ROOT), CACHE_DIR, err);

	if (fd >= 0)
		fd_spread(fd);
	return fd;
}

/* With the id's length in front, so no two pairs of an id and a platform have the same bytes. */
static int cache_digest(const struct cache_spec *spec, char hex[static DIGEST_HEX_MAX],
			struct err *err)
{
	auto_buf struct buf bytes = BUF_INIT(CACHE_NAME_FILE_MAX);
	struct digest digest;

	if (buf_addf(&bytes, err, "%zu:", spec->id.len) < 0 || buf_add(&bytes, spec->id, err) < 0 ||
	    buf_add(&bytes, spec->platform, err) < 0)
		return err_ctx(err, "id of a cache");
	digest_of(buf_str(&bytes), &digest);
	(void)digest_hex(&digest, hex);
	return 0;
}

/* 1 locked, 0 somebody else has it in a way that excludes ours, -1. */
static int cache_lock(int cachesfd, enum cache_sharing sharing, struct cache *cache,
		      struct err *err)
{
	if (mkdirat(cachesfd, cache->name, 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make a cache");
	if (sharing == CACHE_SHARED)
		return hold_share(cachesfd, cache->name, &cache->lockfd, err);
	return hold_try(cachesfd, cache->name, &cache->lockfd, err);
}

/* The first of an id's that nobody uses. */
static int cache_lock_private(int cachesfd, const char *hex, struct cache *cache, struct err *err)
{
	for (int i = 0; i < CACHE_PRIVATE_MAX; i++) {
		int locked;

		(void)snprintf(cache->name, sizeof(cache->name), i ? "%s.%d" : "%s", hex, i);
		locked = cache_lock(cachesfd, CACHE_PRIVATE, cache, err);
		if (locked != 0)
			return locked < 0 ? -1 : 0;
	}
	return err_set(err, ERR_BUSY, "all %d private caches of one id are in use",
		       CACHE_PRIVATE_MAX);
}

static int cache_lock_wait(int cachesfd, const struct cache_spec *spec, cache_wait_fn *wait,
			   void *ctx, const struct cancel *cancel, struct cache *cache,
			   struct err *err)
{
	struct pollfd wake = {.fd = cancel_fd(cancel), .events = POLLIN};
	int locked;

	while ((locked = cache_lock(cachesfd, spec->sharing, cache, err)) == 0) {
		if (wait)
			wait(ctx, spec);
		wait = NULL;
		(void)poll(&wake, 1, CACHE_RETRY_MS);
		if (cancel_check(cancel, err) < 0)
			return -1;
	}
	return locked < 0 ? -1 : 0;
}

static int cache_make_empty(int dirfd, const struct cache_spec *spec, struct err *err)
{
	if (mkdirat(dirfd, CACHE_DATA, 0700) < 0 ||
	    fchownat(dirfd, CACHE_DATA, spec->uid, spec->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dirfd, CACHE_DATA, spec->mode, 0) < 0)
		return err_os(err, errno, "make a cache's directory");
	return 0;
}

/*
 * Make it whole or not at all: others who share the cache look for the name,
 * and the first one wins.
 */
static int cache_make_data(struct store *store, const struct cache_spec *spec, void *ctx,
			   struct cache *cache, struct err *err)
{
	auto_staging struct staging staging = STAGING_INIT;
	int dirfd = cache->lockfd;

	if (faccessat(dirfd, CACHE_DATA, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (staging_open(store, &staging, err) < 0 ||
	    (spec->fill ? spec->fill(ctx, staging.fd, err) < 0
			: cache_make_empty(staging.fd, spec, err) < 0))
		return -1;
	cache->fresh = renameat2(staging.fd, CACHE_DATA, dirfd, CACHE_DATA, RENAME_NOREPLACE) == 0;
	return cache->fresh || errno == EEXIST ? 0 : err_os(err, errno, "name a cache's directory");
}

/* Its name is written once, and has the time of its last use. */
static int cache_mark(int dirfd, const struct cache_spec *spec, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(CACHE_NAME_FILE_MAX);
	auto_close int fd = openat(dirfd, "name", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_os(err, errno, "make a cache's name");
	if (st.st_size > 0)
		return futimens(fd, NULL) < 0 ? err_os(err, errno, "note a cache's use") : 0;
	if (buf_add(&text, spec->platform, err) < 0 || buf_add(&text, STR("\n"), err) < 0 ||
	    buf_add(&text, spec->id, err) < 0)
		return -1;
	return fd_pwrite_all(fd, text.ptr, text.len, 0, err);
}

int cache_open(struct store *store, const struct cache_spec *spec, cache_wait_fn *wait, void *ctx,
	       const struct cancel *cancel, struct cache *out, struct err *err)
{
	auto_close int cachesfd = cache_make_dir(store, err);
	auto_cache struct cache cache = CACHE_INIT;
	char hex[DIGEST_HEX_MAX];

	if (cachesfd < 0 || cache_digest(spec, hex, err) < 0)
		return -1;
	(void)snprintf(cache.name, sizeof(cache.name), "%s", hex);
	if (spec->sharing == CACHE_PRIVATE
		    ? cache_lock_private(cachesfd, hex, &cache, err) < 0
		    : cache_lock_wait(cachesfd, spec, wait, ctx, cancel, &cache, err) < 0)
		return -1;
	if (cache_make_data(store, spec, ctx, &cache, err) < 0 ||
	    cache_mark(cache.lockfd, spec, err) < 0)
		return -1;
	cache.fd =
		openat(cache.lockfd, CACHE_DATA, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache.fd < 0)
		return err_os(err, errno, "open a cache's directory");
	*out = cache;
	cache = CACHE_INIT;
	return 0;
}

void cache_close(struct cache *cache)
{
	auto_close_release(&cache->fd);
	auto_close_release(&cache->lockfd);
	*cache = CACHE_INIT;
}

/* A file of several names is counted once, in parts. */
static uint64_t cache_blocks(const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * CACHE_BLOCK_BYTES;

	return S_ISDIR(st->st_mode) ? bytes : bytes / st->st_nlink;
}

/* What changes or cannot be read meanwhile is counted as far as it was seen. */
static uint64_t cache_count(int dirfd, const char *name, int depth)
{
	auto_close int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct err ignored;

	if (fd < 0 || depth == CACHE_DEPTH_MAX || fd_open_dir(fd, ".", &dir, &ignored) < 0)
		return 0;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (fd_is_dots(entry->d_name) ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += cache_blocks(&st);
		if (S_ISDIR(st.st_mode))
			bytes += cache_count(fd, entry->d_name, depth + 1);
	}
	return bytes;
}

/* 1; 0 it is no cache, or not one yet. */
static int cache_read_info(int cachesfd, const char *name, struct buf *text, struct cache_info *out,
			   struct err *err)
{
	char path[CACHE_NAME_MAX + sizeof("/name")];
	auto_close int fd = -1;
	auto_close int lockfd = -1;
	struct stat st;
	int held;

	if (strlen(name) >= CACHE_NAME_MAX)
		return 0;
	(void)snprintf(path, sizeof(path), "%.*s/name", (int)CACHE_NAME_MAX, name);
	fd = openat(cachesfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || fd_read_all(fd, text, err) < 0)
		return 0;
	held = hold_try(cachesfd, name, &lockfd, err);
	if (held < 0)
		return -1;
	*out = (struct cache_info){.name = name, .id = buf_str(text), .in_use = held == 0};
	out->used_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return str_cut(&out->id, '\n', &out->platform);
}

int cache_each(struct store *store, bool count_bytes, cache_each_fn *fn, void *ctx, struct err *err)
{
	auto_close int cachesfd = cache_open_dir(store, err);
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (cachesfd < 0)
		return err->os == ENOENT ? 0 : -1;
	if (fd_open_dir(cachesfd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		auto_buf struct buf text = BUF_INIT(CACHE_NAME_FILE_MAX);
		struct cache_info info;
		int found = fd_is_dots(entry->d_name)
				    ? 0
				    : cache_read_info(cachesfd, entry->d_name, &text, &info, err);

		if (found < 0)
			return -1;
		if (found == 0)
			continue;
		if (count_bytes)
			info.bytes = cache_count(cachesfd, entry->d_name, 0);
		if (fn(ctx, &info, err) < 0)
			return -1;
	}
	return 0;
}

int cache_remove(struct store *store, const char *name, struct err *err)
{
	auto_close int cachesfd = cache_open_dir(store, err);
	auto_close int lockfd = -1;
	int held;

	if (cachesfd < 0)
		return err->os == ENOENT ? 0 : -1;
	held = hold_try(cachesfd, name, &lockfd, err);
	if (held <= 0)
		return held;
	return store_set_aside(store, cachesfd, name, err) < 0 ? -1 : 1;
}
