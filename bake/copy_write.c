/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_write.c - files, links and nodes at their destination. What is there is
 * replaced, never written through; attributes are set in the order that keeps
 * them: owner, mode, xattrs, times.
 */
#include "bake/copy_priv.h"

#include "bake/mode_priv.h"
#include "bake/shortcut_priv.h"
#include "layers/base/fd.h"
#include "layers/base/path.h"

#include <fcntl.h>
#include <stdio.h>

static mode_t copy_mode(const struct copy *copy, const struct source_entry *entry)
{
	return mode_copied(copy->spec->sources.chmod, &entry->st);
}

/* As the host has it: --chown's, the image's own, or root. */
static void copy_owner(const struct copy *copy, const struct source_entry *entry, uid_t *out_uid,
		       gid_t *out_gid)
{
	bool own = copy->spec->sources.image && !copy->spec->chown;

	*out_uid = own ? copy->spec->first_id + entry->st.st_uid : copy->parents.uid;
	*out_gid = own ? copy->spec->first_id + entry->st.st_gid : copy->parents.gid;
}

/*
 * Owner first, since setting it clears mode bits. What is right already is not
 * set again: each call costs a journal entry.
 */
static int copy_dress_inode(struct copy *copy, int fd, const struct source_entry *entry,
			    struct err *err)
{
	struct stat st;
	uid_t uid;
	gid_t gid;
	bool owned;

	copy_owner(copy, entry, &uid, &gid);
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "stat");
	owned = st.st_uid == uid && st.st_gid == gid;
	if (S_ISREG(st.st_mode) && st.st_size != entry->st.st_size &&
	    ftruncate(fd, entry->st.st_size) < 0)
		return err_os(err, errno, "set the size");
	if (!owned && fchown(fd, uid, gid) < 0)
		return err_os(err, errno, "set the owner");
	if ((!owned || (st.st_mode & 07777) != copy_mode(copy, entry)) &&
	    fchmod(fd, copy_mode(copy, entry)) < 0)
		return err_os(err, errno, "set the mode");
	return 0;
}

/* In the step's log, as it is no failure of the step. */
static void copy_say_lost(void *ctx, const struct xattr *xattr, int os)
{
	const struct copy *copy = ctx;
	const struct level *top = &copy->levels[copy->depth - 1];

	if (copy->spec->log_fd > 0)
		(void)dprintf(copy->spec->log_fd,
			      "hearth: below %s/: the xattr %s of %zu bytes is left out: %s\n",
			      top->path, xattr->name, xattr->value.len, strerror(os));
}

void copy_say_socket(void *ctx, const struct source_entry *entry)
{
	const struct copy *copy = ctx;
	char text[PATH_SHOWN_MAX];

	if (copy->spec->log_fd > 0)
		(void)dprintf(copy->spec->log_fd, "hearth: %s is a socket and is left out\n",
			      path_show(str_of(entry->path), text));
}

/* A change of owner takes capabilities away, and every change sets times. */
int copy_dress(struct copy *copy, int fd, const struct source_entry *entry, struct err *err)
{
	const struct timespec times[] = {entry->st.st_atim, entry->st.st_mtim};

	if (copy_dress_inode(copy, fd, entry, err) < 0)
		return -1;
	if (xattrs_write(copy_top(copy)->fd, fd, &entry->xattrs, copy->spec->first_id,
			 copy_say_lost, copy, err) < 0)
		return -1;
	if (futimens(fd, times) < 0)
		return err_os(err, errno, "set the times");
	return 0;
}

static const char *copy_name(const struct copy *copy, const struct source_entry *entry)
{
	return *entry->path ? entry->name : copy->name;
}

/* Remove what is in the way of something that is no directory. */
static int copy_clear(int dirfd, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "stat");
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_REFUSED, "is a directory and cannot become a file");
	return unlinkat(dirfd, name, 0) < 0 ? err_os(err, errno, "remove") : 0;
}

static int copy_block(void *ctx, uint64_t offset, struct str bytes, struct err *err)
{
	struct copy *copy = ctx;

	if (copy->file_hash)
		context_file_block(copy->file_hash, offset, bytes);
	return fd_pwrite_sparse(copy->outfd, bytes.ptr, bytes.len, (off_t)offset, err);
}

static int copy_bytes(struct copy *copy, int fd, struct source_entry *entry, struct err *err)
{
	copy->outfd = fd;
	if (source_read(entry, copy->spec->cancel, copy_block, copy, err) < 0)
		return -1;
	return copy_dress(copy, fd, entry, err);
}

