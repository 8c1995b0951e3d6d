/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/inner_priv.h"

#include "layers/base/fd.h"
#include "layers/base/path.h"
#include "sandbox/child_priv.h"
#include "sandbox/machine.h"
#include "sandbox/userns_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

void inner_init(struct inner *inner, const struct machine_mount *mounts, size_t count)
{
	*inner = (struct inner){.mounts = mounts, .count = count};
	inner->entries = calloc(count + 1, sizeof(*inner->entries));
	if (!inner->entries)
		abort();
	for (size_t i = 0; i < count; i++)
		inner->entries[i].fd = -1;
}

void inner_done(struct inner *inner)
{
	for (size_t i = 0; i < inner->count; i++)
		free(inner->entries[i].path);
	free(inner->entries);
	*inner = (struct inner){0};
}

/* A mount of what fd is, in no namespace yet. */
static int inner_clone(int fd, const char *name, struct err *err)
{
	int tree = (int)syscall(SYS_open_tree, fd, name,
				AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return tree < 0 ? err_os(err, errno, "clone a mount") : tree;
}

static int inner_set(int fd, uint64_t flags, int userns, struct err *err)
{
	struct mount_attr attributes = {.attr_set = flags | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID};

	if (userns >= 0) {
		attributes.attr_set |= MOUNT_ATTR_IDMAP;
		attributes.userns_fd = (uint64_t)(unsigned)userns;
	}
	if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
		return err_os(err, errno, "set a mount's attributes");
	return 0;
}

static int inner_open_tree(const struct inner *inner, const struct machine_mount *mount,
			   struct err *err)
{
	auto_close int userns = userns_open(inner->first_id, err);
	auto_close int fd = userns < 0 ? -1 : inner_clone(mount->fd, "", err);

	if (fd < 0 || inner_set(fd, mount->read_only ? MOUNT_ATTR_RDONLY : 0, userns, err) < 0)
		return -1;
	return steal_fd(&fd);
}

static int inner_config(int fsfd, const char *key, const char *value, struct err *err)
{
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_STRING, key, value, 0) < 0)
		return err_os(err, errno, "tmpfs: %s=%s", key, value);
	return 0;
}

static int inner_open_tmpfs(const struct inner *inner, const struct machine_mount *mount,
			    struct err *err)
{
	auto_close int fsfd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	auto_close int fd = -1;
	char size[24];
	char id[24];

	if (fsfd < 0)
		return err_os(err, errno, "tmpfs");
	(void)snprintf(id, sizeof(id), "%u", inner->first_id);
	(void)snprintf(size, sizeof(size), "%" PRIu64, mount->size);
	if (inner_config(fsfd, "uid", id, err) < 0 || inner_config(fsfd, "gid", id, err) < 0 ||
	    inner_config(fsfd, "mode", "1777", err) < 0 ||
	    (mount->size > 0 && inner_config(fsfd, "size", size, err) < 0))
		return -1;
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_os(err, errno, "tmpfs");
	fd = (int)syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		return err_os(err, errno, "tmpfs");
	if (inner_set(fd, mount->read_only ? MOUNT_ATTR_RDONLY : 0, -1, err) < 0)
		return -1;
	return steal_fd(&fd);
}

/* In memory that belongs to this machine and goes with it. */
static int inner_open_secret(const struct inner *inner, size_t i, struct err *err)
{
	const struct machine_mount *mount = &inner->mounts[i];
	struct str bytes = secret_bytes(mount->secret);
	char name[32];
	auto_close int file = -1;
	auto_close int fd = -1;

	(void)snprintf(name, sizeof(name), "secret%zu", i);
	file = openat(inner->scratchfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || fd_write_all(file, bytes.ptr, bytes.len, err) < 0 ||
	    fchown(file, inner->first_id + mount->uid, inner->first_id + mount->gid) < 0 ||
	    fchmod(file, mount->mode) < 0)
		return err_os(err, errno, "make a secret's file");
	fd = inner_clone(inner->scratchfd, name, err);
	if (fd < 0 || inner_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, -1, err) < 0)
		return -1;
	return steal_fd(&fd);
}

