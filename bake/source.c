/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/source_priv.h"

#include "bake/context.h"
#include "bake/links_priv.h"
#include "layers/base/fd.h"
#include "layers/base/names.h"
#include "layers/base/nearest.h"
#include "layers/base/path.h"

#include <fcntl.h>

#define SOURCE_NAMES_MAX ((size_t)32 << 20) /* of one directory: a million names */
#define SOURCE_OPEN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct walk {
	const struct source_visitor *visitor;
	struct links links;
	struct buf path;
	char *block;
	size_t entries;
	size_t depth;
};

static inline void auto_walk_release(struct walk *walk)
{
	links_done(&walk->links);
	buf_done(&walk->path);
	free(walk->block);
}

static inline void auto_entry_release(struct source_entry *entry)
{
	auto_close_release(&entry->fd);
	xattrs_done(&entry->xattrs);
}
#define auto_entry AUTO(entry)

static int source_refuse_kind(const struct source_entry *entry, struct err *err)
{
	const char *what = S_ISSOCK(entry->st.st_mode)   ? "a socket"
			   : S_ISFIFO(entry->st.st_mode) ? "a fifo"
							 : "a device";

	return err_set(err, ERR_REFUSED, "%s: COPY takes files, directories and links, this is %s",
		       *entry->path ? entry->path : entry->name, what);
}

static bool source_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int source_changed(const struct source_entry *entry, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "%s changed while it was read; bake again",
		       *entry->path ? entry->path : entry->name);
}

/* The descriptor is of the very file whose status we hold. */
static int source_verify(struct source_entry *entry, struct err *err)
{
	struct stat st;

	if (fstat(entry->fd, &st) < 0)
		return err_os(err, errno, "stat %s", entry->path);
	if (st.st_dev != entry->st.st_dev || st.st_ino != entry->st.st_ino ||
	    (st.st_mode & S_IFMT) != (entry->st.st_mode & S_IFMT))
		return source_changed(entry, err);
	entry->st = st;
	return xattrs_read(entry->fd, &entry->xattrs, err) < 0 ? err_ctx(err, "%s", entry->path)
							       : 0;
}

static int source_visit_file(struct walk *walk, struct source_entry *entry, struct err *err)
{
	struct str path = str_of(entry->path);

	if (links_meet(&walk->links, &entry->st, path, &entry->twin, err) < 0)
		return -1;
	return walk->visitor->file(walk->visitor->ctx, entry, err);
}

static int source_visit_link(struct walk *walk, struct source_entry *entry, int dirfd,
			     struct err *err)
{
	char target[PATH_TEXT_MAX];
	ssize_t n = readlinkat(dirfd, entry->name, target, sizeof(target));

	if (n < 0 || n == (ssize_t)sizeof(target))
		return err_os(err, n < 0 ? errno : ENAMETOOLONG, "read the link %s", entry->path);
	target[n] = '\0';
	entry->target = target;
	return walk->visitor->link(walk->visitor->ctx, entry, err);
}

static int source_visit_name(struct walk *walk, int dirfd, const char *name, struct err *err);

static int source_visit_dir(struct walk *walk, struct source_entry *entry, struct err *err)
{
	const struct source_visitor *visitor = walk->visitor;
	auto_names struct names names = {0};

	if (walk->depth == CONTEXT_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "directories nested deeper than %d, at %.100s",
			       CONTEXT_DEPTH_MAX, entry->path);
	if (visitor->enter(visitor->ctx, entry, err) < 0)
		return -1;
	if (names_read(entry->fd, SOURCE_NAMES_MAX, &names, err) < 0)
		return err_ctx(err, "%s", *entry->path ? entry->path : entry->name);
	walk->depth++;
	for (size_t i = 0; i < names.count; i++) {
		if (source_visit_name(walk, entry->fd, names.at[i], err) < 0)
			return -1;
	}
	walk->depth--;
	walk->path.ptr[walk->path.len] = '\0';
	entry->path = walk->path.ptr; /* it may have moved as it grew */
	return visitor->leave ? visitor->leave(visitor->ctx, entry, err) : 0;
}

