/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.c - run/leases/<ulid>: a line with the stamp that it began at, decimal
 * (or LEASE_NAMED), and one with each digest. A line without its end was never
 * written.
 *
 * A lease that ends while somebody collects leaves its file, without its flock:
 * the collector has read the records before, and learns only from the file what
 * they have come to name since. It removes the file when it is done.
 */
#include "layers/lease_priv.h"

#include "layers/base/fd.h"
#include "layers/base/hold.h"
#include "layers/base/ulid.h"
#include "layers/blob_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

#define LEASE_DIR "leases"
#define LEASE_COLLECT "collect"
#define LEASE_RETRY_MS 1
#define LEASE_NAMED "-" /* in place of a stamp: only what is named is held */
#define LEASE_TEXT_MAX ((size_t)16 * 1024 * 1024) /* 200,000 names */

struct lease {
	struct store *store;
	bool in_use;
	bool named;       /* it holds nothing else */
	struct buf names; /* not written yet */
	int fd;           /* run/leases/<name>, held; -1 before the first rest */
	char name[ULID_TEXT_MAX];
};

static int lease_flock(int fd, int how, struct err *err)
{
	while (flock(fd, how) < 0) {
		if (errno != EINTR)
			return err_os(err, errno, "lock the store");
	}
	return 0;
}

/* All leases of a process share the descriptor of run/, and so its flock. */
static int lease_use(struct lease *lease, struct err *err)
{
	struct store *store = lease->store;
	int rc = 0;

	lock_take(&store->use_lock);
	if (store->uses == 0)
		rc = lease_flock(store->dirs[STORE_RUN], LOCK_SH, err);
	store->uses += rc == 0;
	lock_drop(&store->use_lock);
	lease->in_use = rc == 0;
	return rc;
}

static void lease_unuse(struct lease *lease)
{
	struct store *store = lease->store;

	if (!lease->in_use)
		return;
	lock_take(&store->use_lock);
	if (--store->uses == 0)
		(void)flock(store->dirs[STORE_RUN], LOCK_UN);
	lock_drop(&store->use_lock);
	lease->in_use = false;
}

int lease_open(struct store *store, struct lease **out, struct err *err)
{
	AUTO(lease) struct lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		abort();
	*lease = (struct lease){.store = store, .names = BUF_INIT(LEASE_TEXT_MAX), .fd = -1};
	if (lease_use(lease, err) < 0)
		return -1;
	*out = steal_ptr(&lease);
	return 0;
}

int lease_open_named(struct store *store, struct lease **out, struct err *err)
{
	if (lease_open(store, out, err) < 0)
		return -1;
	(*out)->named = true;
	return 0;
}

/* The stamp of what is committed to blobs/ so far. */
static int lease_stamp(struct store *store, uint32_t *out, struct err *err)
{
	const struct store_blobs *blobs;

	if (store_blobs(store, &blobs, err) < 0)
		return -1;
	return blob_stamp_now(blobs, out, err);
}

static int lease_add_stamp(const struct lease *lease, struct buf *out, struct err *err)
{
	uint32_t stamp;

	if (lease->named)
		return buf_add(out, STR(LEASE_NAMED "\n"), err);
	if (lease_stamp(lease->store, &stamp, err) < 0)
		return -1;
	return buf_addf(out, err, "%u\n", stamp);
}

