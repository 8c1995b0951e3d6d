/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/copy.h"

#include "bake/context_priv.h"
#include "bake/mode_priv.h"
#include "bake/place_priv.h"
#include "bake/shortcut_priv.h"
#include "bake/sources_priv.h"
#include "layers/base/fd.h"

#include <fcntl.h>
#include <stdio.h>

/* A directory that is being filled. */
struct level {
	int fd;
	char *path; /* owned: in the root, absolute, without symlinks */
};

struct copy {
	const struct copy_spec *spec;
	int rootfd;
	struct place_new parents; /* of directories that no source has */
	struct context_hash hash;
	struct context_hash *file_hash;             /* of the file at hand, unless it is known */
	struct level levels[CONTEXT_DEPTH_MAX + 1]; /* 0 is where the source's top goes */
	size_t depth;                               /* levels in use */
	char name[NAME_MAX + 1]; /* of a source that is a file, at its destination */
	int outfd;               /* the file that is being written */
	struct timespec time;    /* the top's mtime before we worked in it */
	bool whole;              /* the top becomes the source itself */
};

static inline void auto_copy_release(struct copy *copy)
{
	context_hash_done(&copy->hash);
	while (copy->depth > 0) {
		copy->depth--;
		auto_close_release(&copy->levels[copy->depth].fd);
		free(copy->levels[copy->depth].path);
	}
}

static struct level *copy_top(struct copy *copy)
{
	return &copy->levels[copy->depth - 1];
}

/* Takes the descriptor. */
static void copy_push(struct copy *copy, int fd, const char *parent, const char *name)
{
	struct level *level = &copy->levels[copy->depth++];

	level->fd = fd;
	if (asprintf(&level->path, "%s%s%s", parent, *name ? "/" : "", name) < 0)
		abort();
}

static void copy_pop(struct copy *copy)
{
	struct level *level = copy_top(copy);

	auto_close_release(&level->fd);
	free(level->path);
	copy->depth--;
}

static mode_t copy_mode(const struct copy *copy, const struct source_entry *entry)
{
	const char *chmod = copy->spec->chmod;
	mode_t mode = entry->st.st_mode & 07777;

	return chmod ? mode_apply(str_of(chmod), mode, S_ISDIR(entry->st.st_mode)) : mode;
}

/* As the host has it: --chown's, the image's own, or root. */
static void copy_owner(const struct copy *copy, const struct source_entry *entry, uid_t *out_uid,
		       gid_t *out_gid)
{
	bool own = copy->spec->sources.image && !copy->spec->chown;

	*out_uid = own ? copy->spec->first_id + entry->st.st_uid : copy->parents.uid;
	*out_gid = own ? copy->spec->first_id + entry->st.st_gid : copy->parents.gid;
}

/* Owner first, since it takes mode bits away. What is right already costs a journal's entry. */
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

/* A change of owner takes capabilities away, and every change sets times. */
static int copy_dress(struct copy *copy, int fd, const struct source_entry *entry, struct err *err)
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

static int copy_wrong(struct copy *copy, const char *name, struct err *err)
{
	return err_ctx(err, "%s/%s", copy_top(copy)->path, name);
}

/* What is in the way of something that is no directory goes. */
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

/* A file that the digest has read as it is now need not be named again. */
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

static bool copy_look_ahead(void *ctx, int dirfd, const char *name, struct stat *st,
			    struct digest *out)
{
	const struct copy *copy = ctx;

	(void)dirfd;
	(void)name;
	return shortcut_find(copy->spec->shortcut, st, out);
}

static int copy_file(void *ctx, struct source_entry *entry, struct err *err)
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
	context_hash_entry(&copy->hash, entry);
	return 0;
}

/* What has no descriptor: links, fifos, devices. */
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

static int copy_link(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	context_hash_entry(&copy->hash, entry);
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

static int copy_node(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;
	const char *name = copy_name(copy, entry);

	context_hash_entry(&copy->hash, entry);
	if (copy_clear(copy_top(copy)->fd, name, err) < 0 ||
	    copy_make_node(copy, name, entry, err) < 0)
		return copy_wrong(copy, name, err);
	return 0;
}

/* A symlink in a directory's place is followed inside the root, as in /lib -> usr/lib. */
static int copy_enter_link(struct copy *copy, const char *name, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(2 * PATH_TEXT_MAX);
	auto_place struct place place = PLACE_INIT;

	if (buf_addf(&path, err, "%s/%s", copy_top(copy)->path, name) < 0 ||
	    place_find(copy->rootfd, buf_str(&path), true, &copy->parents, &place, err) < 0)
		return -1;
	copy_push(copy, steal_fd(&place.fd), place.path.ptr ? place.path.ptr : "", "");
	return 0;
}

static int copy_enter_below(struct copy *copy, const struct source_entry *entry, struct err *err)
{
	struct level *parent = copy_top(copy);
	struct stat st;
	int fd;

	if (fstatat(parent->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode))
			return copy_enter_link(copy, entry->name, err);
		if (!S_ISDIR(st.st_mode)) {
			(void)err_set(err, ERR_REFUSED,
				      "is no directory, and the source has one there");
			return copy_wrong(copy, entry->name, err);
		}
	}
	if (place_enter(parent->fd, entry->name, &copy->parents, &fd, err) < 0)
		return copy_wrong(copy, entry->name, err);
	copy_push(copy, fd, parent->path, entry->name);
	return 0;
}

