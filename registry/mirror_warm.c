/* SPDX-License-Identifier: Apache-2.0 */
/* mirror_warm.c - an image fetched whole, before anybody asks for it. */
#include "registry/mirror_priv.h"

#include "layers/blob.h"
#include "registry/outline.h"
#include "registry/repository.h"

#include <time.h>

#define WARM_DEPTH_MAX 8 /* indexes in indexes */
#define WARM_LOOK_S 1    /* between two looks at the cancel */

struct warming {
	struct mirror *mirror;
	const struct mirror_warm_spec *spec;
	struct mirror_place place;
	struct mirror_warmed *result;
	struct mirror_task *tasks[MIRROR_FILLS_MAX]; /* that run; NULL where none does */
	size_t next;
};

static int mirror_warm_await_locked(struct mirror_task *task, const struct cancel *cancel,
				    struct err *err) REQUIRES(task->mirror->lock);
static int mirror_warm_await_locked(struct mirror_task *task, const struct cancel *cancel,
				    struct err *err)
{
	struct mirror *mirror = task->mirror;

	while (!mirror_task_is_done(task)) {
		struct timespec until;

		if (cancel_check(cancel, err) < 0 || cancel_check(&mirror->cancel, err) < 0)
			return -1;
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += WARM_LOOK_S;
		(void)pthread_cond_timedwait(&mirror->done, &mirror->lock.os, &until);
	}
	return 0;
}

/* Until it is done: its result. */
static int mirror_warm_await(struct mirror_task *task, const struct cancel *cancel, struct err *err)
{
	int result;

	lock_take(&task->mirror->lock);
	result = mirror_warm_await_locked(task, cancel, err);
	lock_drop(&task->mirror->lock);
	if (result == 0 && task->result < 0)
		*err = task->err;
	return result < 0 ? -1 : task->result;
}

static int mirror_warm_do(struct warming *warming, const struct mirror_wish *wish,
			  struct digest *out, struct err *err)
{
	AUTO(mirror_task) struct mirror_task *task = NULL;

	if (mirror_start(warming->mirror, wish, &task, err) < 0 ||
	    mirror_warm_await(task, warming->spec->cancel, err) < 0)
		return -1;
	*out = task->digest;
	return 0;
}

/* Blobs: several at one time */

