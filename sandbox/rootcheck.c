/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/rootcheck_priv.h"

#include "layers/base/fd.h"
#include "layers/base/path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>

int rootcheck_mounts(int rootfd, struct err *err)
{
	static const char *const names[] = {".", "dev", "proc", "sys"};
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_close int fd = (int)syscall(SYS_openat2, rootfd, names[i], &how, sizeof(how));

		if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
			return err_set(err, ERR_REFUSED,
				       "/%s of the image must be a directory, not a link or file",
				       i ? names[i] : "");
		if (fd < 0 && errno == ENOENT)
			return err_set(err, ERR_REFUSED,
				       "the image has no /%s: one of its layers removes it",
				       names[i]);
		if (fd < 0)
			return err_os(err, errno, "open /%s of the image", i ? names[i] : "");
	}
	return 0;
}

/* Where fd lies below rootfd, by the kernel's own names of both. */
static int rootcheck_path_of(int rootfd, int fd, struct buf *out, struct err *err)
{
	char link[64];
	char root[PATH_TEXT_MAX];
	char path[PATH_TEXT_MAX];
	ssize_t root_len;
	ssize_t path_len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", rootfd);
	root_len = readlink(link, root, sizeof(root));
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	path_len = readlink(link, path, sizeof(path));
	if (root_len < 0 || path_len < 0)
		return err_os(err, errno, "read %s", link);
	if (path_len == (ssize_t)sizeof(path) || path_len < root_len)
		return err_set(err, ERR_LIMIT, "longer than %zu bytes", sizeof(path));
	if (path_len == root_len)
		return buf_add(out, STR("/"), err);
	return buf_add(out, (struct str){path + root_len, (size_t)(path_len - root_len)}, err);
}

static bool rootcheck_is_below(struct str path, struct str dir)
{
	return str_starts(path, dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

int rootcheck_cwd(int rootfd, const char *cwd, struct buf *out, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	auto_close int fd = fd_open_in_root(rootfd, cwd, O_PATH | O_DIRECTORY, 0, err);
	struct str found;

	if (fd < 0)
		return err_set(err, ERR_REFUSED,
			       "working directory %s is not a directory of the image", cwd);
	if (rootcheck_path_of(rootfd, fd, &path, err) < 0)
		return err_ctx(err, "working directory");
	found = buf_str(&path);
	if (rootcheck_is_below(found, STR("/proc")) || rootcheck_is_below(found, STR("/sys")) ||
	    rootcheck_is_below(found, STR("/dev")))
		return err_set(err, ERR_REFUSED,
			       "working directory %s: nothing can be run in /proc, /sys or /dev",
			       cwd);
	return buf_add(out, found, err);
}
