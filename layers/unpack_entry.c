/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_entry.c - one entry of a tar becomes one file.
 *
 * The order is owner, mode, xattrs, time: a change of owner clears setuid and
 * capabilities, an ACL's mask is a part of the mode.
 */
#include "layers/base/room.h"
#include "layers/unpack_priv.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

struct entry {
	struct unpack *unpack;
	struct archive_entry *raw;
	const char *name; /* in the directory that we are in */
	mode_t type;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

static int entry_dirfd(const struct entry *entry)
{
	return dirs_fd(&entry->unpack->dirs);
}

static int entry_read_owner(int64_t id, unsigned *out, struct err *err)
{
	if (id < 0 || id > TREE_OWNER_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			       "its owner is %lld, and ids above %lld are not supported",
			       (long long)id, (long long)TREE_OWNER_MAX);
	*out = (unsigned)id;
	return 0;
}

static int entry_read(struct entry *entry, struct err *err)
{
	struct archive_entry *raw = entry->raw;

	entry->type = archive_entry_filetype(raw);
	entry->mode = archive_entry_perm(raw) & 07777;
	entry->mtime.tv_sec = archive_entry_mtime(raw);
	entry->mtime.tv_nsec = archive_entry_mtime_nsec(raw);
	if (entry->mtime.tv_nsec < 0 || entry->mtime.tv_nsec > 999999999)
		return err_set(err, ERR_CORRUPT, "its time is malformed");
	if (entry->unpack->name.plain)
		return 0;
	if (entry_read_owner(archive_entry_uid(raw), &entry->uid, err) < 0)
		return -1;
	return entry_read_owner(archive_entry_gid(raw), &entry->gid, err);
}

/* A path that reaches the file itself, for calls that have no *at() form. */
static void entry_proc_path(const struct entry *entry, char path[static PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "/proc/self/fd/%d/%s", entry_dirfd(entry), entry->name);
}

static int entry_set_xattr(const struct entry *entry, int fd, const char *name, struct str value,
			   struct err *err)
{
	char path[PATH_MAX];
	int failed;

