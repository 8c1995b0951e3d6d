/* SPDX-License-Identifier: Apache-2.0 */
/* fsck_records.c - records of what is not whole, and of trees whose directories are gone. */
#include "bake/fsck_priv.h"

#include "bake/image.h"
#include "bake/roots.h"
#include "bake/tarball.h"
#include "layers/base/array.h"
#include "layers/blob.h"
#include "layers/draft.h"
#include "layers/failure.h"
#include "layers/step.h"
#include "layers/tree.h"
#include "registry/manifest.h"
#include "registry/tag.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define FSCK_RECORDS_MAX 1000 /* that cannot be read and are removed: more is no store */

struct records {
	struct fsck *fsck;
	struct meta *meta;
	char text[FSCK_TEXT_MAX]; /* what is wrong */
};

/* 1 it is there and whole; 0 it is not, and records->text says so; -1. */
static int records_has_blob(struct records *records, const char *what, const struct digest *digest,
			    struct err *err)
{
	const struct digest_set *damages = &records->fsck->findings.blobs;
	bool damaged = digest_set_has(damages, digest);
	char name[DIGEST_TEXT_MAX];
	struct digest id;
	int found = damaged ? 0 : blob_find_id(records->fsck->options->store, digest, &id, err);

	if (found == 1 && digest_set_has(damages, &id)) {
		damaged = true;
		found = 0;
	}
	if (found == 0)
		(void)snprintf(records->text, sizeof(records->text), "%s %s is %s", what,
			       digest_format(digest, name), damaged ? "damaged" : "missing");
	return found;
}

static int records_has_parts(struct records *records, const struct manifest *manifest,
			     struct err *err)
{
	int whole = records_has_blob(records, "its config", &manifest->config.digest, err);

	for (size_t i = 0; whole == 1 && i < manifest->layer_count; i++)
		whole = records_has_blob(records, "its layer", &manifest->layers[i].digest, err);
	return whole;
}

static int records_has_image(struct records *records, const struct digest *digest, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	int whole = records_has_blob(records, "its manifest", digest, err);

	if (whole != 1)
		return whole;
	if (blob_read_all(records->fsck->options->store, digest, &text, err) < 0)
		return -1;
	if (manifest_parse(buf_str(&text), &manifest, err) < 0)
		return 1; /* its bytes are those that were stored */
	return records_has_parts(records, &manifest, err);
}

static int records_is_whole(struct records *records, const struct root *root, struct err *err)
{
	int whole;

	switch (root->kind) {
	case ROOT_TAG:
		whole = records_has_blob(records, "its index", &root->digest, err);
		return whole == 1 ? records_has_image(records, &root->image, err) : whole;
	case ROOT_IMAGE:
		return records_has_image(records, &root->digest, err);
	case ROOT_STEP:
		return records_has_blob(records, "its layer", &root->digest, err);
	case ROOT_DRAFT:
		return records_has_blob(records, "what it names", &root->digest, err);
	case ROOT_BASE:
		break; /* asked for where it is needed */
	case ROOT_LOG:
		return records_has_blob(records, "its log", &root->digest, err);
	case ROOT_CONTEXT:
		return records_has_blob(records, "its tar", &root->digest, err);
	case ROOT_HELD:
		return records_has_blob(records, "what it holds", &root->digest, err);
	case ROOT_VARIANT:
		break; /* may outlive its blob */
	}
	return 1;
}

static int records_remove(struct records *records, const struct root *root, struct err *err)
{
	struct meta *meta = records->meta;

	switch (root->kind) {
	case ROOT_TAG:
		return tag_del(meta, root->name, err);
	case ROOT_IMAGE:
		return image_remove(meta, &root->digest, err);
	case ROOT_LOG:
		if (failure_remove(meta, &root->key, err) < 0)
			return -1;
		return step_remove(meta, &root->key, err);
	case ROOT_STEP:
		return step_remove(meta, &root->key, err);
	case ROOT_DRAFT:
		return draft_remove(meta, root->name, &root->key, err);
	case ROOT_BASE:
		break;
	case ROOT_CONTEXT:
		return tarball_forget(meta, &root->digest, err);
	case ROOT_HELD:
		return repository_del(meta, root->name, root->item->kind, &root->item->digest, err);
	case ROOT_VARIANT:
		break;
	}
	return 0;
}

