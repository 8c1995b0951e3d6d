/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/implied.h"

#include "layers/attrs_priv.h"
#include "layers/base/fd.h"
#include "layers/base/path.h"
#include "layers/base/room.h"
#include "layers/dirs_priv.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#define IMPLIED_OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A directory of the tree, and the one that repeats it. */
struct level {
	struct level *above; /* NULL for the root */
	const char *name;
	int fd;
	int outfd; /* -1 until it is made */
	size_t depth;
};

/* One tree being corrected. */
struct correction {
	const struct implied_stack *stack;
	size_t top;
	int dirfd;       /* where the root's is made */
	struct buf path; /* of the directory that is looked at */
	struct attrs here;
	struct attrs below;
};

static int implied_has(int fd, const char *mark, struct err *err)
{
	if (fgetxattr(fd, mark, NULL, 0) >= 0)
		return 1;
	return errno == ENODATA || errno == ENOTSUP ? 0 : err_os(err, errno, "read %s", mark);
}

static int implied_open_tree(const struct implied_stack *stack, size_t i, struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	int fd = openat(stack->treesfd, digest_hex(&stack->diff_ids[i], hex), IMPLIED_OPEN);

	return fd < 0 ? err_os(err, errno, "open layer %s", hex) : fd;
}

static int implied_open_in(int dirfd, struct str part)
{
	char name[NAME_MAX + 1];

	memcpy(name, part.ptr, part.len);
	name[part.len] = '\0';
	return openat(dirfd, name, IMPLIED_OPEN);
}

enum implied_found {
	IMPLIED_GO_ON, /* what is below this tree decides */
	IMPLIED_STOP,  /* nothing below this tree is seen there */
	IMPLIED_SAID,  /* this tree has an entry for the directory */
};

/*
 * What one tree says of a path. The directory is in *out where it has an entry.
 * An opaque one hides what it holds below, not what is said of it.
 */
static int implied_ask(int rootfd, struct str path, int *out, struct err *err)
{
	auto_close int fd = openat(rootfd, ".", IMPLIED_OPEN);
	int hides = 0;
	int implied;
	struct str part;

	if (fd < 0)
		return err_os(err, errno, "open a layer");
	while (path_next(&path, &part)) {
		int next;

		hides |= implied_has(fd, OVERLAY_OPAQUE, err);
		if (hides < 0)
			return -1;
		next = implied_open_in(fd, part);
		if (next < 0 && errno == ENOENT)
			return hides ? IMPLIED_STOP : IMPLIED_GO_ON;
		if (next < 0)
			return errno == ENOTDIR || errno == ELOOP
				       ? IMPLIED_STOP
				       : err_os(err, errno, "open a directory");
		(void)close(fd);
		fd = next;
	}
	implied = implied_has(fd, IMPLIED_MARK, err);
	if (implied < 0)
		return -1;
	if (implied)
		return hides ? IMPLIED_STOP : IMPLIED_GO_ON;
	*out = steal_fd(&fd);
	return IMPLIED_SAID;
}

void implied_seen_done(struct implied_seen *seen)
{
	for (size_t i = 0; i < IMPLIED_SEEN_MAX; i++)
		free(seen->paths[i]);
	*seen = (struct implied_seen){0};
}

/* Whether the path was looked at in a tree above; from now on it was. */
static bool implied_was_seen(const struct correction *correction)
{
	struct str path = buf_str(&correction->path);
	uint32_t hash = 2166136261; /* FNV-1a */
	char **place;

	for (size_t i = 0; i < path.len; i++)
		hash = (hash ^ (unsigned char)path.ptr[i]) * 16777619;
	place = &correction->stack->seen->paths[hash % IMPLIED_SEEN_MAX];
	if (*place && str_equal(str_of(*place), path))
		return true;
	free(*place);
	*place = strdup(path.ptr);
	if (!*place)
		abort();
	return false;
}

/* 1 and the highest directory below that has an entry, 0 there is none, -1. */
static int implied_find(const struct correction *correction, int *out, struct err *err)
{
	const struct implied_stack *stack = correction->stack;
	int found = IMPLIED_GO_ON;

	for (size_t i = correction->top; found == IMPLIED_GO_ON && i > stack->lowest; i--) {
		auto_close int rootfd = implied_open_tree(stack, i - 1, err);

		if (rootfd < 0)
			return -1;
		found = implied_ask(rootfd, buf_str(&correction->path), out, err);
		if (found < 0)
			return -1;
	}
	return found == IMPLIED_SAID;
}

/* The same in all but time, which a layer does not say of what it implies. */
static int implied_is_right(struct correction *correction, int fd, int belowfd, struct err *err)
{
	struct stat here;
	struct stat below;

	if (fstat(fd, &here) < 0 || fstat(belowfd, &below) < 0)
		return err_os(err, errno, "stat a directory");
	if (attrs_read(&correction->here, &(struct file_ref){.fd = fd}, here.st_mode, err) < 0 ||
	    attrs_read(&correction->below, &(struct file_ref){.fd = belowfd}, below.st_mode, err) <
		    0)
		return -1;
	return here.st_mode == below.st_mode && here.st_uid == below.st_uid &&
	       here.st_gid == below.st_gid && attrs_equal(&correction->here, &correction->below);
}