/* A file that the digest has read, and that has not changed since, need not be hashed again. */
static int copy_write_file(struct copy *copy, int fd, struct source_entry *entry, struct err *err)
{
	AUTO(context_hash) struct context_hash hash = {.used = 0};

	if (source_open_file(entry, err) < 0)
		return -1;
	copy->file_hash = entry->known ? NULL : &hash;
	if (!entry->known)
		context_file_begin(&hash, entry);
	if (copy_bytes(copy, fd, entry, err) < 0)
		return -1;
	if (!entry->known)
		context_file_end(&hash, entry);
	return 0;
}

static int copy_new_file(struct copy *copy, struct source_entry *entry, const char *name,
			 struct err *err)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const mode_t mode = copy_mode(copy, entry) & 0777; /* what is written loses the others */
	auto_close int fd = openat(copy_top(copy)->fd, name, flags, mode);

	if (fd < 0)
		return err_os(err, errno, "create");
	return copy_write_file(copy, fd, entry, err);
}

/* Another name for a file that was copied before. */
static int copy_twin(struct copy *copy, const struct source_entry *entry, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(2 * PATH_TEXT_MAX);
	const char *slash;
	auto_close int dirfd = -1;

	if (buf_addf(&path, err, "%s/%s", copy->levels[0].path, entry->twin) < 0)
		return -1;
	slash = memrchr(path.ptr, '/', path.len);
	path.ptr[slash - path.ptr] = '\0';
	dirfd = fd_open_in_root(copy->rootfd, slash == path.ptr ? "/" : path.ptr,
				O_PATH | O_DIRECTORY, 0, err);
	if (dirfd < 0)
		return -1;
	if (linkat(dirfd, slash + 1, copy_top(copy)->fd, entry->name, 0) < 0)
		return err_os(err, errno, "link to %s", entry->twin);
	return 0;
}

int copy_file(void *ctx, struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;
	const char *name = copy_name(copy, entry);

	if (!entry->known)
		entry->known = shortcut_find(copy->spec->shortcut, &entry->st, &entry->what);
	if (copy_clear(copy_top(copy)->fd, name, err) < 0)
		return copy_wrong(copy, name, err);
	if (entry->twin ? copy_twin(copy, entry, err) < 0
			: copy_new_file(copy, entry, name, err) < 0)
		return copy_wrong(copy, name, err);
	copy_count(copy, entry);
	return 0;
}

/* For entries without a descriptor: links, fifos, devices. */
static int copy_dress_name(const struct copy *copy, const char *name,
			   const struct source_entry *entry, struct err *err)
{
	const struct timespec times[] = {entry->st.st_atim, entry->st.st_mtim};
	int dirfd = copy->levels[copy->depth - 1].fd;
	uid_t uid;
	gid_t gid;

	copy_owner(copy, entry, &uid, &gid);
	if (fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "set the owner");
	if (!S_ISLNK(entry->st.st_mode) && fchmodat(dirfd, name, copy_mode(copy, entry), 0) < 0)
		return err_os(err, errno, "set the mode");
	if (utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "set the times");
	return 0;
}

static int copy_make_link(struct copy *copy, const struct source_entry *entry, struct err *err)
{
	if (symlinkat(entry->target, copy_top(copy)->fd, entry->name) < 0)
		return err_os(err, errno, "create");
	return copy_dress_name(copy, entry->name, entry, err);
}

int copy_link(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	copy_count(copy, entry);
	if (copy_clear(copy_top(copy)->fd, entry->name, err) < 0 ||
	    copy_make_link(copy, entry, err) < 0)
		return copy_wrong(copy, entry->name, err);
	return 0;
}

/* Overlayfs has taken a device of these numbers for its whiteouts. */
static int copy_make_node(struct copy *copy, const char *name, const struct source_entry *entry,
			  struct err *err)
{
	const struct stat *st = &entry->st;

	if (S_ISCHR(st->st_mode) && st->st_rdev == 0)
		return err_set(err, ERR_REFUSED,
			       "is a character device 0:0, which a layer cannot hold");
	if (mknodat(copy_top(copy)->fd, name, (st->st_mode & S_IFMT) | 0600, st->st_rdev) < 0)
		return err_os(err, errno, "create");
	return copy_dress_name(copy, name, entry, err);
}

int copy_node(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;
	const char *name = copy_name(copy, entry);

	copy_count(copy, entry);
	if (copy_clear(copy_top(copy)->fd, name, err) < 0 ||
	    copy_make_node(copy, name, entry, err) < 0)
		return copy_wrong(copy, name, err);
	return 0;
}
