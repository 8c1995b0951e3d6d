/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/cgroup_priv.h"

#include "layers/base/buf.h"
#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "layers/base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/vfs.h>

#define CGROUP_POLL_MS 1
#define CGROUP_PROCS_MAX ((size_t)1 << 20)
#define CGROUP_HIERARCHIES_MAX 32
#define CGROUP_CONTROLLERS_MAX ((size_t)4096)

int cgroup_open_root(struct err *err)
{
	int fd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_os(err, errno, "open /sys/fs/cgroup") : fd;
}

static bool cgroup_write(int dirfd, const char *file, const char *text)
{
	auto_close int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static void cgroup_kill_listed(int dirfd)
{
	auto_close int fd = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(CGROUP_PROCS_MAX);
	struct str rest;
	struct str line;
	struct err ignored;
	uint64_t pid;

	/* More than fits is killed by the next call. */
	if (fd < 0 || (fd_read_all(fd, &text, &ignored) < 0 && ignored.kind != ERR_LIMIT))
		return;
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line)) {
		if (str_take_number(&line, &pid) && pid > 1 && pid <= INT_MAX)
			(void)kill((pid_t)pid, SIGKILL);
	}
}

/* Version 1 has no cgroup.kill: freeze first, so that nothing forks meanwhile. */
static void cgroup_kill(int dirfd)
{
	if (cgroup_write(dirfd, "cgroup.kill", "1"))
		return;
	(void)cgroup_write(dirfd, "freezer.state", "FROZEN");
	cgroup_kill_listed(dirfd);
	(void)cgroup_write(dirfd, "freezer.state", "THAWED");
}

/* Some cgroup in dirfd, if there is one; else name stays what it is. */
static bool cgroup_find_child(int dirfd, char name[static NAME_MAX + 1])
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err ignored;

	if (fd_open_dir(dirfd, ".", &dir, &ignored) < 0)
		return false;
	while ((entry = readdir(dir))) {
		if (entry->d_type == DT_DIR && !fd_is_dots(entry->d_name)) {
			(void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
			return true;
		}
	}
	return false;
}

/* Go down from top to a cgroup without children, killing, and remove that. Whether it is gone. */
static bool cgroup_end_lowest(int rootfd, const char *top)
{
	auto_close int parentfd = openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	(void)snprintf(name, sizeof(name), "%s", top);
	while (parentfd >= 0) {
		auto_close int dirfd =
			openat(parentfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (dirfd < 0)
			return errno == ENOENT;
		cgroup_kill(dirfd);
		if (!cgroup_find_child(dirfd, name))
			return unlinkat(parentfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
		auto_close_release(&parentfd);
		parentfd = steal_fd(&dirfd);
	}
	return false;
}

/* Kill and remove one hierarchy's directory, until end. Whether it is gone. */
static bool cgroup_end_in(int parentfd, const char *name, int64_t end)
{
	while (unlinkat(parentfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		if (!cgroup_end_lowest(parentfd, name) || clock_monotonic_ms() > end)
			return false;
	}
	return true;
}

/* The hierarchy at rootfd/name, or -1 for a directory that is none. */
static int cgroup_open_hierarchy(int rootfd, const char *name)
{
	auto_close int fd = openat(rootfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0 ||
	    (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC))
		return -1;
	return steal_fd(&fd);
}

/* The root where it is one itself (version 2), and else what is mounted in it. */
static size_t cgroup_open_hierarchies(int rootfd, int fds[static CGROUP_HIERARCHIES_MAX])
{
	int fd = openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	size_t count = 0;
	bool whole;

	fds[0] = cgroup_open_hierarchy(rootfd, ".");
	whole = fds[0] >= 0;
	count += whole;
	while (dir && !whole && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		fds[count] = cgroup_open_hierarchy(rootfd, entry->d_name);
		if (fds[count] >= 0 && ++count == CGROUP_HIERARCHIES_MAX)
			break;
	}
	if (dir)
		(void)closedir(dir);
	return count;
}

int cgroup_end(int rootfd, const char *name, struct err *err)
{
	int64_t end = clock_monotonic_ms() + CGROUP_END_MS;
	int fds[CGROUP_HIERARCHIES_MAX];
	size_t count = cgroup_open_hierarchies(rootfd, fds);
	bool gone = false;

	while (!gone) {
		gone = true;
		for (size_t i = 0; i < count; i++)
			gone = cgroup_end_in(fds[i], name, end) && gone;
		if (gone || clock_monotonic_ms() > end)
			break;
		(void)poll(NULL, 0, CGROUP_POLL_MS);
	}
	for (size_t i = 0; i < count; i++)
		auto_close_release(&fds[i]);
	if (!gone)
		return err_set(err, ERR_TIMEOUT, "processes of cgroup %s do not end", name);
	return 0;
}

bool cgroup_has_controller(int rootfd, const char *name)
{
	auto_close int fd = openat(rootfd, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(CGROUP_CONTROLLERS_MAX);
	struct str rest;
	struct str word;
	struct err ignored;

	if (fd < 0)
		return faccessat(rootfd, name, F_OK, 0) == 0;
	if (fd_read_all(fd, &text, &ignored) < 0)
		return false;
	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.ptr[--text.len] = '\0';
	rest = buf_str(&text);
	while (str_cut(&rest, ' ', &word)) {
		if (str_equal(word, str_of(name)))
			return true;
	}
	return false;
}

/* The file of one line, HIERARCHY:CONTROLLERS:PATH, below the root. */
static int cgroup_open_own(int rootfd, struct str line)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str number;
	struct str name;
	struct err ignored;

	if (!str_cut(&line, ':', &number) || !str_cut(&line, ':', &name) ||
	    !str_starts(line, STR("/")))
		return -1;
	if (str_starts(name, STR("name=")))
		name = str_skip(name, 5);
	if (buf_addf(&path, &ignored, "./" STR_FMT STR_FMT "/cgroup.procs", STR_ARG(name),
		     STR_ARG(line)) < 0)
		return -1;
	return openat(rootfd, path.ptr, O_WRONLY | O_CLOEXEC);
}

bool cgroup_hasten(int rootfd, struct str own)
{
	struct str line;

	while (str_cut(&own, '\n', &line)) {
		auto_close int fd = cgroup_open_own(rootfd, line);

		if (fd >= 0)
			return write(fd, "0", 1) == 1;
	}
	return false;
}
