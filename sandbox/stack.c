/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/stack_priv.h"

#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "layers/implied.h"
#include "sandbox/userns_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define STACK_POLL_MS 2
#define STACK_SECBIT_NO_SETUID_FIXUP (1 << 2)
#define STACK_OPAQUE "trusted.overlay.opaque"
#define STACK_LAYERS_MAX (STACK_TREES_MAX + 2)
#define STACK_OPTIONS_MAX ((size_t)4096) /* mount(2) takes one page */

/* The descriptors from which one overlay is put together. */
struct stack_layers {
	int fds[STACK_LAYERS_MAX]; /* bottom first */
	size_t count;
	int upperfd;
	int workfd;
};

#define STACK_LAYERS_INIT ((struct stack_layers){.upperfd = -1, .workfd = -1})

static void stack_layers_close(struct stack_layers *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		auto_close_release(&layers->fds[i]);
	auto_close_release(&layers->upperfd);
	auto_close_release(&layers->workfd);
}

static inline void auto_stack_layers_release(struct stack_layers *slot)
{
	stack_layers_close(slot);
}

static int stack_open_dir(int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_os(err, errno, "open layer %s", name) : fd;
}

static int stack_add_layer(struct stack_layers *layers, int dirfd, const char *name,
			   struct err *err)
{
	int fd;

	if (layers->count == STACK_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "more than the %d layers that the kernel stacks",
			       STACK_LAYERS_MAX);
	fd = stack_open_dir(dirfd, name, err);
	if (fd < 0)
		return -1;
	layers->fds[layers->count++] = fd;
	return 0;
}