/* In use, so no collector finds it half made. */
static int lease_make_file(struct lease *lease, struct err *err)
{
	auto_buf struct buf first = BUF_INIT(64);
	auto_close int dirfd = fd_make_dir(lease->store->dirs[STORE_RUN], LEASE_DIR, err);
	auto_close int fd = -1;

	if (dirfd < 0 || lease_add_stamp(lease, &first, err) < 0)
		return -1;
	ulid_new(lease->name);
	fd = openat(dirfd, lease->name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_os(err, errno, "make a lease");
	if (lease_flock(fd, LOCK_EX, err) < 0 || fd_write_all(fd, first.ptr, first.len, err) < 0)
		return -1;
	lease->fd = steal_fd(&fd);
	return 0;
}

static int lease_write(struct lease *lease, struct err *err)
{
	if (lease->fd < 0 && lease_make_file(lease, err) < 0)
		return -1;
	if (lease->names.len > 0 &&
	    fd_write_all(lease->fd, lease->names.ptr, lease->names.len, err) < 0)
		return err_ctx(err, "write a lease");
	buf_clear(&lease->names);
	return 0;
}

int lease_add(struct lease *lease, const struct digest *digest, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	int result;

	if (buf_addf(&lease->names, err, "%s\n", digest_format(digest, text)) < 0)
		return -1;
	if (lease->in_use)
		return 0;
	if (lease_use(lease, err) < 0)
		return -1;
	result = lease_write(lease, err);
	lease_unuse(lease);
	return result;
}

int lease_rest(struct lease *lease, struct err *err)
{
	if (!lease->in_use)
		return 0;
	if (lease_write(lease, err) < 0)
		return -1;
	lease_unuse(lease);
	return 0;
}

int lease_resume(struct lease *lease, struct err *err)
{
	return lease->in_use ? 0 : lease_use(lease, err);
}

/* Nobody collects, and while a lease is in use nobody begins to look at the leases. */
static bool lease_is_unwatched(const struct store *store)
{
	auto_close int fd =
		openat(store->dirs[STORE_RUN], LEASE_COLLECT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return (fd < 0 && errno == ENOENT) || (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0);
}

static void lease_remove_file(struct lease *lease)
{
	struct err ignored; /* a file that stays has no owner, and the next collector removes it */
	auto_close int dirfd = -1;

	if (!lease->in_use && lease_use(lease, &ignored) < 0)
		return;
	dirfd = fd_make_dir(lease->store->dirs[STORE_RUN], LEASE_DIR, &ignored);
	if (dirfd >= 0 && lease_is_unwatched(lease->store) && unlinkat(dirfd, lease->name, 0) < 0)
		log_debug("lease left to a collector name=%s", lease->name);
}

void lease_close(struct lease *lease)
{
	if (!lease)
		return;
	if (lease->fd >= 0)
		lease_remove_file(lease);
	auto_close_release(&lease->fd);
	lease_unuse(lease);
	buf_done(&lease->names);
	free(lease);
}

/* flock() has no time limit and no cancel, but holders need milliseconds only: try again. */
static int lease_lock_patiently(int fd, const struct cancel *cancel, struct err *err)
{
	struct pollfd wake = {.fd = cancel_fd(cancel), .events = POLLIN};

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_os(err, errno, "lock the store");
		(void)poll(&wake, 1, LEASE_RETRY_MS);
		if (cancel_check(cancel, err) < 0)
			return -1;
	}
	return 0;
}

int lease_collect(struct store *store, const struct cancel *cancel, struct err *err)
{
	auto_close int fd = openat(store->dirs[STORE_RUN], LEASE_COLLECT,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "open run/" LEASE_COLLECT);
	return lease_lock_patiently(fd, cancel, err) < 0 ? -1 : steal_fd(&fd);
}

int lease_exclude(struct store *store, const struct cancel *cancel, struct err *err)
{
	/* Another description than that of this process's own leases. */
	auto_close int fd = openat(store->dirs[STORE_RUN], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_os(err, errno, "open run/");
	return lease_lock_patiently(fd, cancel, err) < 0 ? -1 : steal_fd(&fd);
}

static int lease_parse(struct str text, struct digest_set *names, uint32_t *stamp, struct err *err)
{
	bool named = str_starts(text, STR(LEASE_NAMED "\n"));
	struct str line;
	uint64_t began;

	if (!named && (!memchr(text.ptr, '\n', text.len) || !str_take_number(&text, &began)))
		return 0; /* its owner died before it rested */
	if (!named && blob_stamp_is_after(*stamp, (uint32_t)began))
		*stamp = (uint32_t)began;
	while (str_cut(&text, '\n', &line)) {
		struct digest digest;
		struct err none;

		if (digest_parse(line, &digest, &none) == 0 && digest.algorithm == DIGEST_SHA256 &&
		    digest_set_add(names, &digest, err) < 0)
			return -1;
	}
	return 0;
}

/* What lies in run/leases/, by name. */
typedef int lease_each_fn(void *ctx, int dirfd, const char *name, struct err *err);

static int lease_each(struct store *store, lease_each_fn *fn, void *ctx, struct err *err)
{
	auto_close int dirfd = fd_make_dir(store->dirs[STORE_RUN], LEASE_DIR, err);
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (dirfd < 0 || fd_open_dir(dirfd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) && fn(ctx, dirfd, entry->d_name, err) < 0)
			return -1;
	}
	return 0;
}

/* What the leases name, while they are read. */
struct lease_names {
	struct digest_set *names;
	uint32_t stamp; /* the smallest yet */
	bool living;    /* those of the dead do not count */
	int dead;
};

static int lease_read_one(void *ctx, int dirfd, const char *name, struct err *err)
{
	struct lease_names *found = ctx;
	auto_buf struct buf text = BUF_INIT(LEASE_TEXT_MAX);
	auto_close int hold = -1;
	auto_close int fd = -1;
	int dead = hold_try(dirfd, name, &hold, err);

	if (dead < 0)
		return -1;
	found->dead += dead;
	if (dead == 1 && found->living)
		return 0;
	fd = fd_open_entry(dirfd, name, O_RDONLY, err);
	if (fd < 0 || fd_read_all(fd, &text, err) < 0)
		return err_ctx(err, "lease %s", name);
	return lease_parse(buf_str(&text), found->names, &found->stamp, err);
}

int lease_read(struct store *store, bool living, struct digest_set *names, uint32_t *stamp,
	       struct err *err)
{
	struct lease_names found = {.names = names, .stamp = *stamp, .living = living};

	if (lease_each(store, lease_read_one, &found, err) < 0)
		return -1;
	*stamp = found.stamp;
	return found.dead;
}

static int lease_sweep_one(void *ctx, int dirfd, const char *name, struct err *err)
{
	auto_close int hold = -1;
	int dead = hold_try(dirfd, name, &hold, err);

	(void)ctx;
	if (dead < 0)
		return -1;
	if (dead == 1 && unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return err_os(err, errno, "remove the lease %s", name);
	return 0;
}

int lease_sweep(struct store *store, struct err *err)
{
	return lease_each(store, lease_sweep_one, NULL, err);
}
