/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/tree_check.h"

#include "layers/base/hold.h"
#include "layers/base/ring.h"
#include "layers/base/thread.h"
#include "layers/layer.h"
#include "layers/tree_compare_priv.h"
#include "layers/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CHECK_NAME "tree" /* in the staging directory */
#define CHECK_RING_BYTES ((size_t)1024 * 1024)

struct check {
	struct store *store;
	const struct tree_check_spec *spec;
	int treefd; /* the one to compare; held; -1 for none */
	struct staging staging;
	int freshfd; /* unpacked into; -1 for none */
	struct ring ring;
	struct sink plain;
	struct hasher hasher;
	pthread_t thread;
	bool unpacking;
	struct err why; /* of the thread */
};

static int check_take(struct sink *sink, struct str bytes, struct err *err)
{
	struct check *check = (struct check *)((char *)sink - offsetof(struct check, plain));

	if (cancel_check(check->spec->cancel, err) < 0)
		return -1;
	hasher_add(&check->hasher, bytes);
	return check->unpacking ? check->ring.sink.write(&check->ring.sink, bytes, err) : 0;
}

static void *check_unpack(void *ctx)
{
	struct check *check = ctx;
	const struct unpack_limits limits = {.max_bytes = UINT64_MAX}; /* as when it came */

	if (unpack_tar(check->freshfd, &check->ring.source, &limits, &check->why) < 0)
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

static int check_stage(struct check *check, struct err *err)
{
	if (staging_open(check->store, &check->staging, err) < 0)
		return -1;
	if (mkdirat(check->staging.fd, CHECK_NAME, 0755) < 0)
		return err_os(err, errno, "make a tree");
	check->freshfd = openat(check->staging.fd, CHECK_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (check->freshfd < 0 || fchmod(check->freshfd, 0755) < 0)
		return err_os(err, errno, "make a tree");
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

static int check_judge(struct check *check, enum tree_check *out, struct err *err)
{
	struct digest found;
	int same;

	if (check_read(check, err) < 0) {
		*out = TREE_CHECK_OTHER_TAR;
		return err->kind == ERR_CORRUPT ? 0 : -1;
	}
	hasher_final(&check->hasher, &found);
	*out = digest_equal(&found, &check->spec->diff_id) ? TREE_CHECK_SAME : TREE_CHECK_OTHER_TAR;
	if (*out == TREE_CHECK_OTHER_TAR || check->treefd < 0)
		return 0;
	same = tree_compare(check->treefd, check->freshfd, check->spec->cancel, err);
	if (same == 0)
		*out = TREE_CHECK_DIFFERS;
	return same < 0 ? -1 : 0;
}

static void check_done(struct check *check)
{
	auto_close_release(&check->treefd);
	auto_close_release(&check->freshfd);
	staging_close(&check->staging);
	ring_done(&check->ring);
	hasher_done(&check->hasher);
}

int tree_check(struct store *store, const struct tree_check_spec *spec, enum tree_check *out,
	       struct err *err)
{
	struct check check = {
		.store = store,
		.spec = spec,
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
	if (result == 0 && check.treefd >= 0)
		result = check_stage(&check, err);
	if (result == 0)
		result = check_judge(&check, out, err);
	check_done(&check);
	return result;
}