/* 1 the tree hides all below it, 0, or -1. */
static int stack_hides_all(const struct stack *stack, size_t i, struct err *err)
{
	char name[DIGEST_HEX_MAX];
	auto_close int fd = openat(stack->treesfd, digest_hex(&stack->diff_ids[i], name),
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char mark = 0;

	if (fd < 0)
		return err_os(err, errno, "open layer %s", name);
	if (fgetxattr(fd, STACK_OPAQUE, &mark, 1) < 0 && errno != ENODATA && errno != ENOTSUP)
		return err_os(err, errno, "layer %s", name);
	return mark == 'y';
}

/* Overlayfs does not look for the mark on a layer's root, so the stack ends there. */
static int stack_find_lowest(const struct stack *stack, size_t *out, struct err *err)
{
	*out = 0;
	for (size_t i = stack->diff_id_count; i > 0; i--) {
		int hides = stack_hides_all(stack, i - 1, err);

		if (hides < 0)
			return -1;
		if (hides) {
			*out = i - 1;
			break;
		}
	}
	return 0;
}

const char *stack_correction_name(size_t i, char text[static STACK_NAME_MAX])
{
	(void)snprintf(text, STACK_NAME_MAX, "correction%zu", i);
	return text;
}

int stack_correct(const struct stack *stack, struct err *err)
{
	struct implied_stack trees = {.treesfd = stack->treesfd, .diff_ids = stack->diff_ids};
	char name[STACK_NAME_MAX];

	if (stack_find_lowest(stack, &trees.lowest, err) < 0)
		return -1;
	for (size_t i = trees.lowest + 1; i < stack->diff_id_count; i++) {
		if (implied_correct(&trees, i, stack->ownfd, stack_correction_name(i, name), err) <
		    0)
			return err_ctx(err, "layer %zu", i + 1);
	}
	return 0;
}

/* What was made for it, if anything was. */
static int stack_add_correction(struct stack_layers *layers, int ownfd, size_t i, struct err *err)
{
	char name[STACK_NAME_MAX];

	if (faccessat(ownfd, stack_correction_name(i, name), F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look for %s", name);
	return stack_add_layer(layers, ownfd, name, err);
}

/* ownfd and treesfd are the stack's, or mapped clones of them. */
static int stack_add_trees(struct stack_layers *layers, const struct stack *stack, int ownfd,
			   int treesfd, struct err *err)
{
	char name[DIGEST_HEX_MAX];
	size_t lowest;

	if (stack->diff_id_count > STACK_TREES_MAX)
		return err_set(err, ERR_LIMIT, "%zu layers, and the kernel stacks %d at most",
			       stack->diff_id_count, STACK_TREES_MAX);
	if (stack_find_lowest(stack, &lowest, err) < 0)
		return -1;
	for (size_t i = lowest; i < stack->diff_id_count; i++) {
		if (stack_add_layer(layers, treesfd, digest_hex(&stack->diff_ids[i], name), err) <
			    0 ||
		    stack_add_correction(layers, ownfd, i, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * An idmapped clone of a directory, mounted at scratchfd/name: before Linux
 * 6.15 overlayfs takes no layer from a mount that is in no namespace.
 */
static int stack_clone(int dirfd, int userns, int scratchfd, const char *name, struct err *err)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV,
					.userns_fd = (uint64_t)(unsigned)userns};
	auto_close int fd = (int)syscall(SYS_open_tree, dirfd, "",
					 AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return err_os(err, errno, "clone the mount of %s", name);
	if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
		return err_os(err, errno, "map ids of %s", name);
	if (mkdirat(scratchfd, name, 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s", name);
	if (syscall(SYS_move_mount, fd, "", scratchfd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_os(err, errno, "mount %s", name);
	return steal_fd(&fd);
}

static void stack_unmount(int scratchfd, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", scratchfd, name);
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* What the kernel says about a mount that it refused, in its own words. */
static int stack_refused(int fsfd, int os, const char *what, struct err *err)
{
	char words[256];
	ssize_t n = read(fsfd, words, sizeof(words) - 1);

	if (n <= 2)
		return err_os(err, os, "overlay: %s", what);
	words[n] = '\0';
	if (words[n - 1] == '\n')
		words[n - 1] = '\0';
	return err_os(err, os, "overlay: %s: %s", what, words + 2); /* behind "e " */
}

static int stack_set_text(int fsfd, const char *key, const char *value, struct err *err)
{
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_STRING, key, value, 0) < 0)
		return stack_refused(fsfd, errno, key, err);
	return 0;
}

static int stack_set_layer(int fsfd, const char *key, int fd, struct err *err)
{
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FD, key, NULL, fd) < 0)
		return stack_refused(fsfd, errno, key, err);
	return 0;
}

/* What a mount is for. */
enum stack_use {
	STACK_ROOT,  /* a machine writes to it */
	STACK_VIEW,  /* it has no upper directory */
	STACK_PROBE, /* only whether it can be made counts */
};

/*
 * All that could make an upper directory less than the whole difference is
 * off. A probe needs no `volatile`: the end of a read-only mount syncs nothing.
 */
static int stack_set_options(int fsfd, enum stack_use use, struct err *err)
{
	static const char *const flags[] = {[STACK_ROOT] = "volatile", [STACK_PROBE] = "ro"};

	if (stack_set_text(fsfd, "redirect_dir", "nofollow", err) < 0 ||
	    stack_set_text(fsfd, "metacopy", "off", err) < 0 ||
	    stack_set_text(fsfd, "xino", "off", err) < 0 ||
	    stack_set_text(fsfd, "uuid", "off", err) < 0 || /* or `up` is marked with one */
	    stack_set_text(fsfd, "index", use == STACK_PROBE ? "on" : "off", err) < 0)
		return -1;
	if (use != STACK_VIEW &&
	    syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FLAG, flags[use], NULL, 0) < 0)
		return stack_refused(fsfd, errno, flags[use], err);
	return 0;
}

/* Where a kernel takes no descriptor, the link that /proc has to it. */
static int stack_set_link(int fsfd, const char *key, int fd, struct err *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return stack_set_text(fsfd, key, path, err);
}

static int stack_set_layers(int fsfd, const struct stack_layers *layers, struct err *err)
{
	for (size_t i = layers->count; i > 0; i--) {
		if (stack_set_layer(fsfd, "lowerdir+", layers->fds[i - 1], err) < 0)
			return -1;
	}
	if (layers->upperfd < 0)
		return 0;
	if (stack_set_layer(fsfd, "upperdir", layers->upperfd, err) < 0)
		return -1;
	return stack_set_layer(fsfd, "workdir", layers->workfd, err);
}

/* A probe has one layer below, so that its names need not share a page. */
static int stack_set_probe(int fsfd, const struct stack_layers *layers, struct err *err)
{
	if (stack_set_link(fsfd, "lowerdir", layers->fds[0], err) < 0 ||
	    stack_set_link(fsfd, "upperdir", layers->upperfd, err) < 0)
		return -1;
	return stack_set_link(fsfd, "workdir", layers->workfd, err);
}

typedef long stack_call_fn(const void *ctx);

struct stack_old {
	char target[64];
	unsigned long flags;
	const char *options;
};

static long stack_create_now(const void *ctx)
{
	const int *fsfd = ctx;

	return syscall(SYS_fsconfig, *fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

/*
 * overlayfs writes with the credentials of whoever mounts it. Host root has no
 * id in the mapped upper directory (the mount would silently be read-only), so
 * the call is made as the machine's root, with our capabilities kept.
 */
static long stack_as(uid_t id, stack_call_fn *call, const void *ctx)
{
	int bits = prctl(PR_GET_SECUREBITS);
	long result;
	int saved;

	if (bits < 0 || prctl(PR_SET_SECUREBITS, bits | STACK_SECBIT_NO_SETUID_FIXUP) < 0)
		return -1;
	(void)setfsgid(id);
	(void)setfsuid(id);
	result = call(ctx);
	saved = errno;
	(void)setfsuid(0);
	(void)setfsgid(0);
	(void)prctl(PR_SET_SECUREBITS, bits);
	errno = saved;
	return result;
}

/* The mount, attached nowhere yet. */
static int stack_create(const struct stack_layers *layers, uid_t id, enum stack_use use,
			struct err *err)
{
	unsigned attributes = MOUNT_ATTR_NODEV | (use == STACK_ROOT ? 0 : MOUNT_ATTR_RDONLY);
	auto_close int fsfd = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	int fd;

	if (fsfd < 0)
		return err_os(err, errno, "overlay");
	if (use == STACK_PROBE ? stack_set_probe(fsfd, layers, err)
			       : stack_set_layers(fsfd, layers, err))
		return -1;
	if (stack_set_options(fsfd, use, err) < 0)
		return -1;
	if (stack_as(id, stack_create_now, &fsfd) < 0)
		return stack_refused(fsfd, errno, "mount", err);
	fd = (int)syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, attributes);
	return fd < 0 ? err_os(err, errno, "overlay: mount") : fd;
}

/*
 * Linux before 6.13 takes no layer by descriptor. There each is named by its
 * link in /proc, and all of them share one page of options.
 */
static int stack_old_options(const struct stack_layers *layers, struct buf *out, struct err *err)
{
	if (buf_addf(out, err, "redirect_dir=nofollow,metacopy=off,xino=off,uuid=off,index=off") <
	    0)
		return -1;
	if (layers->upperfd >= 0 &&
	    buf_addf(out, err, ",volatile,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d",
		     layers->upperfd, layers->workfd) < 0)
		return -1;
	for (size_t i = layers->count; i > 0; i--) {
		if (buf_addf(out, err, "%s/proc/self/fd/%d",
			     i == layers->count ? ",lowerdir=" : ":", layers->fds[i - 1]) < 0)
			return err_set(err, ERR_UNSUPPORTED,
				       "%zu layers, and this kernel takes about 200: Linux 6.13 "
				       "and later take %d",
				       layers->count, STACK_TREES_MAX);
	}
	return 0;
}

static long stack_mount_old_now(const void *ctx)
{
	const struct stack_old *old = ctx;

	return mount("overlay", old->target, "overlay", old->flags, old->options);
}

static int stack_mount_old(const struct stack_layers *layers, uid_t id, int targetfd,
			   struct err *err)
{
	auto_buf struct buf options = BUF_INIT(STACK_OPTIONS_MAX);
	struct stack_old old = {.flags = MS_NODEV | (layers->upperfd < 0 ? MS_RDONLY : 0)};

	if (stack_old_options(layers, &options, err) < 0)
		return -1;
	old.options = options.ptr;
	(void)snprintf(old.target, sizeof(old.target), "/proc/self/fd/%d", targetfd);
	if (stack_as(id, stack_mount_old_now, &old) < 0)
		return err_os(err, errno, "overlay: mount %zu layers", layers->count);
	return 0;
}

static bool stack_takes_descriptors(const struct stack *stack)
{
	auto_close int fsfd = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);

	return fsfd >= 0 && !stack->by_name &&
	       syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FD, "lowerdir+", NULL, stack->ownfd) == 0;
}

/* Mount layers at scratchfd/name. */
static int stack_attach(const struct stack *stack, const struct stack_layers *layers, uid_t id,
			const char *name, struct err *err)
{
	auto_close int targetfd = -1;
	auto_close int fd = -1;

	if (mkdirat(stack->scratchfd, name, 0755) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s", name);
	targetfd = stack_open_dir(stack->scratchfd, name, err);
	if (targetfd < 0)
		return -1;
	if (!stack_takes_descriptors(stack))
		return stack_mount_old(layers, id, targetfd, err);
	fd = stack_create(layers, id, layers->upperfd < 0 ? STACK_VIEW : STACK_ROOT, err);
	if (fd < 0)
		return -1;
	if (syscall(SYS_move_mount, fd, "", targetfd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_os(err, errno, "overlay: attach");
	return 0;
}

/* Everything of stack_mount() between making the mapped clones and dropping them. */
static int stack_mount_mapped(const struct stack *stack, int userns, struct err *err)
{
	AUTO(stack_layers) struct stack_layers layers = STACK_LAYERS_INIT;
	auto_close int treesfd = -1;
	auto_close int ownfd = stack_clone(stack->ownfd, userns, stack->scratchfd, "own", err);
	auto_close int basefd = -1;

	if (ownfd < 0)
		return -1;
	basefd = stack_clone(stack->basefd, userns, stack->scratchfd, "base", err);
	if (basefd < 0 || stack_add_layer(&layers, basefd, ".", err) < 0)
		return -1;
	if (stack->diff_id_count > 0) {
		treesfd = stack_clone(stack->treesfd, userns, stack->scratchfd, "trees", err);
		if (treesfd < 0 || stack_add_trees(&layers, stack, ownfd, treesfd, err) < 0)
			return -1;
	}
	layers.upperfd = stack_open_dir(ownfd, "up", err);
	if (layers.upperfd < 0)
		return -1;
	layers.workfd = stack_open_dir(ownfd, "work", err);
	if (layers.workfd < 0)
		return -1;
	return stack_attach(stack, &layers, stack->first_id, "root", err);
}

int stack_view(const struct stack *stack, int *out_fd, struct err *err)
{
	AUTO(stack_layers) struct stack_layers layers = STACK_LAYERS_INIT;
	int fd;

	/* A view has two layers at least, and whiteouts of the lowest tree must not show. */
	if (stack_add_layer(&layers, stack->basefd, "dev", err) < 0 ||
	    stack_add_trees(&layers, stack, stack->ownfd, stack->treesfd, err) < 0 ||
	    stack_attach(stack, &layers, 0, "view", err) < 0)
		return -1;
	fd = openat(stack->scratchfd, "view", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_os(err, errno, "open the layers below");
	stack_unmount(stack->scratchfd, "view");
	*out_fd = fd;
	return 0;
}

/*
 * With index=on overlayfs says EBUSY to an upper directory that is in use, and
 * otherwise only leaves a mark on it, which is taken off again.
 */
static int stack_probe(const struct stack *stack, struct err *err)
{
	AUTO(stack_layers) struct stack_layers layers = STACK_LAYERS_INIT;
	auto_close int fd = -1;
	auto_close int upfd = -1;

	if (mkdirat(stack->ownfd, "probe", 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make probe");
	if (stack_add_layer(&layers, stack->basefd, ".", err) < 0)
		return -1;
	layers.upperfd = stack_open_dir(stack->ownfd, "up", err);
	layers.workfd = layers.upperfd < 0 ? -1 : stack_open_dir(stack->ownfd, "probe", err);
	if (layers.workfd < 0)
		return -1;
	fd = stack_create(&layers, 0, STACK_PROBE, err);
	if (fd < 0)
		return -1;
	upfd = openat(stack->ownfd, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upfd < 0)
		return err_os(err, errno, "open up");
	(void)fremovexattr(upfd, "trusted.overlay.origin");
	return 0;
}

/*
 * The root is mounted with index=off, to which the kernel only warns where two
 * mounts write to one upper directory. So we ask it first, with our lock on
 * what holds the directory: nobody can mount it between question and mount.
 */
static int stack_seize(const struct stack *stack, struct err *err)
{
	if (flock(stack->ownfd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, ERR_BUSY, "the machine's files are another's")
			       : err_os(err, errno, "lock the machine's files");
	if (stack_probe(stack, err) == 0)
		return 0;
	return err->os == EBUSY ? err_set(err, ERR_BUSY, "the machine's files are still in use")
				: -1;
}

int stack_mount(const struct stack *stack, struct err *err)
{
	auto_close int userns = userns_open(stack->first_id, err);
	int result;

	if (userns < 0 || stack_seize(stack, err) < 0)
		return -1;
	result = stack_mount_mapped(stack, userns, err);
	stack_unmount(stack->scratchfd, "trees");
	stack_unmount(stack->scratchfd, "base");
	stack_unmount(stack->scratchfd, "own");
	return result;
}

int stack_wait_idle(const struct stack *stack, int timeout_ms, struct err *err)
{
	int64_t end = clock_monotonic_ms() + timeout_ms;

	while (stack_probe(stack, err) < 0) {
		if (err->os != EBUSY)
			return -1;
		if (clock_monotonic_ms() > end)
			return err_set(err, ERR_BUSY, "the machine's files are still in use");
		(void)poll(NULL, 0, STACK_POLL_MS);
	}
	return 0;
}
