/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - an image into the store as it lies, to be handed on: each blob
 * verified and not unpacked, and no name at the end. Nothing else is checked,
 * so what no bake could stand on is carried, too: other platforms,
 * attestations, artifacts, layers that are not distributed (which stay where
 * they are). With it, if that is wanted, comes what is about the image, and what
 * is about that.
 */
#include "layers/base/array.h"
#include "layers/blob.h"
#include "layers/digest_set.h"
#include "registry/closure.h"
#include "registry/lanes_priv.h"
#include "registry/pull_priv.h"
#include "registry/referrers.h"

#include <inttypes.h>

#define GATHER_SUBJECTS_MAX ((size_t)10000)

struct gather_sink {
	struct sink sink;
	struct pull *pull;
	struct blob_writer *writer;
	uint64_t left;
};

static int gather_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct gather_sink *gather = container_of(sink, struct gather_sink, sink);

	if (bytes.len > gather->left)
		return err_set(err, ERR_CORRUPT, "more bytes than were announced");
	if (cancel_check(gather->pull->spec->cancel, err) < 0 ||
	    cancel_check(&gather->pull->stop, err) < 0)
		return -1;
	gather->left -= bytes.len;
	return blob_writer_add(gather->writer, bytes, err);
}

static int gather_fetch(struct pull *pull, size_t lane, const struct descriptor *blob,
			struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct gather_sink sink = {.sink = {gather_write}, .pull = pull, .left = blob->size};
	struct blob_info info;

	pull_tell(pull, PULL_LAYER, blob, 0);
	if (blob_writer_open(pull->store, &writer, err) < 0)
		return -1;
	blob_writer_hash_as(writer, blob->digest.algorithm);
	sink.writer = writer;
	if (pull->origin->blob(pull->origin, lane, blob, &sink.sink, err) < 0)
		return -1;
	if (sink.left > 0)
		return err_set(err, ERR_CORRUPT, "it ends early");
	if (blob_writer_commit(writer, &blob->digest, &info, err) < 0)
		return -1;
	pull_tell(pull, PULL_LAYER_DONE, blob, blob->size);
	return 0;
}

struct gather_work {
	struct pull *pull;
	const struct closure *closure;
};

static int gather_one(void *ctx, size_t lane, size_t job, struct err *err)
{
	const struct gather_work *work = ctx;
	const struct closure_item *item = &work->closure->items[job];
	char name[DIGEST_TEXT_MAX];
	struct blob_info info;
	int found;

	if (item->kind != CLOSURE_BLOB)
		return 0;
	found = blob_find(work->pull->store, &item->what.digest, &info, err);
	if (found == 1)
		pull_tell(work->pull, PULL_LAYER_HELD, &item->what, item->what.size);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (gather_fetch(work->pull, lane, &item->what, err) == 0)
		return 0;
	return err_ctx(err, "blob %s", digest_format(&item->what.digest, name));
}

static int gather_document(struct pull *pull, const struct digest *name, const struct buf *text,
			   size_t depth, struct digest *out, struct err *err);

static int gather_child(struct pull *pull, const struct closure_item *item, size_t depth,
			struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct digest stored;

	if (item->kind != CLOSURE_DOCUMENT)
		return pull_hold(pull, &item->what.digest, err);
	if (depth == PULL_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "indexes in indexes, more than %d deep",
			       PULL_DEPTH_MAX);
	if (pull_document(pull, &item->what.digest, &text, err) < 0)
		return -1;
	if (text.len != item->what.size)
		return err_set(err, ERR_CORRUPT, "manifest of %zu bytes, the index says %" PRIu64,
			       text.len, item->what.size);
	return gather_document(pull, &item->what.digest, &text, depth + 1, &stored, err);
}

/* All that a document names, then itself: a blob that is there leads to others that are. */
static int gather_document(struct pull *pull, const struct digest *name, const struct buf *text,
			   size_t depth, struct digest *out, struct err *err)
{
	auto_closure struct closure closure = {0};
	struct gather_work work = {pull, &closure};

	if (closure_parse(buf_str(text), &closure, err) < 0)
		return -1;
	for (size_t i = 0; i < closure.count; i++) {
		if (gather_child(pull, &closure.items[i], depth, err) < 0)
			return -1;
	}
	if (lanes_run(gather_one, &work, closure.count, &pull->stop, err) < 0)
		return -1;
	return blob_put_as(pull->store, buf_str(text), name, out, err);
}