static int records_judge(void *ctx, const struct root *root, struct err *err)
{
	static const enum fsck_kind kinds[] = {
		[ROOT_BASE] = FSCK_IMAGE,      [ROOT_DRAFT] = FSCK_STEP,
		[ROOT_TAG] = FSCK_TAG,         [ROOT_IMAGE] = FSCK_IMAGE,
		[ROOT_STEP] = FSCK_STEP,       [ROOT_LOG] = FSCK_LOG,
		[ROOT_CONTEXT] = FSCK_CONTEXT, [ROOT_VARIANT] = FSCK_RECORD,
		[ROOT_HELD] = FSCK_HELD,
	};
	struct records *records = ctx;
	struct fsck_finding finding = {.kind = kinds[root->kind], .text = records->text};
	bool by_key = root->kind == ROOT_STEP || root->kind == ROOT_LOG || root->kind == ROOT_DRAFT;
	auto_free char *name = strndup(root->name.ptr ? root->name.ptr : "", root->name.len);
	int whole = records_is_whole(records, root, err);

	if (!name)
		abort();
	if (whole != 0)
		return whole < 0 ? -1 : 0;
	finding.name = name;
	finding.digest = by_key ? root->key : root->kind == ROOT_TAG ? root->image : root->digest;
	fsck_find(records->fsck, &finding);
	if (fsck_mends(records->fsck) && records_remove(records, root, err) < 0)
		return -1;
	return 0;
}

/* Records that cannot be read end the walk; where they are removed it starts again. */
static int records_walk(struct records *records, struct err *err)
{
	const struct fsck_finding unreadable = {FSCK_RECORD, {0}, "", err->text};

	for (int i = 0; i < FSCK_RECORDS_MAX; i++) {
		if (roots_each(records->meta, records_judge, records, err) == 0)
			return 0;
		if (err->kind != ERR_CORRUPT && err->kind != ERR_INVALID)
			return -1;
		fsck_find(records->fsck, &unreadable);
		if (!fsck_mends(records->fsck))
			return 0;
		if (meta_drop_failed(records->meta, err) <= 0)
			return -1;
	}
	return -1;
}

int fsck_records(struct fsck *fsck, struct err *err)
{
	enum meta_mode mode = fsck_mends(fsck) ? META_WRITE : META_READ;
	AUTO(meta) struct meta *meta = NULL;
	struct records records = {.fsck = fsck};

	if (meta_begin(fsck->options->store, mode, &meta, err) < 0)
		return -1;
	records.meta = meta;
	if (records_walk(&records, err) < 0)
		return -1;
	return mode == META_WRITE ? meta_commit(steal_ptr(&meta), err) : 0;
}

struct lost_trees {
	struct store *store;
	struct digest *at; /* owned */
	size_t count;
};

static int lost_trees_consider(void *ctx, const struct digest *diff_id, int64_t at_ms,
			       struct err *err)
{
	struct lost_trees *lost = ctx;
	char hex[DIGEST_HEX_MAX];

	(void)at_ms;
	if (faccessat(store_dirfd(lost->store, STORE_TREES), digest_hex(diff_id, hex), F_OK,
		      AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno != ENOENT)
		return err_os(err, errno, "look for the tree %s", hex);
	if (array_make_room(&lost->at, sizeof(*lost->at), lost->count, DIGEST_SET_MAX, "lost trees",
			    err) < 0)
		return -1;
	lost->at[lost->count++] = *diff_id;
	return 0;
}

static int lost_trees_find(struct lost_trees *lost, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(lost->store, META_READ, &meta, err) < 0)
		return -1;
	return tree_each(meta, lost_trees_consider, lost, err);
}

int fsck_lost_trees(struct fsck *fsck, struct collector *collector, struct err *err)
{
	struct lost_trees lost = {.store = fsck->options->store};
	int result = lost_trees_find(&lost, err);

	for (size_t i = 0; result == 0 && i < lost.count; i++) {
		const struct fsck_finding finding = {FSCK_TREE_LOST, lost.at[i], "",
						     "is gone, and is made again when needed"};
		uint64_t bytes;

		fsck_find(fsck, &finding);
		if (fsck_mends(fsck) && collect_tree(collector, &lost.at[i], &bytes, err) < 0)
			result = -1;
	}
	free(lost.at);
	return result;
}
