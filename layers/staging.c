/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/staging_priv.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

/* Open tmp/name and lock it. 1 ours, 0 somebody else's or gone, -1. */
static int staging_lock(struct store *store, const char *name, int *out, struct err *err)
{
	auto_close int fd = openat(store->dirs[STORE_TMP], name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_os(err, errno, "open %s/tmp/%s", store->path, name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return 0;
		return err_os(err, errno, "lock %s/tmp/%s", store->path, name);
	}
	*out = steal_fd(&fd);
	return 1;
}

/* Whether a sweep that came between mkdir and flock has left the name ours. */
static bool staging_has_name(const struct staging *staging)
{
	struct stat held;
	struct stat named;

	return fstat(staging->lockfd, &held) == 0 &&
	       fstatat(staging->store->dirs[STORE_TMP], staging->name, &named,
		       AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* 1 made and held, 0 a sweep was faster, -1. */
static int staging_try(struct staging *staging, struct err *err)
{
	struct store *store = staging->store;
	char name[ULID_TEXT_MAX];
	int held;

	ulid_new(name);
	memcpy(staging->name, name, sizeof(name));
	if (mkdirat(store->dirs[STORE_TMP], name, 0700) < 0)
		return err_os(err, errno, "make %s/tmp/%s", store->path, name);
	held = staging_lock(store, name, &staging->lockfd, err);
	if (held <= 0)
		return held;
	return staging_has_name(staging);
}

int staging_open(struct store *store, struct staging *out, struct err *err)
{
	auto_staging struct staging staging = STAGING_INIT;
	int made;

	staging.store = store;
	while ((made = staging_try(&staging, err)) == 0) {
		auto_close_release(&staging.lockfd);
		staging.lockfd = -1;
	}
	if (made < 0)
		return -1;

	/* Another description: who is handed fd does not get the lock with it. */
	staging.fd = openat(staging.lockfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (staging.fd < 0)
		return err_os(err, errno, "open %s/tmp/%s", store->path, staging.name);
	fd_spread(staging.fd);
	*out = staging;
	staging = STAGING_INIT;
	return 0;
}

void staging_close(struct staging *staging)
{
	struct err err;

	if (staging->lockfd < 0)
		return;
	if (unlinkat(staging->store->dirs[STORE_TMP], staging->name, AT_REMOVEDIR) < 0 &&
	    store_discard(staging->store, staging->store->dirs[STORE_TMP], staging->name, &err) < 0)
		log_debug("staging left to a sweep why=\"%s\"", err.text);
	auto_close_release(&staging->fd);
	auto_close_release(&staging->lockfd);
	*staging = STAGING_INIT;
}

static int staging_sweep_one(struct store *store, const char *name, struct err *err)
{
	int tmpfd = store->dirs[STORE_TMP];
	auto_close int fd = -1;
	struct stat st;

	if (fstatat(tmpfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look at %s/tmp", store->path);
	/* Nothing else can be held by a flock, or safely opened. */
	if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
		int dead = staging_lock(store, name, &fd, err);

		if (dead <= 0)
			return dead;
	}
	return trash_take(store, tmpfd, name, err) < 0 ? -1 : 0;
}

int staging_sweep(struct store *store, struct err *err)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (fd_open_dir(store->dirs[STORE_TMP], ".", &dir, err) < 0)
		return err_ctx(err, "%s/tmp", store->path);
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) && staging_sweep_one(store, entry->d_name, err) < 0)
			return -1;
	}
	return 0;
}
