/* SPDX-License-Identifier: Apache-2.0 */
/* store_sweep.c - what leaves the data directory, by way of trash/. */
#include "layers/staging_priv.h"
#include "layers/tree_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#define STORE_DISCARD_NOW 1000 /* entries unlinked by who discards; the rest waits for a sweep */

static bool store_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* 1 dirfd is the data directory or below it, 0 it is not, -1. */
static int store_contains(const struct store *store, int dirfd, struct err *err)
{
	auto_close int at = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat root;
	struct stat here;
	struct stat last = {0};

	if (at < 0 || fstat(store->dirs[STORE_ROOT], &root) < 0)
		return err_os(err, errno, "look at %s", store->path);
	for (;;) {
		int up;

		if (fstat(at, &here) < 0)
			return err_os(err, errno, "look above a directory");
		if (store_is_same(&here, &root))
			return 1;
		if (store_is_same(&here, &last))
			return 0; /* "/", which is its own parent */
		last = here;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			return err_os(err, errno, "look above a directory");
		auto_close_release(&at);
		at = up;
	}
}

/* 1 it lies in the trash, 0 there was no such name, -1. */
static int store_take(struct store *store, int dirfd, const char *name, struct err *err)
{
	int inside;

	if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, ERR_INVALID, "\"%s\" is no name of a directory entry", name);
	inside = store_contains(store, dirfd, err);
	if (inside < 0)
		return -1;
	if (inside == 0)
		return err_set(err, ERR_DENIED, "%s lies outside the data directory %s", name,
			       store->path);
	return trash_take(store, dirfd, name, err);
}

int store_discard(struct store *store, int dirfd, const char *name, struct err *err)
{
	int taken = store_take(store, dirfd, name, err);

	if (taken <= 0)
		return taken;
	return trash_empty(store, STORE_DISCARD_NOW, NULL, err);
}

int store_set_aside(struct store *store, int dirfd, const char *name, struct err *err)
{
	return store_take(store, dirfd, name, err) < 0 ? -1 : 0;
}

int store_sweep(struct store *store, const struct cancel *cancel, struct err *err)
{
	if (staging_sweep(store, err) < 0 || tree_sweep(store, err) < 0)
		return -1;
	return trash_empty(store, TRASH_ALL, cancel, err);
}
