/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/uploads_file.h"

#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "layers/base/json.h"
#include "layers/base/ulid.h"

#include <fcntl.h>
#include <unistd.h>

static int uploads_file_format(struct str repository, struct buf *out, struct err *err)
{
	AUTO(json) json_t *page = json_object();
	char at[CLOCK_TEXT_MAX];

	json_set_int(page, "v", 1);
	json_set(page, "repository", json_from_str(repository));
	json_set_text(page, "startedAt", clock_format(clock_now_ms(), at));
	if (json_format(page, out, err) < 0)
		return -1;
	return buf_add(out, STR("\n"), err);
}

int uploads_file_make(int dirfd, const char *id, struct str repository, struct err *err)
{
	auto_buf struct buf line = BUF_INIT(UPLOADS_FILE_PAGE);
	char page[UPLOADS_FILE_PAGE] = "";
	auto_close int fd = -1;

	if (uploads_file_format(repository, &line, err) < 0)
		return -1;
	memcpy(page, line.ptr, line.len);
	fd = openat(dirfd, id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_os(err, errno, "make an upload");
	if (fd_write_all(fd, page, sizeof(page), err) == 0)
		return 0;
	(void)unlinkat(dirfd, id, 0);
	return -1;
}

int uploads_file_open(int dirfd, struct str id, int flags, struct err *err)
{
	char name[ULID_TEXT_MAX];
	int fd;

	if (!ulid_is_valid(id))
		return -2;
	memcpy(name, id.ptr, id.len);
	name[id.len] = '\0';
	fd = openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -2 : err_os(err, errno, "open an upload");
}

int uploads_file_is_of(int fd, struct str repository, struct err *err)
{
	AUTO(json) json_t *page = NULL;
	char bytes[UPLOADS_FILE_PAGE];
	ssize_t n = fd_pread_all(fd, bytes, sizeof(bytes), 0, err);
	struct str rest = {bytes, n < 0 ? 0 : (size_t)n};
	struct str line;
	struct str name;
	struct err why;

	if (n < 0)
		return -1;
	if ((size_t)n < sizeof(bytes) || !str_cut(&rest, '\n', &line) ||
	    json_parse(line, sizeof(bytes), &page, &why) < 0 ||
	    json_need_string(page, "", "repository", &name, &why) < 0)
		return 0;
	return str_equal(name, repository);
}
