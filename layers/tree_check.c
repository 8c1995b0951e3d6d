/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_check.c - a cheap comparison first, then a certain one.
 *
 * 	1 outline  in a tmpfs of our own: files are holes, and their bytes are
 * 	           compared while they come; says "the same", or nothing
 * 	2 whole    in the staging directory, and both are walked and read: of a
 * 	           tree that differs, of a tar that has a name twice, of one of
 * 	           more entries than we take memory for
 */
#include "layers/tree_check.h"

#include "layers/base/hold.h"
#include "layers/base/ring.h"
#include "layers/base/thread.h"
#include "layers/layer.h"
#include "layers/trash_priv.h"
#include "layers/tree_compare_priv.h"
#include "layers/unpack_priv.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

#define CHECK_NAME "tree" /* in the staging directory, or in memory */
#define CHECK_RING_BYTES ((size_t)1024 * 1024)
#define CHECK_OUTLINE_FILES "131072" /* about a KiB each, of the kernel */
#define CHECK_OUTLINE_BYTES "64M"    /* directories and attributes */

struct check {
	struct store *store;
	const struct tree_check_spec *spec;
	int treefd; /* the one to compare; held; -1 for none */
	bool outline;
	struct twin twin; /* of an outline */
	struct staging staging;
	int freshfd; /* unpacked into; -1 for none */
	struct ring ring;
	struct sink plain;
	struct hasher hasher;
	pthread_t thread;
	bool unpacking;
	struct err why; /* of the thread */
	struct tree_check_result result;
};

static int check_take(struct sink *sink, struct str bytes, struct err *err)
{
	struct check *check = (struct check *)((char *)sink - offsetof(struct check, plain));

	if (cancel_check(check->spec->cancel, err) < 0)
		return -1;
	hasher_add(&check->hasher, bytes);
	check->result.tar_bytes += bytes.len;
	return check->unpacking ? check->ring.sink.write(&check->ring.sink, bytes, err) : 0;
}

static void *check_unpack(void *ctx)
{
	struct check *check = ctx;
	const struct unpack_limits limits = {.max_bytes = UINT64_MAX}; /* as when it came */

	int result = check->outline ? unpack_outline(check->freshfd, &check->ring.source, &limits,
						     &check->twin, &check->why)
				    : unpack_tar(check->freshfd, &check->ring.source, &limits,
						 &check->why);

	if (result < 0)
		ring_abandon(&check->ring, &check->why);
	return NULL;
}

/* The tree, held so that it stays. Held by another, it is being made or removed: no tree. */
static int check_open_tree(struct check *check, struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	int treesfd = store_dirfd(check->store, STORE_TREES);

	if (!check->spec->tree)
		return 0;
	(void)digest_hex(&check->spec->diff_id, hex);
	return hold_share(treesfd, hex, &check->treefd, err) < 0 ? -1 : 0;
}

static int check_configure(int fsfd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_STRING, key, value, 0);
}

