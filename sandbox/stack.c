/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/stack_priv.h"

#include "layers/base/clock.h"
#include "layers/base/room.h"
#include "layers/implied.h"
#include "sandbox/ovl_priv.h"
#include "sandbox/userns_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define STACK_POLL_MS 2
#define STACK_OPAQUE "trusted.overlay.opaque"

static int stack_open_dir(int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_os(err, errno, "open layer %s", name) : fd;
}

static int stack_add_layer(struct ovl_layers *layers, int dirfd, const char *name, struct err *err)
{
	int fd;

	if (layers->count == OVL_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "more than the %d layers that the kernel stacks",
			       OVL_LAYERS_MAX);
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

static bool stack_has(const struct digest *diff_ids, size_t count, const struct digest *wanted)
{
	for (size_t i = 0; i < count; i++) {
		if (digest_equal(&diff_ids[i], wanted))
			return true;
	}
	return false;
}

size_t stack_distinct(struct digest *diff_ids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!stack_has(diff_ids + i + 1, count - i - 1, &diff_ids[i]))
			diff_ids[kept++] = diff_ids[i];
	}
	return kept;
}

const char *stack_correction_name(size_t i, char text[static STACK_NAME_MAX])
{
	(void)snprintf(text, STACK_NAME_MAX, "correction%zu", i);
	return text;
}

int stack_correct(const struct stack *stack, struct err *err)
{
	auto_implied_seen struct implied_seen seen = {0};
	struct implied_stack trees = {
		.treesfd = stack->treesfd, .diff_ids = stack->diff_ids, .seen = &seen};
	char name[STACK_NAME_MAX];

	if (stack_find_lowest(stack, &trees.lowest, err) < 0)
		return -1;
	for (size_t i = stack->diff_id_count; i > trees.lowest + 1; i--) {
		if (implied_correct(&trees, i - 1, stack->ownfd, stack_correction_name(i - 1, name),
				    err) < 0)
			return err_ctx(err, "layer %zu", i);
	}
	return 0;
}

