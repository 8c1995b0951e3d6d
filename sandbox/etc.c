/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/etc_priv.h"

#include "layers/base/fd.h"
#include "sandbox/child_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const etc_names[ETC_FILES] = {"resolv.conf", "hosts", "hostname"};

static int etc_make_base(int dirfd, struct err *err)
{
	static const char *const dirs[] = {"base", "base/dev", "base/proc", "base/sys", "base/etc"};
	char path[64];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if ((mkdirat(dirfd, dirs[i], 0755) < 0 && errno != EEXIST) ||
		    fchmodat(dirfd, dirs[i], 0755, 0) < 0)
			return err_os(err, errno, "make %s", dirs[i]);
	}
	for (size_t i = 0; i < ETC_FILES; i++) {
		auto_close int fd = -1;

		(void)snprintf(path, sizeof(path), "base/etc/%s", etc_names[i]);
		fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || fchmod(fd, 0644) < 0)
			return err_os(err, errno, "make %s", path);
	}
	return 0;
}

int etc_open_base(int dirfd, struct err *err)
{
	int fd;

	if (etc_make_base(dirfd, err) < 0)
		return -1;
	fd = openat(dirfd, "base", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_os(err, errno, "open base") : fd;
}

/* The machine's root may write them, as it could a file of the image; nobody keeps it. */
static int etc_write(const struct etc *etc, const char *name, struct str text, struct err *err)
{
	auto_close int fd = openat(etc->scratchfd, name,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || fchmod(fd, 0644) < 0 || fchown(fd, etc->owner, etc->owner) < 0)
		return err_os(err, errno, "make %s", name);
	return fd_write_all(fd, text.ptr, text.len, err);
}

static int etc_write_all(const struct etc *etc, struct str resolv_conf, struct str hostname,
			 struct err *err)
{
	auto_buf struct buf hosts = BUF_INIT(ETC_TEXT_MAX);
	auto_buf struct buf name = BUF_INIT(ETC_TEXT_MAX);

	if (buf_addf(&hosts, err,
		     "127.0.0.1\tlocalhost " STR_FMT
		     "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		     STR_ARG(hostname)) < 0 ||
	    buf_addf(&name, err, STR_FMT "\n", STR_ARG(hostname)) < 0)
		return -1;
	if (etc_write(etc, etc_names[0], resolv_conf, err) < 0 ||
	    etc_write(etc, etc_names[1], buf_str(&hosts), err) < 0)
		return -1;
	return etc_write(etc, etc_names[2], buf_str(&name), err);
}

/* Host root has no id in the machine's file system: only a child may make a file there. */
static int etc_make_target(void *ctx, int dirfd, struct err *err)
{
	const char *name = ctx;
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? err_os(err, errno, "make /etc/%s", name) : 0;
}

/* What is at the name, link or file, opened as a place to mount on. */
static int etc_open_target(struct etc *etc, size_t i, struct err *err)
{
	char name[16];
	int fd = openat(etc->dirfd, etc_names[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		(void)snprintf(name, sizeof(name), "%s", etc_names[i]);
		if (child_run(etc->owner, etc->dirfd, etc_make_target, name, NULL, err) < 0)
			return -1;
		etc->made[i] = true;
		fd = openat(etc->dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd < 0 ? err_os(err, errno, "open /etc/%s", etc_names[i]) : fd;
}

static int etc_mount_one(struct etc *etc, size_t i, struct err *err)
{
	auto_close int targetfd = etc_open_target(etc, i, err);
	auto_close int fd = -1;
	struct stat st;

	if (targetfd < 0)
		return -1;
	if (fstat(targetfd, &st) < 0)
		return err_os(err, errno, "inspect /etc/%s", etc_names[i]);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_REFUSED, "/etc/%s of the image is a directory",
			       etc_names[i]);
	fd = (int)syscall(SYS_open_tree, etc->scratchfd, etc_names[i],
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || syscall(SYS_move_mount, fd, "", targetfd, "",
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_os(err, errno, "mount /etc/%s", etc_names[i]);
	return 0;
}

int etc_mount(struct etc *etc, struct str resolv_conf, struct str hostname, struct err *err)
{
	if (etc_write_all(etc, resolv_conf, hostname, err) < 0)
		return -1;
	if (etc->dirfd >= 0)
		return 0;
	etc->dirfd = fd_open_in_root(etc->rootfd, "/etc", O_RDONLY | O_DIRECTORY, 0, err);
	if (etc->dirfd < 0 && err->os == ENOENT)
		return err_set(err, ERR_REFUSED,
			       "the image has no /etc: one of its layers removes it, or it is a "
			       "link to nowhere");
	if (etc->dirfd < 0)
		return err_set(err, ERR_REFUSED, "/etc of the image is not a directory");
	for (size_t i = 0; i < ETC_FILES; i++) {
		if (etc_mount_one(etc, i, err) < 0)
			return -1;
	}
	return 0;
}

void etc_unmount(struct etc *etc)
{
	char path[64];

	for (size_t i = 0; etc->dirfd >= 0 && i < ETC_FILES; i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", etc->dirfd, etc_names[i]);
		(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		if (etc->made[i])
			(void)unlinkat(etc->dirfd, etc_names[i], 0);
		etc->made[i] = false;
	}
	auto_close_release(&etc->dirfd);
	etc->dirfd = -1;
}
