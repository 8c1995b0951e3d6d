/* SPDX-License-Identifier: Apache-2.0 */
/* inner_place.c - where inner mounts go, and places for those that have none. */
#include "sandbox/inner_priv.h"

#include "layers/base/path.h"
#include "layers/implied.h"
#include "sandbox/machine.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define INNER_LINKS_MAX 40 /* as the kernel */
#define INNER_TARGETS "targets"

/* A path being walked in the trees, link by link. */
struct walk {
	int viewfd;      /* what the trees show; -1 where there are none */
	struct buf done; /* without symlinks, "" for the root */
	struct buf rest;
	bool missing; /* what is done has no name in the trees */
	mode_t type;  /* of what is done, unless it is missing */
	int links;
};

static inline void auto_walk_release(struct walk *walk)
{
	buf_done(&walk->done);
	buf_done(&walk->rest);
}
#define auto_walk AUTO(walk)

/* What has this path in the trees, which no link may lead to. -1 with err->os. */
static int inner_open(int viewfd, const char *path, int flags, struct err *err)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, viewfd, path, &how, sizeof(how));

	return fd < 0 ? err_os(err, errno, "open %s", path) : fd;
}

static void walk_up(struct walk *walk)
{
	const char *slash = walk->done.len ? memrchr(walk->done.ptr, '/', walk->done.len) : NULL;

	if (!slash)
		return;
	walk->done.len = (size_t)(slash - walk->done.ptr);
	walk->done.ptr[walk->done.len] = '\0';
}

/* The link that was opened takes the place of its own name. */
static int walk_follow(struct walk *walk, int fd, struct err *err)
{
	auto_buf struct buf rest = BUF_INIT(2 * PATH_TEXT_MAX);
	char target[PATH_TEXT_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	if (n < 0)
		return err_os(err, errno, "read a link");
	if (++walk->links > INNER_LINKS_MAX || n == (ssize_t)sizeof(target))
		return err_set(err, ERR_REFUSED, "its links lead nowhere");
	walk->type = S_IFDIR; /* of what the link lies in */
	if (target[0] == '/')
		buf_clear(&walk->done);
	else
		walk_up(walk);
	if (buf_add(&rest, (struct str){target, (size_t)n}, err) < 0 ||
	    buf_add(&rest, STR("/"), err) < 0 || buf_add(&rest, buf_str(&walk->rest), err) < 0)
		return -1;
	buf_clear(&walk->rest);
	return buf_add(&walk->rest, buf_str(&rest), err);
}

/* Whatever is below a name that is missing is missing, too. */
static int walk_look(struct walk *walk, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	walk->missing = walk->done.len > 0;
	walk->type = S_IFDIR;
	if (!walk->missing || walk->viewfd < 0)
		return 0;
	fd = inner_open(walk->viewfd, walk->done.ptr, O_PATH, err);
	if (fd < 0)
		return err->os == ENOENT ? 0 : -1;
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "inspect %s", walk->done.ptr);
	walk->missing = false;
	walk->type = st.st_mode & S_IFMT;
	return S_ISLNK(st.st_mode) ? walk_follow(walk, fd, err) : 0;
}

static int walk_step(struct walk *walk, struct str part, struct err *err)
{
	if (str_equal(part, STR(".."))) {
		walk_up(walk);
		return walk_look(walk, err);
	}
	if (!walk->missing && !S_ISDIR(walk->type))
		return err_set(err, ERR_REFUSED, "%s is no directory", walk->done.ptr);
	if (buf_add(&walk->done, STR("/"), err) < 0 || buf_add(&walk->done, part, err) < 0)
		return -1;
	return walk_look(walk, err);
}

static int walk_all(struct walk *walk, const char *path, struct err *err)
{
	if (buf_add(&walk->rest, str_of(path), err) < 0)
		return -1;
	walk->type = S_IFDIR;
	for (;;) {
		auto_buf struct buf name = BUF_INIT(PATH_TEXT_MAX);
		struct str rest = buf_str(&walk->rest);
		struct str part;

		if (!path_next(&rest, &part))
			return 0;
		if (buf_add(&name, part, err) < 0)
			return -1;
		memmove(walk->rest.ptr, rest.ptr, rest.len + 1);
		walk->rest.len = rest.len;
		if (walk_step(walk, buf_str(&name), err) < 0)
			return -1;
	}
}

bool inner_is_runtimes(const struct machine_mount *mount)
{
	static const struct str shm = STR("/dev/shm");
	struct str target = str_of(mount->target);

	return mount->kind == MACHINE_MOUNT_TMPFS && str_starts(target, shm) &&
	       (target.len == shm.len || target.ptr[shm.len] == '/');
}

static bool inner_is_file(const struct machine_mount *mount)
{
	struct stat st;

	if (mount->kind == MACHINE_MOUNT_SECRET)
		return true;
	return mount->kind == MACHINE_MOUNT_TREE && fstat(mount->fd, &st) == 0 &&
	       !S_ISDIR(st.st_mode);
}

/* Refuse targets that every machine's own mounts would hide, or that would hide those. */
static int inner_check_place(const struct walk *walk, struct err *err)
{
	static const char *const ours[] = {"/proc", "/sys", "/dev"};
	struct str path = buf_str(&walk->done);

	if (path.len == 0)
		return err_set(err, ERR_REFUSED, "nothing is mounted on the root");
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		size_t len = strlen(ours[i]);

		if (str_starts(path, str_of(ours[i])) && (path.len == len || path.ptr[len] == '/'))
			return err_set(err, ERR_REFUSED,
				       "nothing is mounted in /proc, /sys and /dev, but a "
				       "tmpfs on /dev/shm");
	}
	return 0;
}