/* Add the correction of tree i, if there is one. */
static int stack_add_correction(struct ovl_layers *layers, int ownfd, size_t i, struct err *err)
{
	char name[STACK_NAME_MAX];

	if (faccessat(ownfd, stack_correction_name(i, name), F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look for %s", name);
	return stack_add_layer(layers, ownfd, name, err);
}

/* ownfd and treesfd are the stack's, or mapped clones of them. */
static int stack_add_trees(struct ovl_layers *layers, const struct stack *stack, int ownfd,
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

static int stack_check_room(const struct stack *stack, struct err *err)
{
	return room_check(stack->ownfd, STACK_ROOM_BYTES, err);
}

static void stack_unmount(int scratchfd, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", scratchfd, name);
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* Mount layers at scratchfd/name. */
static int stack_attach(const struct stack *stack, const struct ovl_layers *layers, uid_t id,
			const char *name, struct err *err)
{
	auto_close int targetfd = -1;

	if (mkdirat(stack->scratchfd, name, 0755) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s", name);
	targetfd = stack_open_dir(stack->scratchfd, name, err);
	if (targetfd < 0)
		return -1;
	return ovl_mount(layers, id, targetfd, stack->by_name, err);
}

/*
 * Where overlayfs cannot make what it needs in `work`, it mounts read-only and
 * tells its log alone. No step may run on that.
 */
static int stack_check_writable(const struct stack *stack, struct err *err)
{
	auto_close int fd = stack_open_dir(stack->scratchfd, "root", err);
	struct statvfs fs;

	if (fd < 0)
		return -1;
	if (fstatvfs(fd, &fs) < 0)
		return err_os(err, errno, "inspect the machine's root");
	if (!(fs.f_flag & ST_RDONLY))
		return 0;
	auto_close_release(&fd);
	fd = -1;
	stack_unmount(stack->scratchfd, "root");
	if (stack_check_room(stack, err) < 0)
		return -1;
	return err_set(err, ERR_UNAVAILABLE,
		       "overlay: it can only be mounted read-only; the kernel's log says why");
}

/* Everything of stack_mount() between making the mapped clones and dropping them. */
static int stack_mount_mapped(const struct stack *stack, int userns, struct err *err)
{
	AUTO(ovl_layers) struct ovl_layers layers = OVL_LAYERS_INIT;
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
	if (stack->has_targets && stack_add_layer(&layers, ownfd, "targets", err) < 0)
		return -1;
	layers.upperfd = stack_open_dir(ownfd, "up", err);
	if (layers.upperfd < 0)
		return -1;
	layers.workfd = stack_open_dir(ownfd, "work", err);
	if (layers.workfd < 0)
		return -1;
	if (stack_attach(stack, &layers, stack->first_id, "root", err) < 0)
		return -1;
	return stack_check_writable(stack, err);
}

/* The stack's descriptors, or mapped clones of them; `id` is theirs. */
struct stack_sight {
	int ownfd;
	int basefd;
	int treesfd;
	uid_t id;
};

static int stack_view_sight(const struct stack *stack, const struct stack_sight *sight, int *out_fd,
			    struct err *err)
{
	AUTO(ovl_layers) struct ovl_layers layers = OVL_LAYERS_INIT;
	int fd;

	/* A view has two layers at least, and whiteouts of the lowest tree must not show. */
	if (stack_add_layer(&layers, sight->basefd, "dev", err) < 0 ||
	    stack_add_trees(&layers, stack, sight->ownfd, sight->treesfd, err) < 0 ||
	    stack_attach(stack, &layers, sight->id, "view", err) < 0)
		return -1;
	fd = openat(stack->scratchfd, "view", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_os(err, errno, "open the layers below");
	stack_unmount(stack->scratchfd, "view");
	*out_fd = fd;
	return 0;
}

int stack_view(const struct stack *stack, int *out_fd, struct err *err)
{
	const struct stack_sight sight = {stack->ownfd, stack->basefd, stack->treesfd, 0};

	return stack_view_sight(stack, &sight, out_fd, err);
}

static int stack_view_clones(const struct stack *stack, int userns, int *out_fd, struct err *err)
{
	auto_close int ownfd = stack_clone(stack->ownfd, userns, stack->scratchfd, "own", err);
	auto_close int basefd = -1;
	auto_close int treesfd = -1;
	struct stack_sight sight = {.ownfd = ownfd, .id = stack->first_id};

	if (ownfd < 0)
		return -1;
	sight.basefd = basefd = stack_clone(stack->basefd, userns, stack->scratchfd, "base", err);
	if (basefd < 0)
		return -1;
	sight.treesfd = treesfd =
		stack_clone(stack->treesfd, userns, stack->scratchfd, "trees", err);
	return treesfd < 0 ? -1 : stack_view_sight(stack, &sight, out_fd, err);
}

static void stack_unmount_clones(const struct stack *stack)
{
	stack_unmount(stack->scratchfd, "trees");
	stack_unmount(stack->scratchfd, "base");
	stack_unmount(stack->scratchfd, "own");
}

int stack_view_mapped(const struct stack *stack, int *out_fd, struct err *err)
{
	auto_close int userns = userns_open(stack->first_id, err);
	int result;

	if (userns < 0)
		return -1;
	result = stack_view_clones(stack, userns, out_fd, err);
	stack_unmount_clones(stack);
	return result;
}

/* ERR_BUSY where a mount uses `up`; it is left as it was. */
static int stack_probe(const struct stack *stack, struct err *err)
{
	AUTO(ovl_layers) struct ovl_layers layers = OVL_LAYERS_INIT;
	auto_close int upfd = -1;

	if (mkdirat(stack->ownfd, "probe", 0700) < 0 && errno != EEXIST)
		return err_os(err, errno, "make probe");
	if (stack_add_layer(&layers, stack->basefd, ".", err) < 0)
		return -1;
	layers.upperfd = stack_open_dir(stack->ownfd, "up", err);
	layers.workfd = layers.upperfd < 0 ? -1 : stack_open_dir(stack->ownfd, "probe", err);
	if (layers.workfd < 0 || ovl_probe(&layers, err) < 0)
		return -1;
	upfd = openat(stack->ownfd, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upfd < 0)
		return err_os(err, errno, "open up");
	(void)fremovexattr(upfd, "trusted.overlay.origin");
	return 0;
}

/*
 * Overlayfs only warns where two mounts write to one upper directory. So it is
 * asked first, with our lock on what holds the directory: nobody can mount it
 * between question and mount.
 */
static int stack_seize(const struct stack *stack, struct err *err)
{
	if (flock(stack->ownfd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, ERR_BUSY, "the machine's files are another's")
			       : err_os(err, errno, "lock the machine's files");
	return stack_probe(stack, err);
}

int stack_mount(const struct stack *stack, struct err *err)
{
	auto_close int userns = userns_open(stack->first_id, err);
	int result;

	if (userns < 0 || stack_seize(stack, err) < 0)
		return -1;
	result = stack_mount_mapped(stack, userns, err);
	stack_unmount_clones(stack);
	return result;
}

int stack_wait_idle(const struct stack *stack, int timeout_ms, struct err *err)
{
	int64_t end = clock_monotonic_ms() + timeout_ms;

	while (stack_probe(stack, err) < 0) {
		if (err->kind != ERR_BUSY || clock_monotonic_ms() > end)
			return -1;
		(void)poll(NULL, 0, STACK_POLL_MS);
	}
	return 0;
}
