/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uploads.c - sessions, from the first request to the last.
 *
 * A session's life:  has                   made by            visible
 *	1 half made   a name                uploads_begin()    no
 *	2 open        its line              the same           to its repository
 *	3 gone        at most a descriptor  uploads_remove(),  no
 *	                                    uploads_expire()
 *
 * What is half made when the daemon is killed goes UPLOADS_HALF_MS later.
 */
#define LOG_MODULE "registry"
#include "registry/uploads.h"

#include "layers/base/clock.h"
#include "layers/base/hold.h"
#include "layers/base/json.h"
#include "layers/base/lock.h"
#include "layers/base/log.h"
#include "registry/uploads_file.h"
#include "registry/uploads_fresh.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define UPLOADS_DIR "uploads"
#define UPLOADS_PIECE ((size_t)1024 * 1024) /* a chunk, which is then not copied again */
#define UPLOADS_HALF_MS ((int64_t)60 * 1000)

struct uploads {
	struct uploads_options options;
	int dirfd;
	struct vacancy vacancy;
	struct uploads_fresh fresh;
	struct lock lock;
	pthread_cond_t left;
	/* guarded by lock: */
	struct uploads_load load;
	size_t writers;
};

struct uploads_session {
	struct uploads *uploads;
	int fd;                 /* -1 of a fresh one */
	char id[ULID_TEXT_MAX]; /* "" for one without a name */
	uint64_t size;
};

static void uploads_count(struct uploads *uploads, int sessions, int64_t bytes)
{
	lock_take(&uploads->lock);
	uploads->load.sessions += (size_t)sessions;
	uploads->load.bytes += (uint64_t)bytes;
	lock_drop(&uploads->lock);
}

struct uploads_load uploads_load(struct uploads *uploads)
{
	struct uploads_load load;

	lock_take(&uploads->lock);
	load = uploads->load;
	lock_drop(&uploads->lock);
	return load;
}

struct vacancy *uploads_vacancy(struct uploads *uploads)
{
	return &uploads->vacancy;
}

bool uploads_enter(struct uploads *uploads, bool patient)
{
	size_t most = patient ? UPLOADS_WRITERS_MAX : UPLOADS_WRITERS_SENT;
	bool free_place;

	lock_take(&uploads->lock);
	while (patient && uploads->writers >= most)
		(void)pthread_cond_wait(&uploads->left, &uploads->lock.os);
	free_place = uploads->writers < most;
	uploads->writers += free_place;
	lock_drop(&uploads->lock);
	return free_place;
}

void uploads_leave(struct uploads *uploads)
{
	lock_take(&uploads->lock);
	uploads->writers--;
	(void)pthread_cond_signal(&uploads->left);
	lock_drop(&uploads->lock);
}

/* Call fn for each session's name, whatever state it is in. */
typedef int uploads_each_fn(struct uploads *uploads, const char *id, const struct stat *st,
			    void *ctx, struct err *err);