static int inner_check_type(const struct walk *walk, bool is_file, struct err *err)
{
	if (walk->missing || S_ISDIR(walk->type) == !is_file)
		return 0;
	return err_set(err, ERR_REFUSED,
		       is_file ? "it is a directory, and a file cannot be mounted there"
			       : "it is a file, and a directory cannot be mounted there");
}

/* Enter the directory of the layer that stands for this one, made with its attributes. */
static int inner_enter(const struct walk *walk, int dirfd, struct str path, const char *name,
		       struct err *err)
{
	auto_buf struct buf shown = BUF_INIT(PATH_TEXT_MAX);
	auto_close int fromfd = -1;
	auto_close int fd = -1;
	bool fresh = mkdirat(dirfd, name, 0755) == 0;

	if (!fresh && errno != EEXIST)
		return err_os(err, errno, "make %s", name);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOTDIR)
		return err_set(err, ERR_REFUSED, "%s is a file of another mount", name);
	if (fd < 0)
		return err_os(err, errno, "open %s", name);
	if (!fresh || walk->viewfd < 0)
		return steal_fd(&fd);
	if (buf_add(&shown, path, err) < 0)
		return -1;
	fromfd = inner_open(walk->viewfd, shown.ptr, O_RDONLY | O_DIRECTORY, err);
	if (fromfd < 0 && err->os != ENOENT)
		return -1;
	if (fromfd >= 0 && implied_copy(fd, fromfd, err) < 0)
		return -1;
	return steal_fd(&fd);
}

/* Make the target itself; one that another mount has made is used. */
static int inner_make_last(int dirfd, const char *name, bool is_file, struct err *err)
{
	if (is_file ? mknodat(dirfd, name, S_IFREG | 0644, 0) < 0 : mkdirat(dirfd, name, 0755) < 0)
		return errno == EEXIST ? 0 : err_os(err, errno, "make %s", name);
	return 0;
}

/* All of the path in the layer, and what it holds keeps its times. */
static int inner_make(const struct walk *walk, int targetsfd, bool is_file, struct err *err)
{
	auto_close int dirfd = openat(targetsfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct str rest = buf_str(&walk->done);
	struct str part;

	while (path_next(&rest, &part)) {
		char name[NAME_MAX + 1];
		struct str path = {walk->done.ptr, (size_t)(part.ptr + part.len - walk->done.ptr)};
		struct stat st;
		int fd;

		if (part.len > NAME_MAX)
			return err_set(err, ERR_REFUSED, "a name of %zu bytes", part.len);
		memcpy(name, part.ptr, part.len);
		name[part.len] = '\0';
		if (fstat(dirfd, &st) < 0)
			return err_os(err, errno, "inspect a target");
		if (rest.len == 0 && inner_make_last(dirfd, name, is_file, err) < 0)
			return -1;
		fd = rest.len == 0 ? -1 : inner_enter(walk, dirfd, path, name, err);
		if (rest.len > 0 && fd < 0)
			return -1;
		if (futimens(dirfd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, st.st_mtim}) < 0)
			return err_os(err, errno, "set a directory's time");
		auto_close_release(&dirfd);
		dirfd = fd;
	}
	return 0;
}

static int inner_place_one(struct inner *inner, size_t i, int viewfd, struct stack *stack,
			   struct err *err)
{
	auto_walk struct walk walk = {.viewfd = viewfd,
				      .done = BUF_INIT(PATH_TEXT_MAX),
				      .rest = BUF_INIT(2 * PATH_TEXT_MAX)};
	bool is_file = inner_is_file(&inner->mounts[i]);
	auto_close int targetsfd = -1;

	if (walk_all(&walk, inner->mounts[i].target, err) < 0 ||
	    inner_check_place(&walk, err) < 0 || inner_check_type(&walk, is_file, err) < 0)
		return -1;
	inner->entries[i].path = strdup(walk.done.ptr);
	if (!inner->entries[i].path)
		abort();
	if (!walk.missing)
		return 0;
	if (mkdirat(stack->ownfd, INNER_TARGETS, 0755) < 0 && errno != EEXIST)
		return err_os(err, errno, "make " INNER_TARGETS);
	targetsfd = openat(stack->ownfd, INNER_TARGETS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (targetsfd < 0)
		return err_os(err, errno, "open " INNER_TARGETS);
	stack->has_targets = true;
	return inner_make(&walk, targetsfd, is_file, err);
}

int inner_place(struct inner *inner, struct stack *stack, struct err *err)
{
	auto_close int viewfd = -1;

	inner->scratchfd = stack->scratchfd;
	inner->first_id = stack->first_id;
	if (inner->count > 0 && stack->diff_id_count > 0 && stack_view(stack, &viewfd, err) < 0)
		return -1;
	for (size_t i = 0; i < inner->count; i++) {
		if (!inner_is_runtimes(&inner->mounts[i]) &&
		    inner_place_one(inner, i, viewfd, stack, err) < 0)
			return err_ctx(err, "mount on %s", inner->mounts[i].target);
	}
	return 0;
}
