/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_source_priv.h"

#include "layers/base/fd.h"
#include "layers/layer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#define TAR_PIECE_SIZE ((size_t)256 * 1024)

int tar_source_check_cancel(const struct tar_source *source, struct err *err)
{
	if (cancel_check(source->cancel, err) < 0)
		return -1;
	return cancel_check(source->cancel_too, err);
}

/* Where the archive is staged: a file without a name, on the store's disk. */
static int tar_stage(struct store *store, struct err *err)
{
	auto_staging struct staging staging = STAGING_INIT;
	int fd;

	if (staging_open(store, &staging, err) < 0)
		return -1;
	fd = openat(staging.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? err_os(err, errno, "stage the archive") : fd;
}

struct tar_stage_sink {
	struct sink sink;
	int fd;
};

static int tar_stage_write(struct sink *sink, struct str bytes, struct err *err)
{
	const struct tar_stage_sink *to = container_of(sink, struct tar_stage_sink, sink);

	return fd_write_all(to->fd, bytes.ptr, bytes.len, err);
}

/* A stream may have nothing to say for long: 1 and a piece, 0 at the end, -1. */
static ssize_t tar_stream_read(const struct tar_source *source, int fd, char *piece,
			       struct err *err)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = cancel_fd(source->cancel), .events = POLLIN}};

	for (;;) {
		ssize_t n;

		(void)poll(fds, 2, -1);
		if (tar_source_check_cancel(source, err) < 0)
			return -1;
		n = read(fd, piece, TAR_PIECE_SIZE);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return err_os(err, errno, "read the archive");
	}
}

static int tar_inflate(const struct tar_source *source, int from, int to, struct err *err)
{
	struct tar_stage_sink sink = {{tar_stage_write}, to};
	AUTO(inflater) struct inflater *inflater = NULL;
	auto_free char *piece = malloc(TAR_PIECE_SIZE);
	ssize_t n;

	if (!piece)
		abort();
	if (inflater_open(&sink.sink, TAR_SOURCE_BYTES_MAX, &inflater, err) < 0)
		return -1;
	while ((n = tar_stream_read(source, from, piece, err)) > 0) {
		if (inflater_write(inflater, (struct str){piece, (size_t)n}, err) < 0)
			return -1;
	}
	return n < 0 ? -1 : inflater_finish(inflater, err);
}

static bool tar_is_compressed(int fd)
{
	char bytes[INFLATER_FIRST];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	enum layer_codec codec;

	return n > 0 && inflater_recognizes((struct str){bytes, (size_t)n}, &codec);
}

static int tar_open_path(struct str path, struct err *err)
{
	auto_free char *name = str_dup(path);
	int fd;

	fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, ERR_NOT_FOUND, "there is no file %s", name);
	return fd < 0 ? err_os(err, errno, "open %s", name) : fd;
}

/* What the user named, as it is. */
static int tar_open_source(const struct tar_source *source, struct err *err)
{
	int fd;

	if (!str_equal(source->path, STR("-")))
		return tar_open_path(source->path, err);
	if (source->streamfd <= 0)
		return err_set(err, ERR_INVALID,
			       "- is a stream, which only hearth import and "
			       "hearth copy read");
	fd = fcntl(source->streamfd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? err_os(err, errno, "open the stream") : fd;
}

int tar_source_open(const struct tar_source *source, int *out_fd, uint64_t *out_size,
		    struct err *err)
{
	auto_close int from = tar_open_source(source, err);
	auto_close int plain = -1;
	struct stat st;

	if (from < 0)
		return -1;
	if (fstat(from, &st) < 0)
		return err_os(err, errno, "stat the archive");
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "a directory, and no archive; oci:DIR reads one");
	if (S_ISREG(st.st_mode) && lseek(from, 0, SEEK_CUR) == 0 && !tar_is_compressed(from)) {
		plain = steal_fd(&from);
	} else {
		plain = tar_stage(source->store, err);
		if (plain < 0 || tar_inflate(source, from, plain, err) < 0)
			return -1;
	}
	if (fstat(plain, &st) < 0)
		return err_os(err, errno, "stat the archive");
	*out_size = (uint64_t)st.st_size;
	*out_fd = steal_fd(&plain);
	return 0;
}