static int uploads_each(struct uploads *uploads, uploads_each_fn *fn, void *ctx, struct err *err)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (fd_open_dir(uploads->dirfd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (!ulid_is_valid(str_of(entry->d_name)) ||
		    fstatat(uploads->dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (fn(uploads, entry->d_name, &st, ctx, err) < 0)
			return -1;
	}
	return 0;
}

static int uploads_take_stock(struct uploads *uploads, const char *id, const struct stat *st,
			      void *ctx, struct err *err)
{
	(void)id;
	(void)ctx;
	(void)err;
	uploads_count(uploads, 1, (int64_t)uploads_file_bytes(st->st_size));
	return 0;
}

int uploads_open(const struct uploads_options *options, struct uploads **out, struct err *err)
{
	AUTO(uploads) struct uploads *uploads = calloc(1, sizeof(*uploads));
	struct uploads_options *own;
	int root = store_dirfd(options->store, STORE_ROOT);

	if (!uploads)
		abort();
	*uploads = (struct uploads){.options = *options, .dirfd = -1, .lock = LOCK_INIT};
	(void)pthread_cond_init(&uploads->left, NULL);
	uploads_fresh_init(&uploads->fresh);
	vacancy_init(&uploads->vacancy, options->store, options->make_room, options->ctx);
	own = &uploads->options;
	own->sessions_max = own->sessions_max ? own->sessions_max : UPLOADS_MAX;
	own->bytes_max = own->bytes_max ? own->bytes_max : UPLOADS_BYTES_MAX;
	if (mkdirat(root, UPLOADS_DIR, 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s/" UPLOADS_DIR, store_path(own->store));
	uploads->dirfd = fd_open_entry(root, UPLOADS_DIR, O_RDONLY | O_DIRECTORY, err);
	if (uploads->dirfd < 0 || uploads_each(uploads, uploads_take_stock, NULL, err) < 0)
		return err_ctx(err, "%s", store_path(own->store));
	*out = steal_ptr(&uploads);
	return 0;
}

void uploads_close(struct uploads *uploads)
{
	if (!uploads)
		return;
	auto_close_release(&uploads->dirfd);
	(void)pthread_cond_destroy(&uploads->left);
	vacancy_done(&uploads->vacancy);
	uploads_fresh_done(&uploads->fresh);
	free(uploads);
}

/* A session that is held and was fresh has its file open from now on. */
static int uploads_open_fresh(struct uploads_session *session, struct err *err)
{
	struct uploads *uploads = session->uploads;
	auto_close int fd = uploads_file_open(uploads->dirfd, str_of(session->id), O_RDWR, err);

	if (fd < 0)
		return fd == -2 ? err_set(err, ERR_NOT_FOUND, "the upload is gone") : -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_os(err, errno, "lock an upload");
	session->fd = steal_fd(&fd);
	uploads_fresh_end(&uploads->fresh, session->id);
	return 0;
}

/* One session more, unless there are too many. */
static bool uploads_admit(struct uploads *uploads)
{
	bool admitted;

	lock_take(&uploads->lock);
	admitted = uploads->load.sessions < uploads->options.sessions_max &&
		   uploads->load.bytes < uploads->options.bytes_max;
	uploads->load.sessions += admitted;
	lock_drop(&uploads->lock);
	return admitted;
}

int uploads_begin(struct uploads *uploads, struct str repository, char out_id[static ULID_TEXT_MAX],
		  struct err *err)
{
	if (!uploads_admit(uploads)) {
		if (uploads_expire(uploads, UPLOADS_PRESSED_MS, err) < 0)
			return -1;
		if (!uploads_admit(uploads))
			return err_set(err, ERR_BUSY, "too many uploads are open; try again later");
	}
	if (uploads_file_make(uploads->dirfd, ulid_new(out_id), repository, err) < 0) {
		uploads_count(uploads, -1, 0);
		return -1;
	}
	uploads_fresh_add(&uploads->fresh, out_id, repository);
	return 0;
}

static int uploads_find_file(struct uploads *uploads, struct str repository, struct str id,
			     uint64_t *out, struct err *err)
{
	auto_close int fd = uploads_file_open(uploads->dirfd, id, O_RDONLY, err);
	struct stat st;
	int ours;

	if (fd < 0)
		return fd == -2 ? 0 : -1;
	ours = uploads_file_is_of(fd, repository, err);
	if (ours <= 0)
		return ours;
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "look at an upload");
	*out = uploads_file_bytes(st.st_size);
	return st.st_nlink > 0;
}

int uploads_find(struct uploads *uploads, struct str repository, struct str id, uint64_t *out,
		 struct err *err)
{
	*out = 0;
	if (uploads_fresh_has(&uploads->fresh, id, repository))
		return 1;
	return uploads_find_file(uploads, repository, id, out, err);
}

static struct uploads_session *uploads_hold(struct uploads *uploads, int *fd, struct str id,
					    uint64_t size)
{
	struct uploads_session *session = calloc(1, sizeof(*session));

	if (!session)
		abort();
	*session = (struct uploads_session){.uploads = uploads, .fd = steal_fd(fd), .size = size};
	memcpy(session->id, id.ptr, id.len);
	return session;
}

static int uploads_take_file(struct uploads *uploads, struct str repository, struct str id,
			     struct uploads_session **out, struct err *err)
{
	auto_close int fd = uploads_file_open(uploads->dirfd, id, O_RDWR, err);
	struct stat st;
	int ours;

	if (fd < 0)
		return fd == -2 ? 0 : -1;
	ours = uploads_file_is_of(fd, repository, err);
	if (ours <= 0)
		return ours;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_os(err, errno, "lock an upload");
		return err_set(err, ERR_CONFLICT, "another request is adding to this upload");
	}
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "look at an upload");
	if (st.st_nlink == 0)
		return 0;
	*out = uploads_hold(uploads, &fd, id, uploads_file_bytes(st.st_size));
	return 1;
}

int uploads_take(struct uploads *uploads, struct str repository, struct str id,
		 struct uploads_session **out, struct err *err)
{
	int held = uploads_fresh_hold(&uploads->fresh, id, repository, err);
	int none = -1;

	if (held == 0)
		return uploads_take_file(uploads, repository, id, out, err);
	if (held < 0)
		return -1;
	*out = uploads_hold(uploads, &none, id, 0);
	return 1;
}

int uploads_take_new(struct uploads *uploads, struct uploads_session **out, struct err *err)
{
	auto_close int fd = openat(uploads->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "make an upload");
	*out = uploads_hold(uploads, &fd, STR(""), 0);
	return 0;
}

void uploads_release(struct uploads_session *session)
{
	if (!session)
		return;
	if (!session->id[0])
		uploads_count(session->uploads, 0, -(int64_t)session->size);
	if (session->fd < 0)
		uploads_fresh_let_go(&session->uploads->fresh, session->id);
	auto_close_release(&session->fd);
	free(session);
}

const char *uploads_id(const struct uploads_session *session)
{
	return session->id;
}

uint64_t uploads_size(const struct uploads_session *session)
{
	return session->size;
}

/* What is in the file after it was written to, all of it or a part. */
static int uploads_measure(struct uploads_session *session, struct err *err)
{
	struct stat st;

	if (fstat(session->fd, &st) < 0)
		return err_os(err, errno, "look at an upload");
	uploads_count(session->uploads, 0,
		      (int64_t)(uploads_file_bytes(st.st_size) - session->size));
	session->size = uploads_file_bytes(st.st_size);
	return 0;
}

static int uploads_write(struct uploads_session *session, struct str bytes, struct err *err)
{
	struct err why;
	int result = fd_pwrite_all(session->fd, bytes.ptr, bytes.len,
				   (off_t)(UPLOADS_FILE_PAGE + session->size), err);

	if (uploads_measure(session, &why) < 0 && result == 0) {
		*err = why;
		return -1;
	}
	return result;
}

/* Try once more where something else could go. */
static int uploads_write_hard(struct uploads_session *session, struct str bytes, struct err *err)
{
	uint64_t before = session->size;
	struct err why;

	if (session->fd < 0 && uploads_open_fresh(session, err) < 0)
		return -1;
	if (uploads_write(session, bytes, err) == 0)
		return 0;
	if (err->kind != ERR_FULL)
		return -1;
	bytes = str_skip(bytes, (size_t)(session->size - before));
	if (vacancy_make(&session->uploads->vacancy, bytes.len, &why) != 1)
		return -1;
	return uploads_write(session, bytes, err);
}

static int uploads_check_limits(struct uploads_session *session, size_t more, struct err *err)
{
	struct uploads *uploads = session->uploads;

	if (more > UPLOADS_BLOB_MAX - session->size)
		return err_set(err, ERR_LIMIT, "a blob of more than %llu GiB",
			       (unsigned long long)(UPLOADS_BLOB_MAX >> 30));
	if (uploads_load(uploads).bytes + more > uploads->options.bytes_max)
		return err_set(err, ERR_BUSY,
			       "the open uploads are too large together; try again later");
	return 0;
}

int uploads_append(struct uploads_session *session, struct source *from, uint64_t most,
		   struct err *err)
{
	struct str bytes;
	int more;

	while ((more = from->read(from, &bytes, err)) == 1) {
		struct str piece = {bytes.ptr, bytes.len < most ? bytes.len : (size_t)most};

		if (uploads_check_limits(session, piece.len, err) < 0 ||
		    uploads_write_hard(session, piece, err) < 0)
			return -1;
		if (piece.len < bytes.len)
			return 1;
		most -= piece.len;
	}
	return more;
}

int uploads_cut(struct uploads_session *session, uint64_t size, struct err *err)
{
	if (session->fd < 0)
		return 0;
	if (ftruncate(session->fd, (off_t)(UPLOADS_FILE_PAGE + size)) < 0)
		return err_os(err, errno, "cut an upload");
	return uploads_measure(session, err);
}

int uploads_copy(struct uploads_session *session, struct sink *out, struct err *err)
{
	auto_free char *piece = malloc(UPLOADS_PIECE);

	if (!piece)
		abort();
	for (uint64_t at = 0; at < session->size; at += UPLOADS_PIECE) {
		ssize_t n = fd_pread_all(session->fd, piece, UPLOADS_PIECE,
					 (off_t)(UPLOADS_FILE_PAGE + at), err);

		if (n < 0 || out->write(out, (struct str){piece, (size_t)n}, err) < 0)
			return -1;
	}
	return 0;
}

static int uploads_unlink(struct uploads *uploads, const char *id, uint64_t bytes, struct err *err)
{
	if (unlinkat(uploads->dirfd, id, 0) < 0)
		return err_os(err, errno, "remove an upload");
	uploads_count(uploads, -1, -(int64_t)bytes);
	return 0;
}

int uploads_remove(struct uploads_session *session, struct err *err)
{
	if (!session->id[0])
		return 0;
	if (uploads_unlink(session->uploads, session->id, session->size, err) < 0)
		return -1;
	/* After the file, which nobody has locked: else others would find that, and add to it. */
	if (session->fd < 0)
		uploads_fresh_end(&session->uploads->fresh, session->id);
	return 0;
}

struct uploads_expiry {
	int64_t now_ms;
	int64_t idle_ms;
	int count;
};

static int64_t uploads_changed_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static int uploads_expire_one(struct uploads *uploads, const char *id, const struct stat *st,
			      void *ctx, struct err *err)
{
	struct uploads_expiry *expiry = ctx;
	int64_t idle_ms =
		(size_t)st->st_size < UPLOADS_FILE_PAGE ? UPLOADS_HALF_MS : expiry->idle_ms;
	auto_close int hold = -1;
	struct stat held;
	int ours;

	if (expiry->now_ms - uploads_changed_ms(st) < idle_ms ||
	    uploads_fresh_knows(&uploads->fresh, str_of(id)))
		return 0;
	ours = hold_try(uploads->dirfd, id, &hold, err);
	if (ours <= 0)
		return ours;
	if (fstat(hold, &held) < 0 || uploads_changed_ms(&held) != uploads_changed_ms(st))
		return 0;
	if (uploads_unlink(uploads, id, uploads_file_bytes(held.st_size), err) < 0)
		return -1;
	log_debug("upload expired id=%s bytes=%llu", id,
		  (unsigned long long)uploads_file_bytes(held.st_size));
	expiry->count++;
	return 0;
}

int uploads_expire(struct uploads *uploads, int64_t idle_ms, struct err *err)
{
	struct uploads_expiry expiry = {.now_ms = clock_now_ms(), .idle_ms = idle_ms};

	uploads_fresh_forget(&uploads->fresh, expiry.now_ms, idle_ms);
	if (uploads_each(uploads, uploads_expire_one, &expiry, err) < 0)
		return -1;
	return expiry.count;
}