/* Make one directory what another is. */
static int implied_dress(struct correction *correction, int fd, int fromfd, struct err *err)
{
	struct attrs *attrs = &correction->below;
	struct stat from;

	if (fstat(fromfd, &from) < 0)
		return err_os(err, errno, "stat a directory");
	if (attrs_read(attrs, &(struct file_ref){.fd = fromfd}, from.st_mode, err) < 0)
		return -1;
	if (fchown(fd, from.st_uid, from.st_gid) < 0 || fchmod(fd, from.st_mode & 07777) < 0)
		return err_os(err, errno, "set a directory's owner");
	for (size_t i = 0; i < attrs->count; i++) {
		struct str value = attrs_value(attrs, i);

		if (fsetxattr(fd, attrs_name(attrs, i), value.ptr, value.len, 0) < 0)
			return room_xattr_failed(fd, errno, attrs_name(attrs, i), value.len, err);
	}
	if (futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, from.st_mtim}) < 0)
		return err_os(err, errno, "set a directory's time");
	return 0;
}

/* Make it as the tree has it; the directory that it is made in keeps its time. */
static int implied_make(struct correction *correction, int dirfd, const struct level *level,
			struct err *err)
{
	auto_close int fd = -1;
	struct stat parent;

	if (fstat(dirfd, &parent) < 0)
		return err_os(err, errno, "stat a directory");
	if (mkdirat(dirfd, level->name, 0700) < 0)
		return err_os(err, errno, "make a directory");
	fd = openat(dirfd, level->name, IMPLIED_OPEN);
	if (fd < 0)
		return err_os(err, errno, "open a directory");
	if (implied_dress(correction, fd, level->fd, err) < 0)
		return -1;
	if (futimens(dirfd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, parent.st_mtim}) < 0)
		return err_os(err, errno, "set a directory's time");
	return steal_fd(&fd);
}

static int implied_repeat(struct correction *correction, struct level *level, struct err *err)
{
	int dirfd = correction->dirfd;

	if (level->outfd >= 0)
		return 0;
	if (level->above) {
		if (implied_repeat(correction, level->above, err) < 0)
			return -1;
		dirfd = level->above->outfd;
	}
	level->outfd = implied_make(correction, dirfd, level, err);
	return level->outfd < 0 ? -1 : 0;
}

static int implied_correct_one(struct correction *correction, struct level *level, struct err *err)
{
	auto_close int belowfd = -1;
	int found = 0;

	if (!implied_was_seen(correction))
		found = implied_find(correction, &belowfd, err);
	if (found <= 0)
		return found;
	found = implied_is_right(correction, level->fd, belowfd, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (implied_repeat(correction, level, err) < 0)
		return -1;
	return implied_dress(correction, level->outfd, belowfd, err);
}

static int implied_walk(struct correction *correction, struct level *level, struct err *err);

static int implied_walk_child(struct correction *correction, struct level *above, const char *name,
			      struct err *err)
{
	const size_t len = correction->path.len;
	auto_close int fd = openat(above->fd, name, IMPLIED_OPEN);
	struct level level = {above, name, fd, -1, above->depth + 1};
	int result;

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? 0
							  : err_os(err, errno, "open a directory");
	if (len > 0 && buf_add(&correction->path, STR("/"), err) < 0)
		return -1;
	if (buf_add(&correction->path, str_of(name), err) < 0)
		return -1;
	result = implied_walk(correction, &level, err);
	auto_close_release(&level.outfd);
	if (result == 0)
		correction->path.len = len;
	return result;
}

/* Below an opaque directory nothing of a lower tree is seen, so there is nothing to correct. */
static int implied_walk_children(struct correction *correction, struct level *level,
				 struct err *err)
{
	int below = implied_has(level->fd, IMPLIED_BELOW, err);
	int hides = below == 1 ? implied_has(level->fd, OVERLAY_OPAQUE, err) : 0;
	auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (below < 0 || hides < 0)
		return -1;
	if (!below || hides || level->depth == TREE_DEPTH_MAX)
		return 0;
	if (fd_open_dir(level->fd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (!fd_is_dots(entry->d_name) &&
		    implied_walk_child(correction, level, entry->d_name, err) < 0)
			return -1;
	}
	return 0;
}

static int implied_walk(struct correction *correction, struct level *level, struct err *err)
{
	int implied = implied_has(level->fd, IMPLIED_MARK, err);

	if (implied < 0 || (implied && implied_correct_one(correction, level, err) < 0))
		return -1;
	return implied_walk_children(correction, level, err);
}

static void correction_done(struct correction *correction)
{
	buf_done(&correction->path);
	attrs_done(&correction->here);
	attrs_done(&correction->below);
	free(correction);
}

DEFINE_AUTO(correction, struct correction *, correction_done);

int implied_copy(int fd, int fromfd, struct err *err)
{
	AUTO(correction) struct correction *correction = calloc(1, sizeof(*correction));

	if (!correction)
		abort();
	attrs_init(&correction->here);
	attrs_init(&correction->below);
	return implied_dress(correction, fd, fromfd, err);
}

int implied_correct(const struct implied_stack *stack, size_t top, int dirfd, const char *name,
		    struct err *err)
{
	AUTO(correction) struct correction *correction = calloc(1, sizeof(*correction));
	auto_close int fd = implied_open_tree(stack, top, err);
	struct level root = {.name = name, .fd = fd, .outfd = -1};
	char shown[PATH_SHOWN_MAX];
	int result;

	if (!correction)
		abort();
	correction->stack = stack;
	correction->top = top;
	correction->dirfd = dirfd;
	correction->path = BUF_INIT(DIRS_PATH_MAX);
	attrs_init(&correction->here);
	attrs_init(&correction->below);
	if (fd < 0)
		return -1;
	result = implied_walk(correction, &root, err);
	auto_close_release(&root.outfd);
	if (result < 0)
		return err_ctx(err, "%s", path_show(buf_str(&correction->path), shown));
	return root.outfd >= 0;
}