static int source_visit_opened(struct walk *walk, struct source_entry *entry, struct err *err)
{
	if (entry->fd < 0)
		return err_os(err, errno, "open %s", *entry->path ? entry->path : entry->name);
	if (source_verify(entry, err) < 0)
		return -1;
	return S_ISDIR(entry->st.st_mode) ? source_visit_dir(walk, entry, err)
					  : source_visit_file(walk, entry, err);
}

static int source_visit(struct walk *walk, int dirfd, struct source_entry *entry, struct err *err)
{
	if (S_ISLNK(entry->st.st_mode))
		return source_visit_link(walk, entry, dirfd, err);
	if (!S_ISREG(entry->st.st_mode) && !S_ISDIR(entry->st.st_mode))
		return source_refuse_kind(entry, err);
	entry->fd = openat(dirfd, entry->name, SOURCE_OPEN);
	return source_visit_opened(walk, entry, err);
}

static int source_visit_name(struct walk *walk, int dirfd, const char *name, struct err *err)
{
	auto_entry struct source_entry entry = {.name = name, .fd = -1, .block = walk->block};
	size_t parent = walk->path.len;
	int result;

	if (cancel_check(walk->visitor->cancel, err) < 0)
		return -1;
	if (++walk->entries > CONTEXT_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d files in one COPY",
			       CONTEXT_ENTRIES_MAX);
	if (buf_addf(&walk->path, err, "%s%s", parent ? "/" : "", name) < 0)
		return err_ctx(err, "path");
	entry.path = walk->path.ptr;
	if (fstatat(dirfd, name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "stat %s", entry.path);
	result = source_visit(walk, dirfd, &entry, err);
	walk->path.len = parent;
	walk->path.ptr[parent] = '\0';
	return result;
}

/* The name itself is there, and leads no further. */
static int source_refuse_end(int dirfd, const char *name, const char *source, struct err *err)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return err_set(err, ERR_NOT_FOUND,
			       "%s is not in the context: %s is a link that leads elsewhere",
			       source, name);
	return err_set(err, ERR_NOT_FOUND, "%s is not in the context: %s is no directory", source,
		       name);
}

/* Name what is missing, and what was there instead. */
static int source_refuse_missing(int contextfd, const char *source, struct str clean,
				 struct err *err)
{
	auto_close int dirfd = openat(contextfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_buf struct buf below = BUF_INIT(PATH_TEXT_MAX);
	auto_names struct names names = {0};
	struct nearest nearest;
	struct err ignored;
	struct str part = STR("");

	while (dirfd >= 0 && path_next(&clean, &part)) {
		int next = -1;

		if (buf_addf(&below, &ignored, "/" STR_FMT, STR_ARG(part)) == 0)
			next = fd_open_in_root(contextfd, below.ptr, O_RDONLY | O_DIRECTORY, 0,
					       &ignored);
		if (next < 0)
			break;
		auto_close_release(&dirfd);
		dirfd = next;
	}
	nearest_init(&nearest, part);
	if (dirfd >= 0 && names_read(dirfd, SOURCE_NAMES_MAX, &names, &ignored) == 0) {
		for (size_t i = 0; i < names.count; i++)
			nearest_offer(&nearest, str_of(names.at[i]));
	}
	if (str_equal(str_of(nearest.name), part))
		return source_refuse_end(dirfd, nearest.name, source, err);
	return err_set(err, ERR_NOT_FOUND, "%s is not in the context%s%s%s", source,
		       *nearest.name ? "; did you mean " : "", nearest.name,
		       *nearest.name ? "?" : "");
}

/* Status first: opening a device or a fifo could have effects. */
static int source_open(int contextfd, const char *source, struct str clean,
		       struct source_entry *entry, struct err *err)
{
	auto_close int fd = fd_open_in_root(contextfd, clean.ptr, O_PATH, 0, err);

