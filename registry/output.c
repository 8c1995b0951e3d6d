/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/output.h"

#include "layers/base/fd.h"
#include "layers/base/ulid.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define OUTPUT_STAGED ".hearth-" /* and a ULID */
/* Start writing early: without this all of it would wait for the sync. */
#define OUTPUT_FLUSH_BYTES ((uint64_t)8 * 1024 * 1024)

static void output_flush(struct output *output)
{
	if (output->done - output->flushed < OUTPUT_FLUSH_BYTES)
		return;
	(void)sync_file_range(output->fd, (off_t)output->flushed,
			      (off_t)(output->done - output->flushed), SYNC_FILE_RANGE_WRITE);
	output->flushed = output->done;
}

/* The reader of a stream may stall: the cancel is checked while waiting. */
static int output_write_stream(const struct output *output, struct str bytes, struct err *err)
{
	struct pollfd fds[] = {{.fd = output->fd, .events = POLLOUT},
			       {.fd = cancel_fd(output->cancel), .events = POLLIN}};

	while (bytes.len > 0) {
		ssize_t n = write(output->fd, bytes.ptr, bytes.len);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_os(err, errno, "write the stream");
		if (n < 0)
			(void)poll(fds, 2, -1);
		if (cancel_check(output->cancel, err) < 0)
			return -1;
		bytes.ptr += n > 0 ? n : 0;
		bytes.len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int output_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct output *output = container_of(sink, struct output, sink);

	if (cancel_check(output->cancel, err) < 0)
		return -1;
	if (output->dirfd < 0)
		return output_write_stream(output, bytes, err);
	if (fd_write_all(output->fd, bytes.ptr, bytes.len, err) < 0)
		return -1;
	output->done += bytes.len;
	output_flush(output);
	return 0;
}

static const char *output_staged_name(char name[static OUTPUT_STAGED_MAX])
{
	char id[ULID_TEXT_MAX];

	(void)snprintf(name, OUTPUT_STAGED_MAX, OUTPUT_STAGED "%s", ulid_new(id));
	return name;
}

/* Where a file system has no files without a name, one with a name of ours. */
static int output_stage(struct output *output, struct err *err)
{
	output->fd = openat(output->dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (output->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
		return err_os(err, errno, "write %s", output->name);
	output_staged_name(output->staged);
	output->fd = openat(output->dirfd, output->staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    0666);
	if (output->fd >= 0)
		return 0;
	output->staged[0] = '\0';
	return err_os(err, errno, "write %s", output->name);
}

static int output_open_dir(const char *path, struct output *output, struct err *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	output->name = strdup(slash ? slash + 1 : path);
	if (!dir || !output->name)
		abort();
	if (!output->name[0] || fd_is_dots(output->name))
		return err_set(err, ERR_INVALID, "%s is no file's name", path);
	output->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (output->dirfd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, ERR_NOT_FOUND, "there is no directory %s", dir);
	return output->dirfd < 0 ? err_os(err, errno, "open %s", dir) : 0;
}

/* Open a pipe anew, so that O_NONBLOCK does not affect others who share it. */
static int output_open_stream(int streamfd, struct output *output, struct err *err)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", streamfd);
	if (fstat(streamfd, &st) == 0 && S_ISFIFO(st.st_mode))
		output->fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (output->fd < 0)
		output->fd = fcntl(streamfd, F_DUPFD_CLOEXEC, 3);
	return output->fd < 0 ? err_os(err, errno, "write the stream") : 0;
}

/* Look at what has the name now: 1 it is written as bytes come, 0 it is replaced, -1. */
static int output_open_there(const char *path, struct output *output, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (stat(path, &st) < 0)
		return 0; /* or its directory is missing, which is told later */
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is a directory; name the file in it", path);
	if (S_ISREG(st.st_mode) && st.st_nlink > 0) /* a link of /proc may lead to one without */
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY); /* a fifo's reader is waited for */
	if (fd < 0)
		return cancel_check(output->cancel, err) < 0 ? -1
							     : err_os(err, errno, "open %s", path);
	return output_open_stream(fd, output, err) < 0 ? -1 : 1;
}

/* A link to a file stays one: out is where it leads, or the path itself. 0, -1. */
static int output_follow(const char *path, char out[static PATH_MAX], struct err *err)
{
	auto_close int fd = -1;
	char link[64];
	struct stat st;
	ssize_t n;

	(void)snprintf(out, PATH_MAX, "%s", path);
	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode) || stat(path, &st) < 0)
		return 0;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return err_os(err, errno, "open %s", path);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n < 0)
		return err_os(err, errno, "follow %s", path);
	out[n] = '\0';
	return 0;
}

static int output_open_path(const char *path, struct output *output, struct err *err)
{
	char target[PATH_MAX];
	int there = output_open_there(path, output, err);

	if (there != 0)
		return there < 0 ? -1 : 0;
	if (output_follow(path, target, err) < 0 || output_open_dir(target, output, err) < 0)
		return -1;
	return output_stage(output, err);
}

int output_open(struct str path, int streamfd, const struct cancel *cancel, struct output *out,
		struct err *err)
{
	auto_free char *text = str_dup(path);
	auto_output struct output output = OUTPUT_INIT;
	int result;

	output.sink.write = output_write;
	output.cancel = cancel;
	if (strcmp(text, "-") == 0)
		result = output_open_stream(streamfd, &output, err);
	else
		result = output_open_path(text, &output, err);
	if (result < 0)
		return -1;
	*out = output;
	output = OUTPUT_INIT;
	return 0;
}

/* A name beside the file's: a link cannot replace one. */
static int output_link(struct output *output, struct err *err)
{
	char path[64];

	if (output->staged[0])
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", output->fd);
	output_staged_name(output->staged);
	if (linkat(AT_FDCWD, path, output->dirfd, output->staged, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	output->staged[0] = '\0';
	return err_os(err, errno, "write %s", output->name);
}

int output_commit(struct output *output, struct err *err)
{
	if (cancel_check(output->cancel, err) < 0)
		return -1;
	if (output->dirfd < 0)
		return 0;
	if (fsync(output->fd) < 0)
		return err_os(err, errno, "sync %s", output->name);
	if (output_link(output, err) < 0)
		return -1;
	if (renameat(output->dirfd, output->staged, output->dirfd, output->name) < 0)
		return err_os(err, errno, "write %s", output->name);
	output->staged[0] = '\0';
	return fsync(output->dirfd) < 0 ? err_os(err, errno, "sync the directory") : 0;
}

void output_close(struct output *output)
{
	if (output->staged[0])
		(void)unlinkat(output->dirfd, output->staged, 0);
	auto_close_release(&output->fd);
	auto_close_release(&output->dirfd);
	free(output->name);
	*output = OUTPUT_INIT;
}
