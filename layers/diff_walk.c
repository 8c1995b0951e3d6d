/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_walk.c - the pass over the upper directory.
 *
 * What equals the lower view is removed on the way, so a directory without any
 * change is empty at its end. An opaque directory is walked together with the
 * one that it hides: what only the lower one has becomes a whiteout.
 */
#include "layers/base/path.h"
#include "layers/diff_priv.h"

#include <fcntl.h>

static int walk_dir(struct diff *diff, struct diff_dir *dir, struct err *err);

static int drop(const struct diff_dir *dir, const char *name, int flags, struct err *err)
{
	if (unlinkat(dir->fd, name, flags) < 0)
		return err_os(err, errno, "remove");
	return 0;
}

/* 1 what the lower view has there, 0 nothing, -1. */
static int lower_find(const struct diff_dir *dir, const char *name, struct stat *out,
		      struct err *err)
{
	if (dir->lowerfd < 0)
		return 0;
	if (fstatat(dir->lowerfd, name, out, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "stat in the lower view");
	return !overlay_is_whiteout(out);
}

static int walk_whiteout(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
{
	struct stat lower;
	int found = lower_find(dir, name, &lower, err);

	if (found < 0)
		return -1;
	if (!found)
		return drop(dir, name, 0, err);
	if (diff_emit_whiteout(diff, dir, name, err) < 0)
		return -1;
	return overlay_dress_whiteout(dir->fd, name, err);
}

/* Count a file once, whatever the number of its names; of one with holes only its data. */
static void walk_count_linked(struct diff *diff, const struct stat *stat)
{
	int64_t room = (int64_t)stat->st_blocks * 512;

	if (diff_links_mark_below(&diff->links, stat))
		diff->linked_bytes += (uint64_t)(room < stat->st_size ? room : stat->st_size);
}

static int walk_file(struct diff *diff, struct diff_dir *dir, const char *name,
		     const struct stat *stat, struct err *err)
{
	auto_close int fd = diff_open(dir->fd, name, O_NONBLOCK, err);
	const struct file_ref file = {.fd = fd};
	struct stat lower;
	int same;

	if (fd < 0 || attrs_read(&diff->upper, &file, stat->st_mode, err) < 0)
		return -1;
	same = lower_find(dir, name, &lower, err);
	if (same > 0)
		same = diff_same_file(diff, dir, name, fd, stat, &lower, err);
	if (same < 0)
		return -1;
	if (same && stat->st_nlink == 1)
		return drop(dir, name, 0, err);
	if (diff_emit_file(diff, dir, fd, stat, err) < 0)
		return -1;
	if (same)
		walk_count_linked(diff, stat);
	return 0;
}

static int walk_special(struct diff *diff, struct diff_dir *dir, const char *name,
			const struct stat *stat, struct err *err)
{
	const struct file_ref file = {.fd = -1, .dirfd = dir->fd, .name = name};
	struct stat lower;
	int same;

	if (S_ISSOCK(stat->st_mode))
		return drop(dir, name, 0, err);
	if (attrs_read(&diff->upper, &file, stat->st_mode, err) < 0)
		return -1;
	same = lower_find(dir, name, &lower, err);
	if (same > 0)
		same = diff_same_special(diff, dir, name, stat, &lower, err);
	if (same < 0)
		return -1;
	if (same)
		return drop(dir, name, 0, err);
	return diff_emit_special(diff, dir, name, stat, err);
}

/* The directory that this one covers, or -1 in *out. */
static int open_covered(const struct diff_dir *parent, const char *name, int *out, struct err *err)
{
	struct stat lower;
	int found = lower_find(parent, name, &lower, err);

	*out = -1;
	if (found <= 0 || !S_ISDIR(lower.st_mode))
		return found < 0 ? -1 : 0;
	*out = diff_open(parent->lowerfd, name, O_DIRECTORY, err);
	return *out < 0 ? err_ctx(err, "lower") : 0;
}

static int walk_subdir(struct diff *diff, struct diff_dir *parent, const char *name,
		       const struct stat *stat, struct err *err)
{
	auto_close int fd = diff_open(parent->fd, name, O_DIRECTORY, err);
	auto_close int lowerfd = -1;
	struct diff_dir dir = {
		.parent = parent,
		.fd = fd,
		.stat = *stat,
		.path_len = diff->path.len,
		.depth = parent->depth + 1,
	};

	if (fd < 0)
		return -1;
	if (dir.depth > TREE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "directories are nested deeper than %zu",
			       TREE_DEPTH_MAX);
	if (open_covered(parent, name, &lowerfd, err) < 0)
		return -1;
	dir.lowerfd = lowerfd;
	if (walk_dir(diff, &dir, err) < 0)
		return -1;
	if (!dir.emitted)
		return drop(parent, name, AT_REMOVEDIR, err);
	return diff_seal_dir(diff, &dir, err);
}

static int walk_one(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
{
	struct stat stat;

	if (cancel_check(diff->spec->cancel, err) < 0)
		return -1;
	if (fstatat(dir->fd, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "stat");
	if (overlay_is_whiteout(&stat))
		return walk_whiteout(diff, dir, name, err);
	if (str_starts(str_of(name), STR(WHITEOUT_PREFIX)))
		return err_set(err, ERR_UNSUPPORTED,
			       "in a layer a name that starts with %s is a deletion; "
			       "name it otherwise, or remove it before the step ends",
			       WHITEOUT_PREFIX);
	if (S_ISDIR(stat.st_mode))
		return walk_subdir(diff, dir, name, &stat, err);
	if (S_ISREG(stat.st_mode))
		return walk_file(diff, dir, name, &stat, err);
	return walk_special(diff, dir, name, &stat, err);
}

/* The innermost call knows the whole path. */
static int walk_blame(struct diff *diff, struct err *err)
{
	char shown[PATH_SHOWN_MAX];

	if (diff->blamed)
		return -1;
	diff->blamed = true;
	return err_ctx(err, "%s", path_show(buf_str(&diff->path), shown));
}

static int walk_named(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
{
	int result = 0;

	if (dir->path_len > 0)
		result = buf_add(&diff->path, STR("/"), err);
	if (result == 0)
		result = buf_add(&diff->path, str_of(name), err);
	if (result == 0)
		result = walk_one(diff, dir, name, err);
	if (result < 0)
		return walk_blame(diff, err);
	diff->path.len = dir->path_len;
	diff->path.ptr[diff->path.len] = '\0';
	return 0;
}

/* Whiteouts for what only the lower directory has, below an opaque one. */
static int hide_one(struct diff *diff, struct diff_dir *dir, const char *name, struct err *err)
{
	struct stat lower;
	int found = lower_find(dir, name, &lower, err);

	if (found <= 0)
		return found;
	if (diff_emit_whiteout(diff, dir, name, err) < 0)
		return -1;
	return overlay_make_whiteout(dir->fd, name, err);
}

static int walk_names(struct diff *diff, struct diff_dir *dir, const struct names *upper,
		      const struct names *lower, struct err *err)
{
	size_t i = 0;
	size_t j = 0;

	while (i < upper->count || j < lower->count) {
		int order = i == upper->count   ? 1
			    : j == lower->count ? -1
						: strcmp(upper->at[i], lower->at[j]);

		if (order > 0 && hide_one(diff, dir, lower->at[j], err) < 0)
			return -1;
		if (order <= 0 && walk_named(diff, dir, upper->at[i], err) < 0)
			return -1;
		i += order <= 0;
		j += order >= 0;
	}
	return 0;
}

static int walk_children(struct diff *diff, struct diff_dir *dir, struct err *err)
{
	auto_names struct names upper = {0};
	auto_names struct names lower = {0};
	const size_t before = diff->names_held;

	if (names_read(dir->fd, DIFF_NAMES_MAX - diff->names_held, &upper, err) < 0)
		return -1;
	diff->names_held += upper.bytes.len;
	if (dir->hides && dir->lowerfd >= 0 &&
	    names_read(dir->lowerfd, DIFF_NAMES_MAX - diff->names_held, &lower, err) < 0)
		return -1;
	diff->names_held += lower.bytes.len;
	if (walk_names(diff, dir, &upper, &lower, err) < 0)
		return -1;
	diff->names_held = before;
	return 0;
}

static int walk_dir(struct diff *diff, struct diff_dir *dir, struct err *err)
{
	const struct file_ref file = {.fd = dir->fd};
	int same;

	if (attrs_read(&diff->upper, &file, dir->stat.st_mode, err) < 0)
		return -1;
	dir->hides = diff->upper.opaque || (dir->parent && dir->parent->hides);
	same = diff_same_dir(diff, dir, err);
	if (same < 0 || (!same && diff_emit_dir(diff, dir, err) < 0))
		return -1;
	return walk_children(diff, dir, err);
}

/* The root has an entry only if it is another than below; below nothing it is plain. */
static int root_is_plain(struct diff *diff, const struct diff_dir *root, struct err *err)
{
	const struct file_ref file = {.fd = root->fd};

	if (attrs_read(&diff->upper, &file, root->stat.st_mode, err) < 0)
		return -1;
	if (root->lowerfd >= 0)
		return diff_same_dir(diff, root, err);
	return root->stat.st_mode == (S_IFDIR | 0755) && root->stat.st_uid == 0 &&
	       root->stat.st_gid == 0 && diff->upper.count == 0;
}

/* Descriptors of our own: the caller's may be of any kind, and at any offset. */
static int open_roots(const struct diff *diff, int *upperfd, int *lowerfd, struct err *err)
{
	*upperfd = openat(diff->spec->upperfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*upperfd < 0)
		return err_os(err, errno, "open the upper directory");
	if (diff->spec->lowerfd < 0)
		return 0;
	*lowerfd = openat(diff->spec->lowerfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lowerfd < 0)
		return err_os(err, errno, "open the lower view");
	return 0;
}

static int walk_root(struct diff *diff, struct err *err)
{
	auto_close int upperfd = -1;
	auto_close int lowerfd = -1;
	struct diff_dir root = {0};
	int plain;

	if (open_roots(diff, &upperfd, &lowerfd, err) < 0)
		return -1;
	root.fd = upperfd;
	root.lowerfd = lowerfd;
	if (fstat(root.fd, &root.stat) < 0)
		return err_os(err, errno, "stat the upper directory");
	plain = root_is_plain(diff, &root, err);
	if (plain < 0 || (!plain && diff_emit_dir(diff, &root, err) < 0))
		return -1;
	root.emitted = true;
	if (walk_children(diff, &root, err) < 0)
		return -1;
	return plain ? diff_seal_plain_root(diff, &root, err) : diff_seal_dir(diff, &root, err);
}

static void diff_free(struct diff *diff)
{
	diff_tar_close(diff->tar);
	buf_done(&diff->path);
	diff_links_done(&diff->links);
	attrs_done(&diff->upper);
	attrs_done(&diff->lower);
	free(diff);
}

DEFINE_AUTO(diff, struct diff *, diff_free);

int diff_run(const struct diff_spec *spec, const struct diff_out *sink, struct diff_result *out,
	     struct err *err)
{
	AUTO(diff) struct diff *diff = calloc(1, sizeof(*diff));
	struct diff_result result = {0};

	if (!diff)
		abort();
	diff->spec = spec;
	diff->out = sink;
	diff->path = BUF_INIT(DIFF_PATH_MAX);
	attrs_init(&diff->upper);
	attrs_init(&diff->lower);
	if (walk_root(diff, err) < 0)
		return -1;
	result.empty = diff->entries == 0;
	result.linked_bytes = diff->linked_bytes;
	if (!result.empty && diff_tar_finish(diff->tar, &result.content, err) < 0)
		return -1;
	*out = result;
	return 0;
}