static int copy_enter(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	context_hash_entry(&copy->hash, entry);
	return *entry->path ? copy_enter_below(copy, entry, err) : 0;
}

static int copy_leave(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	if (!*entry->path && !copy->whole)
		return 0;
	if (copy_dress(copy, copy_top(copy)->fd, entry, err) < 0)
		return err_ctx(err, "%s", copy_top(copy)->path);
	if (*entry->path)
		copy_pop(copy);
	else
		copy->time = entry->st.st_mtim;
	return 0;
}

static bool copy_wants_directory(const char *destination)
{
	struct str last = path_base(str_of(destination));

	return last.len == 0 || str_equal(last, STR(".")) || str_equal(last, STR(".."));
}

/* Find where a source goes: level 0, and the name in it for a file. */
static int copy_place(struct copy *copy, const struct source_spec *source, bool is_dir,
		      struct place *place, struct err *err)
{
	const struct copy_spec *spec = copy->spec;
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	bool wants = copy_wants_directory(spec->destination) || is_dir;

	if (path_join(str_of(spec->workdir), str_of(spec->destination), &path, err) < 0 ||
	    place_find(copy->rootfd, buf_str(&path), wants, &copy->parents, place, err) < 0)
		return -1;
	if (source->many && *place->name)
		return err_set(err, ERR_REFUSED,
			       "%s is no directory; end it with / to make one for several sources",
			       spec->destination);
	(void)snprintf(copy->name, sizeof(copy->name), "%s",
		       *place->name ? place->name : source->name);
	return 0;
}

/* Working in a directory that was there does not count as a change of it. */
static int copy_keep_time(const struct copy *copy, struct err *err)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, copy->time};

	if (futimens(copy->levels[0].fd, times) < 0)
		return err_os(err, errno, "set the time of %s", copy->levels[0].path);
	return 0;
}

static int copy_start(void *ctx, const struct source_spec *source, const struct source_entry *entry,
		      struct err *err)
{
	struct copy *copy = ctx;
	auto_place struct place place = PLACE_INIT;
	struct stat st;

	context_hash_source(&copy->hash, source);
	if (copy_place(copy, source, S_ISDIR(entry->st.st_mode), &place, err) < 0)
		return -1;
	if (fstat(place.fd, &st) < 0)
		return err_os(err, errno, "stat %s", copy->spec->destination);
	copy->time = st.st_mtim;
	copy->whole = source->whole;
	copy_push(copy, steal_fd(&place.fd), place.path.ptr ? place.path.ptr : "", "");
	return 0;
}

static int copy_finish(void *ctx, struct err *err)
{
	struct copy *copy = ctx;

	if (copy_keep_time(copy, err) < 0)
		return -1;
	copy_pop(copy);
	return 0;
}

/* Directories that no source has can be entered by those who may read them. */
static mode_t copy_parent_mode(const struct copy_spec *spec)
{
	mode_t mode = spec->chmod ? mode_apply(str_of(spec->chmod), 0755, true) : 0755;

	return mode | (mode & 0444) >> 2;
}

static int copy_read_flags(struct copy *copy, struct err *err)
{
	const struct copy_spec *spec = copy->spec;
	uid_t uid = 0;
	gid_t gid = 0;

	if (spec->chmod && mode_check(str_of(spec->chmod), err) < 0)
		return -1;
	if (spec->chown && copy_find_owner(copy->rootfd, spec->chown, &uid, &gid, err) < 0)
		return err_ctx(err, "--chown");
	copy->parents = (struct place_new){
		.mode = copy_parent_mode(spec),
		.uid = spec->first_id + uid,
		.gid = spec->first_id + gid,
	};
	return 0;
}

static int copy_verify(struct copy *copy, struct err *err)
{
	struct digest copied;

	context_hash_final(&copy->hash, &copied);
	if (copy->spec->content && !digest_equal(&copied, copy->spec->content))
		return err_set(err, ERR_UNAVAILABLE,
			       "the context changed while it was copied; bake again");
	return 0;
}

int copy_into(int rootfd, const struct copy_spec *spec, struct err *err)
{
	AUTO(copy) struct copy copy = {.spec = spec, .rootfd = rootfd, .outfd = -1};
	const struct source_visitor visitor = {
		.start = copy_start,
		.finish = copy_finish,
		.enter = copy_enter,
		.leave = copy_leave,
		.ahead = copy_look_ahead,
		.file = copy_file,
		.link = copy_link,
		.node = copy_node,
		.ctx = &copy,
		.cancel = spec->cancel,
	};

	context_hash_init(&copy.hash, spec->sources.image);
	if (copy_read_flags(&copy, err) < 0 || sources_walk(&spec->sources, &visitor, err) < 0 ||
	    copy_verify(&copy, err) < 0)
		return err_ctx(err, "COPY");
	return 0;
}

int copy_make_workdir(int rootfd, const char *path, const char *user, uint32_t first_id,
		      struct err *err)
{
	auto_place struct place place = PLACE_INIT;
	struct place_new make = {.mode = 0755};
	uid_t uid = 0;
	gid_t gid = 0;

	if (*user && copy_find_owner(rootfd, user, &uid, &gid, err) < 0)
		return err_ctx(err, "WORKDIR");
	make.uid = first_id + uid;
	make.gid = first_id + gid;
	if (place_find(rootfd, str_of(path), true, &make, &place, err) < 0)
		return err_ctx(err, "WORKDIR");
	return 0;
}
