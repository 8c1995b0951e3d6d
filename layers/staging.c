/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/staging_priv.h"

#include "layers/base/hold.h"
#include "layers/base/ulid.h"

#include <fcntl.h>
#include <sys/stat.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

/* 1 made and held, 0 a sweep was faster, -1. */
static int staging_try(struct staging *staging, struct err *err)
{
	struct store *store = staging->store;
	char name[ULID_TEXT_MAX];

	ulid_new(name);
	memcpy(staging->name, name, sizeof(name));
	if (mkdirat(store->dirs[STORE_TMP], name, 0700) < 0)
		return err_os(err, errno, "make %s/tmp/%s", store->path, name);
	return hold_try(store->dirs[STORE_TMP], name, &staging->lockfd, err);
}

int staging_open(struct store *store, struct staging *out, struct err *err)
{
	auto_staging struct staging staging = STAGING_INIT;
	int made;

	staging.store = store;
	while ((made = staging_try(&staging, err)) == 0)
		;
	if (made < 0)
		return -1;

	/* A file description of its own, so that handing on fd does not hand on the lock. */
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
	auto_close int hold = -1;
	int dead = hold_try(store->dirs[STORE_TMP], name, &hold, err);

	if (dead == 1)
		dead = trash_take(store, store->dirs[STORE_TMP], name, err);
	return dead < 0 ? -1 : 0;
}

int staging_sweep(struct store *store, struct err *err)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (fd_open_dir(store->dirs[STORE_TMP], ".", &dir, err) < 0)
		return err_ctx(err, "%s/tmp", store->path);
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) && staging_sweep_one(store, entry->d_name, err) < 0)
			return err_ctx(err, "%s/tmp", store->path);
	}
	return 0;
}