	if (fd < 0 && err->kind == ERR_OS && (err->os == ENOENT || err->os == ENOTDIR))
		return source_refuse_missing(contextfd, source, clean, err);
	if (fd < 0 && err->kind == ERR_OS && err->os == ELOOP)
		return err_set(err, ERR_REFUSED, "%s: too many symlinks on the way", source);
	if (fd < 0 && err->kind == ERR_OS && err->os == ENAMETOOLONG)
		return err_set(err, ERR_REFUSED, "%s: a name in it is longer than %d bytes", source,
			       NAME_MAX);
	if (fd < 0)
		return -1;
	if (fstat(fd, &entry->st) < 0)
		return err_os(err, errno, "stat %s", source);
	if (!S_ISREG(entry->st.st_mode) && !S_ISDIR(entry->st.st_mode))
		return source_refuse_kind(entry, err);
	entry->fd = fd_open_in_root(contextfd, clean.ptr, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	return entry->fd < 0 ? -1 : 0;
}

int source_walk(int contextfd, const char *source, const struct source_visitor *visitor,
		struct err *err)
{
	AUTO(walk) struct walk walk = {.visitor = visitor, .path = BUF_INIT(PATH_TEXT_MAX)};
	auto_entry struct source_entry entry = {.path = "", .fd = -1};
	auto_buf struct buf clean = BUF_INIT(PATH_TEXT_MAX);

	if (contextfd < 0)
		return err_set(err, ERR_INVALID, "COPY needs a context, and none was given");
	if (path_join(STR("/"), str_of(source), &clean, err) < 0)
		return -1;
	entry.name = path_base(buf_str(&clean)).ptr;
	entry.block = walk.block = malloc(SOURCE_BLOCK);
	if (!walk.block)
		abort();
	if (buf_add(&walk.path, STR(""), err) < 0 ||
	    source_open(contextfd, source, buf_str(&clean), &entry, err) < 0)
		return -1;
	return source_visit_opened(&walk, &entry, err);
}

static bool source_zeros(struct str bytes)
{
	return bytes.ptr[0] == '\0' && memcmp(bytes.ptr, bytes.ptr + 1, bytes.len - 1) == 0;
}

/* Where the next data may be, from offset on, at a block's start; size when there is none. */
static off_t source_skip_hole(const struct source_entry *entry, off_t offset)
{
	off_t data;

	if ((off_t)entry->st.st_blocks * 512 >= entry->st.st_size)
		return offset; /* no holes */
	data = lseek(entry->fd, offset, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? entry->st.st_size : offset;
	data -= data % (off_t)SOURCE_BLOCK;
	return data > offset ? data : offset;
}

int source_read(const struct source_entry *entry, const struct cancel *cancel, source_block_fn *fn,
		void *ctx, struct err *err)
{
	off_t offset = source_skip_hole(entry, 0);
	struct stat after;

	while (offset < entry->st.st_size) {
		ssize_t n = fd_pread_all(entry->fd, entry->block, SOURCE_BLOCK, offset, err);
		struct str bytes = {entry->block, n > 0 ? (size_t)n : 0};

		if (n < 0)
			return err_ctx(err, "%s", entry->path);
		if (n == 0)
			break;
		if (cancel_check(cancel, err) < 0)
			return -1;
		if (!source_zeros(bytes) && fn(ctx, (uint64_t)offset, bytes, err) < 0)
			return -1;
		offset = source_skip_hole(entry, offset + (off_t)SOURCE_BLOCK);
	}
	if (fstat(entry->fd, &after) < 0)
		return err_os(err, errno, "stat %s", entry->path);
	return source_same(&entry->st, &after) ? 0 : source_changed(entry, err);
}