/* 1 it is here, 0, -1. *out_stored: its bytes are. */
static int mirror_warm_holds(const struct warming *warming, enum repository_kind kind,
			     const struct digest *digest, bool *out_stored, struct err *err)
{
	struct store *store = warming->mirror->options.store;
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct blob_info info;
	int stored = blob_find(store, digest, &info, err);

	if (stored < 0 || meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	*out_stored = stored == 1;
	return stored == 0 ? 0
			   : repository_find(meta, str_of(warming->place.key), kind, digest, &item,
					     err);
}

static int mirror_warm_collect(struct warming *warming, struct mirror_task **slot, struct err *err)
{
	AUTO(mirror_task) struct mirror_task *task = *slot;

	*slot = NULL;
	if (!task)
		return 0;
	if (mirror_warm_await(task, warming->spec->cancel, err) < 0)
		return -1;
	if (task->fd < 0)
		return 0; /* it came for somebody else */
	warming->result->fetched++;
	warming->result->fetched_bytes += atomic_load(&task->size);
	return 0;
}

static int mirror_warm_blob(struct warming *warming, const struct digest *digest, struct err *err)
{
	char name[DIGEST_TEXT_MAX];
	struct mirror_wish wish = {.kind = MIRROR_CHECK,
				   .place = &warming->place,
				   .name = str_of(digest_format(digest, name)),
				   .digest = digest};
	struct mirror_task **slot = &warming->tasks[warming->next++ % MIRROR_FILLS_MAX];
	struct digest same;
	bool stored = false;
	int held = mirror_warm_holds(warming, REPOSITORY_BLOB, digest, &stored, err);

	if (held == 0 && stored) { /* the upstream's leave may be all that it lacks */
		if (mirror_warm_do(warming, &wish, &same, err) < 0 && err->kind != ERR_UNSUPPORTED)
			return -1;
		held = mirror_warm_holds(warming, REPOSITORY_BLOB, digest, &stored, err);
	}
	if (held < 0 || mirror_warm_collect(warming, slot, err) < 0)
		return -1;
	warming->result->blobs++;
	if (held == 1)
		return 0;
	wish.kind = MIRROR_FILL;
	return mirror_start(warming->mirror, &wish, slot, err);
}

/* Documents */

static int mirror_warm_document(struct warming *warming, const struct digest *digest, int depth,
				struct err *err);

static int mirror_warm_item(struct warming *warming, const struct outline_item *item, int depth,
			    struct err *err)
{
	switch (item->kind) {
	case OUTLINE_DOCUMENT:
		return mirror_warm_document(warming, &item->what.digest, depth + 1, err);
	case OUTLINE_BLOB:
		return mirror_warm_blob(warming, &item->what.digest, err);
	case OUTLINE_FOREIGN:
		break;
	}
	return 0;
}

static int mirror_warm_read(struct warming *warming, struct str text, int depth, struct err *err)
{
	auto_outline struct outline outline = {0};
	struct descriptor one;

	if (outline_parse(text, &outline, err) < 0)
		return -1;
	if (outline.index && !warming->spec->all_platforms) {
		if (manifest_choose(text, &warming->spec->platform, &one, err) < 0)
			return -1;
		return mirror_warm_document(warming, &one.digest, depth + 1, err);
	}
	for (size_t i = 0; i < outline.count; i++) {
		if (mirror_warm_item(warming, &outline.items[i], depth, err) < 0)
			return -1;
	}
	return 0;
}

/* A manifest or an index, and all that it names. */
static int mirror_warm_document(struct warming *warming, const struct digest *digest, int depth,
				struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	const struct mirror_wish wish = {.kind = MIRROR_MANIFEST,
					 .place = &warming->place,
					 .name = str_of(digest_format(digest, name)),
					 .digest = digest};
	struct digest same;
	bool stored;
	int held = mirror_warm_holds(warming, REPOSITORY_MANIFEST, digest, &stored, err);

	if (depth > WARM_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "more than %d indexes in one another",
			       WARM_DEPTH_MAX);
	if (held < 0 || (held == 0 && mirror_warm_do(warming, &wish, &same, err) < 0))
		return -1;
	warming->result->manifests++;
	if (blob_read_all(warming->mirror->options.store, digest, &text, err) < 0)
		return -1;
	return mirror_warm_read(warming, buf_str(&text), depth, err);
}

static int mirror_warm_all(struct warming *warming, const struct digest *root, struct err *err)
{
	int result = mirror_warm_document(warming, root, 0, err);
	struct err why;

	for (size_t i = 0; i < MIRROR_FILLS_MAX; i++) {
		if (mirror_warm_collect(warming, &warming->tasks[i], result == 0 ? err : &why) < 0)
			result = -1;
	}
	return result;
}

static int mirror_warm_resolve(struct warming *warming, const struct reference *reference,
			       struct digest *out, struct err *err)
{
	const struct mirror_wish wish = {.kind = MIRROR_TAG,
					 .place = &warming->place,
					 .name = reference->tag.len > 0 ? reference->tag
									: STR("latest")};

	*out = reference->digest;
	return reference->has_digest ? 0 : mirror_warm_do(warming, &wish, out, err);
}

int mirror_warm(struct mirror *mirror, struct str text, const struct mirror_warm_spec *spec,
		struct mirror_warmed *out, struct err *err)
{
	struct warming warming = {.mirror = mirror, .spec = spec, .result = out};
	struct mirror_upstream *upstream;
	struct reference reference;

	*out = (struct mirror_warmed){.manifests = 0};
	if (reference_parse(text, &reference, err) < 0)
		return -1;
	upstream = reference.kind == REFERENCE_REGISTRY
			   ? mirror_find_upstream(mirror, reference.host)
			   : NULL;
	if (!upstream)
		return err_set(err, ERR_INVALID,
			       "no upstream of this mirror has it: mirror.upstreams of the "
			       "daemon's configuration names them");
	if (mirror_place_make(upstream, reference.path, &warming.place, err) < 0 ||
	    mirror_warm_resolve(&warming, &reference, &out->digest, err) < 0)
		return -1;
	return mirror_warm_all(&warming, &out->digest, err);
}