	if (fd >= 0) {
		failed = fsetxattr(fd, name, value.ptr, value.len, 0);
	} else {
		entry_proc_path(entry, path);
		failed = lsetxattr(path, name, value.ptr, value.len, 0);
	}
	if (failed && (errno == EINVAL || errno == ERANGE || errno == E2BIG))
		return err_set(err, ERR_CORRUPT, "its xattr %.100s is malformed", name);
	if (failed)
		return room_xattr_failed(entry_dirfd(entry), errno, name, value.len, err);
	return 0;
}

/* What was made below a directory with a default ACL has inherited one. */
static void entry_drop_inherited(const struct entry *entry, int fd)
{
	static const char *const acls[] = {"system.posix_acl_access", "system.posix_acl_default"};
	char path[PATH_MAX];

	if (!entry->unpack->default_acls || entry->type == AE_IFLNK)
		return;
	entry_proc_path(entry, path);
	for (size_t i = 0; i < sizeof(acls) / sizeof(acls[0]); i++) {
		if ((fd >= 0 ? fremovexattr(fd, acls[i]) : lremovexattr(path, acls[i])) < 0)
			continue; /* there is none */
	}
}

static int entry_set_xattrs(const struct entry *entry, int fd, struct err *err)
{
	char v2[CAPABILITY_V2_SIZE];
	const char *name;
	const void *bytes;
	size_t size;

	entry_drop_inherited(entry, fd);
	archive_entry_xattr_reset(entry->raw);
	while (archive_entry_xattr_next(entry->raw, &name, &bytes, &size) == ARCHIVE_OK) {
		struct str value = {bytes, size};

		if (!name || !overlay_keeps_xattr(name, entry->type))
			continue;
		if (strcmp(name, "security.capability") == 0)
			value = overlay_capability(value, v2);
		if (entry_set_xattr(entry, fd, name, value, err) < 0)
			return -1;
		if (strcmp(name, "system.posix_acl_default") == 0)
			entry->unpack->default_acls = true;
	}
	return 0;
}

/* Owner, mode and xattrs of an open file or directory. */
static int entry_dress(const struct entry *entry, int fd, struct err *err)
{
	if (fchown(fd, entry->uid, entry->gid) < 0)
		return err_os(err, errno, "set owner");
	if (fchmod(fd, entry->mode) < 0)
		return err_os(err, errno, "set mode");
	return entry_set_xattrs(entry, fd, err);
}

/* The same, and the time, of what cannot be opened. */
static int entry_dress_special(const struct entry *entry, struct err *err)
{
	const struct timespec times[2] = {entry->mtime, entry->mtime};
	int dirfd = entry_dirfd(entry);

	if (fchownat(dirfd, entry->name, entry->uid, entry->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "set owner");
	if (entry->type != AE_IFLNK && fchmodat(dirfd, entry->name, entry->mode, 0) < 0)
		return err_os(err, errno, "set mode");
	if (entry_set_xattrs(entry, -1, err) < 0)
		return -1;
	if (utimensat(dirfd, entry->name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "set time");
	return 0;
}

static int entry_make_file(const struct entry *entry, struct err *err)
{
	const struct timespec times[2] = {entry->mtime, entry->mtime};
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	auto_close int fd = openat(entry_dirfd(entry), entry->name, flags, 0600);

	if (fd < 0 && errno == EEXIST) {
		if (unpack_clear(&entry->unpack->dirs, entry->name, err) < 0)
			return -1;
		fd = openat(entry_dirfd(entry), entry->name, flags, 0600);
	}
	if (fd < 0)
		return err_os(err, errno, "make a file");
	if (unpack_data(entry->unpack, entry->raw, fd, err) < 0 || entry_dress(entry, fd, err) < 0)
		return -1;
	if (futimens(fd, times) < 0)
		return err_os(err, errno, "set time");
	return 0;
}

static int entry_open_dir(const struct entry *entry)
{
	return openat(entry_dirfd(entry), entry->name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/*
 * A directory that replaces an earlier entry hides what a lower layer has
 * there, as that entry did.
 */
static int entry_make_dir(const struct entry *entry, struct err *err)
{
	bool made = mkdirat(entry_dirfd(entry), entry->name, 0700) == 0;
	bool replaced = false;
	auto_close int fd = -1;

	if (!made && errno != EEXIST)
		return err_os(err, errno, "make a directory");
	fd = entry_open_dir(entry);
	if (fd < 0 && !made && (errno == ENOTDIR || errno == ELOOP)) {
		if (unpack_clear(&entry->unpack->dirs, entry->name, err) < 0)
			return -1;
		if (mkdirat(entry_dirfd(entry), entry->name, 0700) < 0)
			return err_os(err, errno, "make a directory");
		replaced = true;
		fd = entry_open_dir(entry);
	}
	if (fd < 0)
		return err_os(err, errno, "open a directory");
	if (entry_dress(entry, fd, err) < 0 || (!made && overlay_unmark_implied(fd, err) < 0))
		return -1;
	if (replaced && overlay_mark_opaque(fd, err) < 0)
		return -1;
	return dirs_push(&entry->unpack->dirs, str_of(entry->name), steal_fd(&fd), entry->mtime,
			 err);
}

static int entry_symlink(const struct entry *entry, const char *target)
{
	return symlinkat(target, entry_dirfd(entry), entry->name);
}

static int entry_make_symlink(const struct entry *entry, struct err *err)
{
	const char *target = archive_entry_symlink(entry->raw);

	if (!target || !*target)
		return err_set(err, ERR_CORRUPT, "a symlink without a target");
	if (strlen(target) >= PATH_MAX)
		return err_set(err, ERR_CORRUPT, "a symlink whose target is too long");
	if (entry_symlink(entry, target) < 0) {
		if (errno != EEXIST)
			return err_os(err, errno, "make a symlink");
		if (unpack_clear(&entry->unpack->dirs, entry->name, err) < 0)
			return -1;
		if (entry_symlink(entry, target) < 0)
			return err_os(err, errno, "make a symlink");
	}
	return entry_dress_special(entry, err);
}

static int entry_make_node(const struct entry *entry, struct err *err)
{
	dev_t dev = makedev(0, 0);

	if (entry->type != AE_IFIFO)
		dev = makedev(archive_entry_rdevmajor(entry->raw),
			      archive_entry_rdevminor(entry->raw));
	if (entry->type == AE_IFCHR && dev == makedev(0, 0))
		return err_set(err, ERR_UNSUPPORTED,
			       "it is character device 0:0, which means a deletion to overlayfs");
	if (unpack_clear(&entry->unpack->dirs, entry->name, err) < 0)
		return -1;
	if (mknodat(entry_dirfd(entry), entry->name, entry->type | 0600, dev) < 0)
		return err_os(err, errno, "make a special file");
	return entry_dress_special(entry, err);
}

static int entry_make(const struct entry *entry, struct err *err)
{
	if (dirs_count(&entry->unpack->dirs, err) < 0 || dirs_touch(&entry->unpack->dirs, err) < 0)
		return -1;
	switch (entry->type) {
	case AE_IFREG:
		return entry_make_file(entry, err);
	case AE_IFDIR:
		return entry_make_dir(entry, err);
	case AE_IFLNK:
		return entry_make_symlink(entry, err);
	case AE_IFCHR:
	case AE_IFBLK:
	case AE_IFIFO:
		return entry_make_node(entry, err);
	default:
		return err_set(err, ERR_CORRUPT, "it is of an unknown type");
	}
}

static int entry_make_root(const struct entry *entry, struct err *err)
{
	if (entry->type != AE_IFDIR)
		return err_set(err, ERR_CORRUPT, "the root is no directory");
	if (dirs_enter(&entry->unpack->dirs, STR(""), false, err) < 0)
		return -1;
	if (entry_dress(entry, entry_dirfd(entry), err) < 0 ||
	    overlay_unmark_implied(entry_dirfd(entry), err) < 0)
		return -1;
	dirs_set_mtime(&entry->unpack->dirs, entry->mtime);
	return 0;
}

static int entry_enter(struct unpack *unpack, struct str dir, bool make, struct err *err)
{
	int found = dirs_enter(&unpack->dirs, dir, make, err);

	if (found == DIRS_BLOCKED)
		return err_set(err, ERR_CORRUPT, "it lies below what is no directory");
	return found;
}

/* Both names are of one file already. */
static bool entry_is_linked(int targetfd, const char *target, int dirfd, const char *name)
{
	struct stat a;
	struct stat b;

	return fstatat(targetfd, target, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int entry_link(struct unpack *unpack, int targetfd, struct err *err)
{
	const char *target = unpack->target.base;
	const char *name = unpack->name.base;
	int dirfd = dirs_fd(&unpack->dirs);

	if (linkat(targetfd, target, dirfd, name, 0) == 0)
		return 0;
	if (errno == EEXIST) {
		if (entry_is_linked(targetfd, target, dirfd, name))
			return 0;
		if (unpack_clear(&unpack->dirs, name, err) < 0)
			return -1;
		if (linkat(targetfd, target, dirfd, name, 0) == 0)
			return 0;
	}
	if (errno == ENOENT)
		return err_set(err, ERR_CORRUPT, "a hard link to what the layer does not have");
	if (errno == EPERM)
		return err_set(err, ERR_CORRUPT, "a hard link to a directory");
	return err_os(err, errno, "make a hard link");
}

/* The target's directory is visited first; where it is another one, it is kept open. */
static int entry_make_hardlink(struct unpack *unpack, const char *raw, struct err *err)
{
	auto_close int targetfd = -1;
	int found;

	if (unpack_name_parse_target(&unpack->target, raw, err) < 0)
		return err_ctx(err, "hard link");
	found = dirs_enter(&unpack->dirs, unpack->target.dir, false, err);
	if (found < 0)
		return err_ctx(err, "hard link");
	if (found != DIRS_THERE || !*unpack->target.base)
		return err_set(err, ERR_CORRUPT, "a hard link to what the layer does not have");
	targetfd = fcntl(dirs_fd(&unpack->dirs), F_DUPFD_CLOEXEC, 0);
	if (targetfd < 0)
		return err_os(err, errno, "keep a directory");
	if (entry_enter(unpack, unpack->name.dir, true, err) < 0)
		return -1;
	if (dirs_count(&unpack->dirs, err) < 0 || dirs_touch(&unpack->dirs, err) < 0)
		return -1;
	return entry_link(unpack, targetfd, err);
}

int unpack_entry(struct unpack *unpack, struct archive_entry *raw, struct err *err)
{
	const char *hardlink = archive_entry_hardlink(raw);
	struct entry entry = {.unpack = unpack, .raw = raw, .name = unpack->name.base};

	if (hardlink && unpack->name.kind == TAR_ENTRY)
		return entry_make_hardlink(unpack, hardlink, err);
	if (entry_read(&entry, err) < 0)
		return -1;
	if (unpack->name.kind == TAR_ROOT)
		return entry_make_root(&entry, err);
	if (entry_enter(unpack, unpack->name.dir, true, err) < 0)
		return -1;
	return entry_make(&entry, err);
}