static int inner_open_source(const struct inner *inner, size_t i, struct err *err)
{
	const struct machine_mount *mount = &inner->mounts[i];

	switch (mount->kind) {
	case MACHINE_MOUNT_TREE:
		return inner_open_tree(inner, mount, err);
	case MACHINE_MOUNT_TMPFS:
		return inner_open_tmpfs(inner, mount, err);
	case MACHINE_MOUNT_SECRET:
		return inner_open_secret(inner, i, err);
	}
	return err_set(err, ERR_INVALID, "a mount of no kind");
}

static int inner_open_at(int rootfd, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, rootfd, path, &how, sizeof(how));
}

struct inner_missing {
	const char *path;
	bool is_file;
};

/*
 * As the machine's root, inside another mount, whose content earlier steps have
 * written and may be hostile.
 */
static int inner_make_missing(void *ctx, int rootfd, struct err *err)
{
	const struct inner_missing *missing = ctx;
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str rest = str_of(missing->path);
	struct str part;

	while (path_next(&rest, &part)) {
		auto_close int dirfd =
			inner_open_at(rootfd, path.ptr ? path.ptr : "/", O_RDONLY | O_DIRECTORY);
		auto_close int fd = -1;
		size_t at = path.len + 1;

		if (dirfd < 0)
			return err_os(err, errno, "open %s", path.ptr ? path.ptr : "/");
		if (buf_add(&path, STR("/"), err) < 0 || buf_add(&path, part, err) < 0)
			return -1;
		if (rest.len == 0 && missing->is_file)
			fd = openat(dirfd, path.ptr + at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				    0644);
		else if (mkdirat(dirfd, path.ptr + at, 0755) == 0 || errno == EEXIST)
			continue;
		if (fd < 0 && errno == EROFS)
			return err_set(
				err, ERR_REFUSED,
				"%s is not in what is mounted there, which is read-only: add "
				"it to that, or say rw",
				path.ptr);
		if (fd < 0)
			return err_os(err, errno, "make %s", path.ptr);
	}
	return 0;
}

static int inner_open_target(const struct inner *inner, size_t i, int rootfd, int source,
			     struct err *err)
{
	struct inner_missing missing = {.path = inner->entries[i].path};
	int fd = inner_open_at(rootfd, missing.path, O_PATH);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		if (fstat(source, &st) < 0)
			return err_os(err, errno, "inspect a mount");
		missing.is_file = !S_ISDIR(st.st_mode);
		if (child_run(inner->first_id, rootfd, inner_make_missing, &missing, NULL, err) < 0)
			return -1;
		fd = inner_open_at(rootfd, missing.path, O_PATH);
	}
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_REFUSED, "a link or a file is in its way");
	return fd < 0 ? err_os(err, errno, "open it") : fd;
}

static int inner_mount_one(struct inner *inner, size_t i, int rootfd, struct err *err)
{
	auto_close int fd = inner_open_source(inner, i, err);
	auto_close int targetfd = fd < 0 ? -1 : inner_open_target(inner, i, rootfd, fd, err);

	if (targetfd < 0)
		return -1;
	if (syscall(SYS_move_mount, fd, "", targetfd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return errno == ENOTDIR ? err_set(err, ERR_REFUSED,
						  "a file cannot be mounted on a directory, nor a "
						  "directory on a file")
					: err_os(err, errno, "attach");
	inner->entries[i].fd = steal_fd(&fd);
	return 0;
}

int inner_mount(struct inner *inner, int rootfd, struct err *err)
{
	if (inner->mounted)
		return 0;
	inner->mounted = true;
	for (size_t i = 0; i < inner->count; i++) {
		if (!inner_is_runtimes(&inner->mounts[i]) &&
		    inner_mount_one(inner, i, rootfd, err) < 0)
			return err_ctx(err, "mount on %s", inner->mounts[i].target);
	}
	return 0;
}

/* By descriptor, since a command may have replaced the path. */
void inner_unmount(struct inner *inner)
{
	char path[64];

	for (size_t i = inner->count; i-- > 0;) {
		struct inner_entry *entry = &inner->entries[i];

		if (entry->fd < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", entry->fd);
		(void)umount2(path, MNT_DETACH);
		auto_close_release(&entry->fd);
		entry->fd = -1;
	}
}
