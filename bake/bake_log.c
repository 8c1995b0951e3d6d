/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/bake_log.h"

#include "layers/base/fd.h"
#include "layers/base/ulid.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define BAKE_LOG_DIR "logs"
#define BAKE_LOG_PIECE ((size_t)64 * 1024)

static const char bake_log_end[] = "\n[the rest of this log is left out]\n";

/* The file's name. False for what is no id. */
static bool bake_log_name(struct str id, char name[static ID_TEXT_MAX])
{
	if (!ulid_is_id(STR("bak_"), id))
		return false;
	(void)snprintf(name, ID_TEXT_MAX, STR_FMT, STR_ARG(id));
	return true;
}

int bake_log_open(struct store *store, struct str id, struct bake_log *out, struct err *err)
{
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_ROOT), BAKE_LOG_DIR, err);
	auto_close int fd = -1;
	char name[ID_TEXT_MAX];
	struct stat st;

	if (dirfd < 0)
		return -1;
	if (!bake_log_name(id, name))
		return err_set(err, ERR_INVALID, "no bake's id: " STR_FMT, STR_ARG(id));
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_os(err, errno, "open the log of bake %s", name);
	*out = (struct bake_log){.fd = steal_fd(&fd), .size = (uint64_t)st.st_size};
	return 0;
}

int bake_log_add(struct bake_log *log, struct str bytes, struct err *err)
{
	uint64_t room = BAKE_LOG_BYTES_MAX - log->size;

	if (log->size >= BAKE_LOG_BYTES_MAX || bytes.len == 0)
		return 0;
	if (fd_write_all(log->fd, bytes.ptr, bytes.len < room ? bytes.len : (size_t)room, err) < 0)
		return err_ctx(err, "write a bake's log");
	log->size += bytes.len < room ? bytes.len : room;
	if (bytes.len < room)
		return 0;
	return fd_write_all(log->fd, bake_log_end, sizeof(bake_log_end) - 1, err);
}

void bake_log_close(struct bake_log *log)
{
	auto_close_release(&log->fd);
	log->fd = -1;
}

int bake_log_read(struct store *store, struct str id, uint64_t offset, struct buf *out,
		  struct err *err)
{
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_ROOT), BAKE_LOG_DIR, err);
	auto_close int fd = -1;
	char name[ID_TEXT_MAX];

	if (dirfd < 0)
		return -1;
	if (!bake_log_name(id, name))
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open the log of bake %s", name);
	while (out->len < out->max) {
		char piece[BAKE_LOG_PIECE];
		size_t room = out->max - out->len;
		ssize_t n = fd_pread_all(fd, piece, room < sizeof(piece) ? room : sizeof(piece),
					 (off_t)offset, err);

		if (n <= 0)
			return (int)n;
		if (buf_add(out, (struct str){piece, (size_t)n}, err) < 0)
			return -1;
		offset += (uint64_t)n;
	}
	return 0;
}

void bake_log_remove(struct store *store, struct str id)
{
	struct err ignored;
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_ROOT), BAKE_LOG_DIR, &ignored);
	char name[ID_TEXT_MAX];

	if (dirfd >= 0 && bake_log_name(id, name) && unlinkat(dirfd, name, 0) < 0)
		return; /* there was no log, or it stays until the data directory goes */
}