/* Of an index the wanted platform's manifest takes its place, unless all are wanted. */
static int gather_choose(struct pull *pull, struct digest *name, struct buf *text, struct err *err)
{
	auto_buf struct buf chosen = BUF_INIT(MANIFEST_MAX);
	bool index;

	if (pull->spec->all_platforms)
		return 0;
	if (manifest_is_index(buf_str(text), &index, err) < 0)
		return -1;
	if (!index)
		return 0;
	if (pull_choose(pull, buf_str(text), name, &chosen, err) < 0)
		return -1;
	buf_clear(text);
	return buf_add(text, buf_str(&chosen), err);
}

/* Documents that are asked for what is about them, in the order in which they came. */
struct gather_subjects {
	struct pull *pull;
	struct digest_set met; /* by their sha256 */
	struct digest *at;     /* owned; by all their names */
	size_t count;
	size_t referrers;
};

static void auto_gather_subjects_release(struct gather_subjects *subjects)
{
	digest_set_done(&subjects->met);
	free(subjects->at);
}

static int gather_ask_about(struct gather_subjects *subjects, const struct digest *digest,
			    struct err *err)
{
	if (array_make_room(&subjects->at, sizeof(*subjects->at), subjects->count,
			    GATHER_SUBJECTS_MAX, "manifests with what is about them", err) < 0)
		return -1;
	subjects->at[subjects->count++] = *digest;
	return 0;
}

/* A document of the store. What is about it may name it by either digest. */
static int gather_meet(struct gather_subjects *subjects, const struct digest *name, struct err *err)
{
	struct digest id;
	int fresh = blob_find_id(subjects->pull->store, name, &id, err);

	if (fresh == 1)
		fresh = digest_set_add(&subjects->met, &id, err);
	if (fresh <= 0)
		return fresh;
	if (gather_ask_about(subjects, name, err) < 0)
		return -1;
	return digest_equal(name, &id) ? 0 : gather_ask_about(subjects, &id, err);
}

/* A document of the store, and those that it names. */
static int gather_meet_all(struct gather_subjects *subjects, const struct digest *name,
			   struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_closure struct closure closure = {0};

	if (gather_meet(subjects, name, err) < 0 ||
	    blob_read_all(subjects->pull->store, name, &text, err) < 0 ||
	    closure_parse(buf_str(&text), &closure, err) < 0)
		return -1;
	for (size_t i = 0; i < closure.count; i++) {
		if (closure.items[i].kind == CLOSURE_DOCUMENT &&
		    gather_meet_all(subjects, &closure.items[i].what.digest, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether a document is here and was met: 1, 0, -1. */
static int gather_has_met(const struct gather_subjects *subjects, const struct digest *name,
			  struct err *err)
{
	struct digest id;
	int found = blob_find_id(subjects->pull->store, name, &id, err);

	return found == 1 ? digest_set_has(&subjects->met, &id) : found;
}

/* A referrers_remote_fn. */
static int gather_referrer(void *ctx, const struct digest *name, struct err *err)
{
	struct gather_subjects *subjects = ctx;
	struct pull *pull = subjects->pull;
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct descriptor self = {0};
	int met = gather_has_met(subjects, name, err);

	if (met != 0)
		return met < 0 ? -1 : 0;
	if (++subjects->referrers > REFERRERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d manifests are about it",
			       REFERRERS_MAX);
	if (pull_document(pull, name, &text, err) < 0 ||
	    gather_document(pull, name, &text, 0, &self.digest, err) < 0 ||
	    gather_meet_all(subjects, name, err) < 0)
		return -1;
	pull_tell(pull, PULL_REFERRER, &self, 0);
	return 0;
}

static int gather_referrers(struct pull *pull, const struct digest *image, struct err *err)
{
	AUTO(gather_subjects) struct gather_subjects subjects = {.pull = pull};

	if (!pull->origin->referrers)
		return err_set(err, ERR_UNSUPPORTED, "only registries list what is about an image");
	if (gather_meet_all(&subjects, image, err) < 0)
		return -1;
	for (size_t i = 0; i < subjects.count; i++) {
		const struct digest subject = subjects.at[i]; /* the array may move */

		if (pull->origin->referrers(pull->origin, &subject, gather_referrer, &subjects,
					    err) < 0)
			return -1;
	}
	return 0;
}

int gather_image(struct pull *pull, struct tag *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct digest name;
	struct digest digest;
	struct descriptor self = {0};

	if (pull_target(pull, &name, &text, err) < 0 || gather_choose(pull, &name, &text, err) < 0)
		return -1;
	digest_of(buf_str(&text), &self.digest);
	self.size = text.len;
	pull_tell(pull, PULL_RESOLVED, &self, self.size);
	if (gather_document(pull, &name, &text, 0, &digest, err) < 0 ||
	    (pull->spec->referrers && gather_referrers(pull, &name, err) < 0))
		return -1;
	*out = (struct tag){.target = digest, .manifest = digest};
	return 0;
}
