/* SPDX-License-Identifier: Apache-2.0 */
/* diff_entry.c - what goes into the tar, and how the upper file is sealed to equal it. */
#include "layers/base/fd.h"
#include "layers/diff_priv.h"

#include <fcntl.h>
#include <limits.h>

int diff_open(int dirfd, const char *name, int flags, struct err *err)
{
	int fd;

	flags |= O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
	fd = openat(dirfd, name, flags | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, flags);
	if (fd < 0)
		return err_os(err, errno, "open");
	return fd;
}

void diff_entry_time(const struct diff *diff, struct stat *stat)
{
	stat->st_mtim.tv_nsec = 0;
	if (diff->spec->clamp && stat->st_mtim.tv_sec > *diff->spec->clamp)
		stat->st_mtim.tv_sec = *diff->spec->clamp;
}

/* Whether the file's own time is another than the tar's. */
static bool entry_time_differs(const struct diff *diff, const struct stat *stat)
{
	struct stat sealed = *stat;

	diff_entry_time(diff, &sealed);
	return sealed.st_mtim.tv_sec != stat->st_mtim.tv_sec || stat->st_mtim.tv_nsec != 0;
}

/* Count an entry; the first one starts the tar. */
static int entry_begin(struct diff *diff, struct err *err)
{
	uint64_t max = diff->spec->max_entries ? diff->spec->max_entries : UNPACK_ENTRIES_MAX;

	if (cancel_check(diff->spec->cancel, err) < 0)
		return -1;
	if (diff->entries >= max)
		return err_set(err, ERR_LIMIT, "more than %llu entries", (unsigned long long)max);
	diff->entries++;
	return diff->tar ? 0 : diff_tar_open(diff->out, &diff->tar, err);
}

static int entry_check_owner(const struct stat *stat, struct err *err)
{
	int64_t id = stat->st_uid > stat->st_gid ? stat->st_uid : stat->st_gid;

	if (id > TREE_OWNER_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			       "its owner is %lld, and ids above %lld are not supported",
			       (long long)id, (long long)TREE_OWNER_MAX);
	return 0;
}

static int emit_parents(struct diff *diff, struct diff_dir *dir, struct err *err)
{
	return dir && !dir->emitted ? diff_emit_dir(diff, dir, err) : 0;
}

/* The path of a directory above what is being looked at, with its NUL in place. */
static int dir_path(const struct diff *diff, const struct diff_dir *dir, struct buf *out,
		    struct err *err)
{
	if (dir->path_len == 0)
		return buf_add(out, STR("./"), err);
	return buf_add(out, (struct str){diff->path.ptr, dir->path_len}, err);
}

int diff_emit_dir(struct diff *diff, struct diff_dir *dir, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(DIFF_PATH_MAX);
	struct diff_entry entry = {.stat = dir->stat, .attrs = &diff->lower};
	const struct file_ref file = {.fd = dir->fd};

	if (emit_parents(diff, dir->parent, err) < 0 || dir_path(diff, dir, &path, err) < 0)
		return -1;
	/* diff->lower is free here; diff->upper may hold the xattrs of the entry that is emitted */
	if (attrs_read(&diff->lower, &file, dir->stat.st_mode, err) < 0)
		return -1;
	if (entry_check_owner(&dir->stat, err) < 0 || entry_begin(diff, err) < 0)
		return -1;
	entry.path = buf_str(&path);
	diff_entry_time(diff, &entry.stat);
	dir->emitted = true;
	return diff_tar_entry(diff->tar, &entry, err);
}

int diff_emit_whiteout(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(DIFF_PATH_MAX);

	if (emit_parents(diff, dir, err) < 0 || entry_begin(diff, err) < 0)
		return -1;
	if (buf_add(&path, (struct str){buf_str(&diff->path).ptr, dir->path_len}, err) < 0 ||
	    buf_addf(&path, err, "%s%s%s", dir->path_len ? "/" : "", WHITEOUT_PREFIX, name) < 0)
		return -1;
	dir->whiteout = true;
	return diff_tar_whiteout(diff->tar, buf_str(&path), err);
}

/* Another name of a file that is in the tar already: 1 and it is written. */
static int emit_link(struct diff *diff, const struct stat *stat, struct err *err)
{
	struct diff_entry entry = {
		.path = buf_str(&diff->path), .stat = *stat, .is_hardlink = true};

	if (stat->st_nlink < 2)
		return 0;
	if (diff_links_find(&diff->links, stat, entry.path, &entry.link, err) < 0)
		return -1;
	if (!entry.link)
		return 0;
	diff_entry_time(diff, &entry.stat);
	return diff_tar_entry(diff->tar, &entry, err) < 0 ? -1 : 1;
}

/*
 * Begin the entry of a file. 1 that was all, since the file is in the tar under
 * another name; 0 its own entry is to follow; -1.
 */
static int emit_head(struct diff *diff, struct diff_dir *dir, const struct stat *stat,
		     struct err *err)
{
	if (emit_parents(diff, dir, err) < 0 || entry_check_owner(stat, err) < 0 ||
	    entry_begin(diff, err) < 0)
		return -1;
	return emit_link(diff, stat, err);
}

static int emit_bytes(struct diff *diff, int fd, int64_t at, int64_t end, struct err *err)
{
	while (at < end) {
		size_t want = end - at < (int64_t)DIFF_BLOCK ? (size_t)(end - at) : DIFF_BLOCK;
		ssize_t n = fd_pread_all(fd, diff->block, want, at, err);

		if (n < 0)
			return -1;
		if (n == 0)
			return err_set(err, ERR_CONFLICT, "it became shorter while it was read");
		if (cancel_check(diff->spec->cancel, err) < 0 ||
		    diff_tar_data(diff->tar, (struct str){diff->block, (size_t)n}, err) < 0)
			return -1;
		at += n;
	}
	return 0;
}

