/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/dirs_priv.h"

#include "layers/base/path.h"

#include <fcntl.h>
#include <limits.h>

#define DIRS_OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A walk in progress: what is still to go, and the text it lies in. */
struct walk {
	struct buf text; /* once a symlink was met */
	struct str rest;
	int links;
	bool make;
};

static struct dir_level *dirs_top(struct dirs *dirs)
{
	return &dirs->levels[dirs->depth];
}

void dirs_init(struct dirs *dirs, int treefd, uint64_t max_inodes)
{
	*dirs = (struct dirs){.path = BUF_INIT(DIRS_PATH_MAX), .left = max_inodes};
	dirs->levels[0].fd = treefd;
}

void dirs_done(struct dirs *dirs)
{
	for (; dirs->depth > 0; dirs->depth--)
		auto_close_release(&dirs_top(dirs)->fd);
	buf_done(&dirs->path);
}

int dirs_fd(const struct dirs *dirs)
{
	return dirs->levels[dirs->depth].fd;
}

int dirs_touch(struct dirs *dirs, struct err *err)
{
	struct dir_level *top = dirs_top(dirs);
	struct stat stat;

	if (top->touched)
		return 0;
	if (fstat(top->fd, &stat) < 0)
		return err_os(err, errno, "stat a directory");
	top->mtime = stat.st_mtim;
	top->touched = true;
	return 0;
}

void dirs_set_mtime(struct dirs *dirs, struct timespec mtime)
{
	dirs_top(dirs)->mtime = mtime;
	dirs_top(dirs)->touched = true;
}

int dirs_count(struct dirs *dirs, struct err *err)
{
	if (dirs->left == 0)
		return err_set(err, ERR_LIMIT, "more entries than are allowed");
	dirs->left--;
	return 0;
}

int dirs_push(struct dirs *dirs, struct str name, int fd, struct timespec mtime, struct err *err)
{
	auto_close int owned = fd;

	if (dirs->depth == TREE_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "directories are nested deeper than %zu",
			       TREE_DEPTH_MAX);
	if (dirs->path.len > 0 && buf_add(&dirs->path, STR("/"), err) < 0)
		return -1;
	if (buf_add(&dirs->path, name, err) < 0)
		return -1;
	dirs->depth++;
	*dirs_top(dirs) = (struct dir_level){
		.fd = steal_fd(&owned),
		.len = dirs->path.len,
		.touched = true,
		.mtime = mtime,
	};
	return 0;
}

static int dirs_restore_time(int fd, const struct dir_level *level, struct err *err)
{
	const struct timespec times[2] = {level->mtime, level->mtime};

	if (level->touched && futimens(fd, times) < 0)
		return err_os(err, errno, "set a directory's time");
	return 0;
}

static int dirs_pop(struct dirs *dirs, struct err *err)
{
	auto_close int fd = dirs_top(dirs)->fd;
	const struct dir_level *level = dirs_top(dirs);

	dirs->depth--;
	dirs->path.len = dirs_top(dirs)->len;
	if (dirs->path.ptr)
		dirs->path.ptr[dirs->path.len] = '\0';
	return dirs_restore_time(fd, level, err);
}

static bool level_holds(const struct dirs *dirs, struct str path)
{
	size_t len = dirs->levels[dirs->depth].len;

	if (len == 0)
		return true;
	return path.len >= len && memcmp(dirs->path.ptr, path.ptr, len) == 0 &&
	       (path.len == len || path.ptr[len] == '/');
}

/* From the root on down, all that is open leads to what has no entry. */
static int dirs_mark_way(struct dirs *dirs, struct err *err)
{
	for (size_t i = 0; i <= dirs->depth; i++) {
		struct dir_level *level = &dirs->levels[i];

		if (!level->implies && overlay_mark_implies(level->fd, err) < 0)
			return -1;
		level->implies = true;
	}
	return 0;
}