static int check_make_tree(struct check *check, int dirfd, struct err *err)
{
	if (mkdirat(dirfd, CHECK_NAME, 0755) < 0)
		return err_os(err, errno, "make a tree");
	check->freshfd = openat(dirfd, CHECK_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (check->freshfd < 0 || fchmod(check->freshfd, 0755) < 0)
		return err_os(err, errno, "make a tree");
	return 0;
}

/* In memory, and gone with its last descriptor. */
static int check_make_outline(struct check *check, struct err *err)
{
	auto_close int fsfd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	auto_close int rootfd = -1;

	if (fsfd < 0 || check_configure(fsfd, "nr_inodes", CHECK_OUTLINE_FILES) < 0 ||
	    check_configure(fsfd, "size", CHECK_OUTLINE_BYTES) < 0 ||
	    syscall(SYS_fsconfig, fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_os(err, errno, "tmpfs");
	rootfd = (int)syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, 0);
	if (rootfd < 0)
		return err_os(err, errno, "tmpfs");
	return check_make_tree(check, rootfd, err);
}

static int check_make_whole(struct check *check, struct err *err)
{
	if (staging_open(check->store, &check->staging, err) < 0)
		return -1;
	return check_make_tree(check, check->staging.fd, err);
}

static int check_start(struct check *check, struct err *err)
{
	int result = check->outline ? check_make_outline(check, err) : check_make_whole(check, err);

	if (result < 0)
		return -1;
	if (thread_start(&check->thread, check_unpack, check, err) < 0)
		return -1;
	check->unpacking = true;
	return 0;
}

/* The whole tar through the hasher and, where there is a tree, the unpacker. */
static int check_read(struct check *check, struct err *err)
{
	int result = layer_read(check->store, &check->spec->blob, UINT64_MAX, &check->plain, err);

	if (!check->unpacking)
		return result;
	if (result == 0)
		ring_finish(&check->ring);
	else
		ring_fail(&check->ring, err);
	(void)pthread_join(check->thread, NULL);
	check->unpacking = false;
	if (check->why.kind == ERR_NONE)
		return result;
	if (result == 0 || err->kind != ERR_CORRUPT)
		*err = check->why;
	return -1;
}

static int check_compare(struct check *check, struct err *err)
{
	const struct tree_compare_spec spec = {
		.a = check->treefd,
		.b = check->freshfd,
		.twin = check->outline ? &check->twin : NULL,
		.cancel = check->spec->cancel,
	};

	twin_sort(&check->twin);
	check->result.tree_bytes += check->twin.bytes;
	return check->twin.differs ? 0 : tree_compare(&spec, &check->result.tree_bytes, err);
}

static int check_judge(struct check *check, struct err *err)
{
	struct digest found;
	int same;

	check->result.found = TREE_CHECK_OTHER_TAR;
	if (check_read(check, err) < 0)
		return err->kind == ERR_CORRUPT ? 0 : -1;
	hasher_final(&check->hasher, &found);
	if (!digest_equal(&found, &check->spec->diff_id))
		return 0;
	check->result.found = TREE_CHECK_SAME;
	if (check->treefd < 0)
		return 0;
	same = check_compare(check, err);
	if (same == 0)
		check->result.found = TREE_CHECK_DIFFERS;
	return same < 0 ? -1 : 0;
}

static void check_done(struct check *check)
{
	auto_close_release(&check->treefd);
	auto_close_release(&check->freshfd);
	staging_close(&check->staging);
	twin_done(&check->twin);
	ring_done(&check->ring);
	hasher_done(&check->hasher);
}

static int check_run(struct store *store, const struct tree_check_spec *spec, bool outline,
		     struct tree_check_result *out, struct err *err)
{
	struct check check = {
		.store = store,
		.spec = spec,
		.outline = outline,
		.treefd = -1,
		.freshfd = -1,
		.staging = STAGING_INIT,
		.plain.write = check_take,
	};
	int result = ring_init(&check.ring, CHECK_RING_BYTES, err);

	if (result < 0)
		return -1;
	hasher_init(&check.hasher);
	result = check_open_tree(&check, err);
	twin_init(&check.twin, check.treefd);
	if (result == 0 && check.treefd >= 0)
		result = check_start(&check, err);
	if (result == 0)
		result = check_judge(&check, err);
	if (result == 0)
		*out = check.result;
	check_done(&check);
	return result;
}

int tree_check(struct store *store, const struct tree_check_spec *spec,
	       struct tree_check_result *out, struct err *err)
{
	struct tree_check_result result;
	struct err ignored;
	int whole;

	if (check_run(store, spec, true, &result, &ignored) == 0 &&
	    result.found == TREE_CHECK_SAME) {
		*out = result;
		return 0;
	}
	if (cancel_check(spec->cancel, err) < 0)
		return -1;
	whole = check_run(store, spec, false, out, err);
	if (trash_empty(store, TRASH_ALL, spec->cancel, &ignored) < 0)
		log_debug("trash left to a sweep why=\"%s\"", ignored.text);
	return whole;
}