static int emit_data(struct diff *diff, int fd, int64_t size, struct err *err)
{
	int64_t at = 0;

	if (diff->extents.count == 0)
		return emit_bytes(diff, fd, 0, size, err);
	for (size_t i = 0; i < diff->extents.count; i++) {
		const struct extent *extent = &diff->extents.items[i];

		if (diff_tar_hole(diff->tar, extent->offset - at, err) < 0)
			return -1;
		at = extent->offset + extent->len;
		if (emit_bytes(diff, fd, extent->offset, at, err) < 0)
			return -1;
	}
	return diff_tar_hole(diff->tar, size - at, err);
}

static int check_unchanged(int fd, const struct stat *before, struct err *err)
{
	struct stat now;

	if (fstat(fd, &now) < 0)
		return err_os(err, errno, "stat");
	if (now.st_ino != before->st_ino || now.st_size != before->st_size ||
	    now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	    now.st_mtim.tv_nsec != before->st_mtim.tv_nsec ||
	    now.st_ctim.tv_sec != before->st_ctim.tv_sec ||
	    now.st_ctim.tv_nsec != before->st_ctim.tv_nsec)
		return err_set(err, ERR_CONFLICT, "it changed while it was read");
	return 0;
}

static int seal_file(const struct diff *diff, int fd, const struct stat *stat, struct err *err)
{
	const struct file_ref file = {.fd = fd};
	struct stat sealed = *stat;

	diff_entry_time(diff, &sealed);
	if (attrs_strip(&diff->upper, &file, err) < 0)
		return -1;
	if (entry_time_differs(diff, stat) &&
	    futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, sealed.st_mtim}) < 0)
		return err_os(err, errno, "set time");
	return 0;
}

int diff_emit_file(struct diff *diff, struct diff_dir *dir, int fd, const struct stat *stat,
		   struct err *err)
{
	struct diff_entry entry = {
		.path = buf_str(&diff->path), .stat = *stat, .attrs = &diff->upper};
	int linked = emit_head(diff, dir, stat, err);

	if (linked != 0)
		return linked < 0 ? -1 : 0;
	if (stat->st_size > UNPACK_FILE_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			       "it has %lld bytes, and no file may have more than %lld",
			       (long long)stat->st_size, (long long)UNPACK_FILE_MAX);
	diff_extents_read(&diff->extents, fd, stat, diff->spec->clamp ? diff->block : NULL);
	diff_entry_time(diff, &entry.stat);
	if (diff_tar_file(diff->tar, &entry, &diff->extents, err) < 0 ||
	    emit_data(diff, fd, stat->st_size, err) < 0 || check_unchanged(fd, stat, err) < 0)
		return -1;
	return seal_file(diff, fd, stat, err);
}

int diff_emit_special(struct diff *diff, struct diff_dir *dir, const char *name,
		      const struct stat *stat, struct err *err)
{
	const struct file_ref file = {.fd = -1, .dirfd = dir->fd, .name = name};
	struct diff_entry entry = {
		.path = buf_str(&diff->path), .stat = *stat, .attrs = &diff->upper};
	char target[PATH_MAX];
	ssize_t n = 0;
	int linked = emit_head(diff, dir, stat, err);

	if (linked != 0)
		return linked < 0 ? -1 : 0;
	if (S_ISLNK(stat->st_mode)) {
		n = readlinkat(dir->fd, name, target, sizeof(target) - 1);
		if (n < 0)
			return err_os(err, errno, "read a symlink");
		target[n] = '\0';
		entry.link = target;
	}
	diff_entry_time(diff, &entry.stat);
	if (diff_tar_entry(diff->tar, &entry, err) < 0 || attrs_strip(&diff->upper, &file, err) < 0)
		return -1;
	if (utimensat(dir->fd, name,
		      (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, entry.stat.st_mtim},
		      AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "set time");
	return 0;
}

int diff_seal_dir(struct diff *diff, const struct diff_dir *dir, struct err *err)
{
	const struct file_ref file = {.fd = dir->fd};
	struct stat sealed = dir->stat;

	diff_entry_time(diff, &sealed);
	if (attrs_read(&diff->upper, &file, dir->stat.st_mode, err) < 0 ||
	    attrs_strip(&diff->upper, &file, err) < 0)
		return -1;
	if (dir->whiteout && overlay_mark_origin(dir->fd, err) < 0)
		return -1;
	if (futimens(dir->fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, sealed.st_mtim}) < 0)
		return err_os(err, errno, "set time");
	return 0;
}

int diff_seal_plain_root(struct diff *diff, const struct diff_dir *dir, struct err *err)
{
	const struct file_ref file = {.fd = dir->fd};

	if (attrs_read(&diff->upper, &file, dir->stat.st_mode, err) < 0 ||
	    attrs_strip_all(&diff->upper, &file, err) < 0)
		return -1;
	if (dir->whiteout && overlay_mark_origin(dir->fd, err) < 0)
		return -1;
	if (overlay_mark_implied(dir->fd, err) < 0)
		return -1;
	if (fchown(dir->fd, 0, 0) < 0 || fchmod(dir->fd, 0755) < 0)
		return err_os(err, errno, "set the root's owner");
	if (futimens(dir->fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {0}}) < 0)
		return err_os(err, errno, "set the root's time");
	return 0;
}