static int dirs_make(struct dirs *dirs, const char *name, struct err *err)
{
	auto_close int fd = -1;

	if (dirs_count(dirs, err) < 0 || dirs_touch(dirs, err) < 0)
		return -1;
	if (mkdirat(dirs_fd(dirs), name, 0755) < 0)
		return err_os(err, errno, "make a directory");
	fd = openat(dirs_fd(dirs), name, DIRS_OPEN);
	if (fd < 0)
		return err_os(err, errno, "open a directory");
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0755) < 0)
		return err_os(err, errno, "set a directory's owner");
	if (overlay_mark_implied(fd, err) < 0 || dirs_mark_way(dirs, err) < 0)
		return -1;
	return dirs_push(dirs, str_of(name), steal_fd(&fd), (struct timespec){0}, err);
}

/* The component is no directory; if it is a symlink, its target comes next. */
static int dirs_follow(struct dirs *dirs, struct walk *walk, const char *name, struct err *err)
{
	auto_buf struct buf next = BUF_INIT(DIRS_PATH_MAX);
	char target[PATH_MAX];
	ssize_t n = readlinkat(dirs_fd(dirs), name, target, sizeof(target));

	if (n < 0)
		return DIRS_BLOCKED;
	if (++walk->links > DIRS_LINKS_MAX)
		return err_set(err, ERR_CORRUPT, "too many symlinks on its way");
	dirs->followed = true;
	while (n > 0 && target[0] == '/' && dirs->depth > 0) {
		if (dirs_pop(dirs, err) < 0)
			return -1;
	}
	if (buf_add(&next, (struct str){target, (size_t)n}, err) < 0 ||
	    buf_add(&next, STR("/"), err) < 0 || buf_add(&next, walk->rest, err) < 0)
		return -1;
	buf_done(&walk->text);
	walk->text = next;
	next = BUF_INIT(DIRS_PATH_MAX);
	walk->rest = buf_str(&walk->text);
	return DIRS_THERE;
}

static int dirs_step(struct dirs *dirs, struct walk *walk, struct str part, struct err *err)
{
	char name[NAME_MAX + 1];
	int fd;

	if (str_equal(part, STR(".."))) {
		if (dirs->depth == 0)
			return err_set(err, ERR_CORRUPT, "it leads outside the tree");
		return dirs_pop(dirs, err) < 0 ? -1 : DIRS_THERE;
	}
	if (part.len > NAME_MAX)
		return err_set(err, ERR_CORRUPT, "a name is longer than %d bytes", NAME_MAX);
	memcpy(name, part.ptr, part.len);
	name[part.len] = '\0';
	fd = openat(dirs_fd(dirs), name, DIRS_OPEN);
	if (fd < 0 && errno == ENOENT && !walk->make)
		return DIRS_MISSING;
	if (fd < 0 && errno == ENOENT)
		return dirs_make(dirs, name, err) < 0 ? -1 : DIRS_THERE;
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return dirs_follow(dirs, walk, name, err);
	if (fd < 0)
		return err_os(err, errno, "open a directory");
	if (dirs_push(dirs, part, fd, (struct timespec){0}, err) < 0)
		return -1;
	dirs_top(dirs)->touched = false;
	return DIRS_THERE;
}

int dirs_enter(struct dirs *dirs, struct str path, bool make, struct err *err)
{
	struct walk walk = {.text = BUF_INIT(DIRS_PATH_MAX), .make = make};
	int found = DIRS_THERE;
	struct str part;

	dirs->followed = false;
	while (!level_holds(dirs, path)) {
		if (dirs_pop(dirs, err) < 0)
			return -1;
	}
	walk.rest = str_skip(path, dirs_top(dirs)->len);
	while (found == DIRS_THERE && path_next(&walk.rest, &part))
		found = dirs_step(dirs, &walk, part, err);
	buf_done(&walk.text);
	return found;
}

int dirs_finish(struct dirs *dirs, struct err *err)
{
	while (dirs->depth > 0) {
		if (dirs_pop(dirs, err) < 0)
			return -1;
	}
	return dirs_restore_time(dirs_top(dirs)->fd, dirs_top(dirs), err);
}
