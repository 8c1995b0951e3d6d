/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/outgrown.h"

#include "layers/base/array.h"
#include "layers/use.h"
#include "registry/document.h"
#include "registry/tag.h"

#include <stdio.h>

#define OUTGROWN_ITEMS_MAX ((size_t)1 << 22) /* of one repository */
#define OUTGROWN_BATCH 256                   /* records of one transaction, while others wait */

/* What is remembered of a record. */
struct outgrown_item {
	enum repository_kind kind;
	struct digest digest;
};

/* One repository. */
struct outgrown {
	const struct outgrown_options *options;
	char name[GRAMMAR_NAME_MAX + 1];
	struct outgrown_item *items; /* owned: those that may go */
	size_t count;
	struct digest *roots; /* owned: what leads to others, and was not followed yet */
	size_t root_count;
	struct digest_set followed; /* roots */
	struct digest_set kept;     /* what they led to */
};

static void outgrown_done(struct outgrown *outgrown)
{
	free(outgrown->items);
	free(outgrown->roots);
	digest_set_done(&outgrown->followed);
	digest_set_done(&outgrown->kept);
}

void outgrown_name(struct str repository, const struct repository_item *item, struct digest *out)
{
	AUTO(hasher) struct hasher hasher = {0};
	char text[DIGEST_TEXT_MAX];

	hasher_init(&hasher);
	hasher_add(&hasher, repository);
	hasher_add(&hasher, item->kind == REPOSITORY_BLOB ? STR("!b!") : STR("!m!"));
	hasher_add(&hasher, str_of(digest_format(&item->digest, text)));
	hasher_final(&hasher, out);
}

/* Somebody has put it or asked for it within the time that he may rely on it. 1, 0, -1. */
static int outgrown_is_relied_on(const struct outgrown_options *options,
				 const struct repository_item *item, struct err *err)
{
	int64_t at_ms = item->source == REPOSITORY_PUSHED ? item->at_ms : 0;
	int64_t used_ms = 0;

	if (use_find(options->store, &item->blob, &used_ms, err) < 0)
		return -1;
	return options->now_ms - (used_ms > at_ms ? used_ms : at_ms) < REPOSITORY_LEASE_MS;
}

static bool outgrown_is_root(const struct repository_item *item)
{
	return item->kind == REPOSITORY_MANIFEST && item->source != REPOSITORY_BAKED;
}

static int outgrown_add_root(struct outgrown *outgrown, const struct digest *root, struct err *err)
{
	int fresh = digest_set_add(&outgrown->followed, root, err);

	if (fresh <= 0)
		return fresh;
	outgrown->roots =
		array_grow(outgrown->roots, outgrown->root_count, sizeof(*outgrown->roots));
	outgrown->roots[outgrown->root_count++] = *root;
	return 0;
}

static int outgrown_add_tag(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	struct outgrown *outgrown = ctx;
	const struct outgrown_options *options = outgrown->options;

	if (options->is_gone && options->is_gone(options->ctx, reference))
		return 0;
	if (outgrown_add_root(outgrown, &tag->target, err) < 0)
		return -1;
	return outgrown_add_root(outgrown, &tag->manifest, err);
}

static int outgrown_add_pushed(void *ctx, struct str repository, const struct repository_item *item,
			       struct err *err)
{
	(void)repository; /* the shape of repository_each_fn */
	return outgrown_is_root(item) ? outgrown_add_root(ctx, &item->blob, err) : 0;
}

/* Those roots that were not there before. */
static int outgrown_read_roots(struct outgrown *outgrown, struct meta *meta, struct err *err)
{
	struct str name = str_of(outgrown->name);

	outgrown->root_count = 0;
	if (tag_each_in(meta, name, outgrown_add_tag, outgrown, err) < 0)
		return -1;
	return repository_each_in(meta, name, REPOSITORY_MANIFEST, outgrown_add_pushed, outgrown,
				  err);
}

static int outgrown_keep(void *ctx, const struct reach_item *item, struct err *err)
{
	struct outgrown *outgrown = ctx;

	return digest_set_add(&outgrown->kept, &item->digest, err) < 0 ? -1 : 0;
}

static int outgrown_follow(struct outgrown *outgrown, struct err *err)
{
	AUTO(reach) struct reach *reach = NULL;

	if (outgrown->root_count == 0)
		return 0;
	if (reach_open(outgrown->options->store, document_names, &reach, err) < 0)
		return -1;
	for (size_t i = 0; i < outgrown->root_count; i++) {
		if (cancel_check(outgrown->options->cancel, err) < 0 ||
		    reach_from(reach, &outgrown->roots[i], outgrown_keep, outgrown, err) < 0)
			return -1;
	}
	return 0;
}

static int outgrown_consider(void *ctx, struct str repository, const struct repository_item *item,
			     struct err *err)
{
	struct outgrown *outgrown = ctx;
	int relied_on;

	(void)repository; /* the shape of repository_each_fn */
	if (item->source == REPOSITORY_MIRRORED || outgrown_is_root(item))
		return 0;
	relied_on = outgrown_is_relied_on(outgrown->options, item, err);
	if (relied_on != 0)
		return relied_on < 0 ? -1 : 0;
	if (array_make_room(&outgrown->items, sizeof(*outgrown->items), outgrown->count,
			    OUTGROWN_ITEMS_MAX, "records of one repository", err) < 0)
		return -1;
	outgrown->items[outgrown->count++] = (struct outgrown_item){item->kind, item->digest};
	return 0;
}

/* Whether a record still is one that goes, as of this transaction. 1, 0, -1. */
static int outgrown_judge(const struct outgrown *outgrown, struct meta *meta,
			  const struct outgrown_item *wanted, struct repository_item *out,
			  struct err *err)
{
	const struct outgrown_options *options = outgrown->options;
	int found = repository_find(meta, str_of(outgrown->name), wanted->kind, &wanted->digest,
				    out, err);

	if (found <= 0)
		return found;
	if (out->source == REPOSITORY_MIRRORED || outgrown_is_root(out) ||
	    digest_set_has(&outgrown->kept, &out->blob) ||
	    collect_is_leased(options->collector, &out->blob))
		return 0;
	found = outgrown_is_relied_on(options, out, err);
	return found < 0 ? -1 : !found;
}

/* Leave only those that nothing leads to. */
static int outgrown_narrow(struct outgrown *outgrown, struct meta *meta, struct err *err)
{
	size_t left = 0;

	for (size_t i = 0; i < outgrown->count; i++) {
		struct repository_item item;
		int goes = outgrown_judge(outgrown, meta, &outgrown->items[i], &item, err);

		if (goes < 0)
			return -1;
		if (goes)
			outgrown->items[left++] = outgrown->items[i];
	}
	outgrown->count = left;
	return 0;
}

static int outgrown_read(struct outgrown *outgrown, struct err *err)
{
	struct str name = str_of(outgrown->name);
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(outgrown->options->store, META_READ, &meta, err) < 0 ||
	    repository_each_in(meta, name, REPOSITORY_BLOB, outgrown_consider, outgrown, err) < 0 ||
	    repository_each_in(meta, name, REPOSITORY_MANIFEST, outgrown_consider, outgrown, err) <
		    0)
		return -1;
	if (outgrown->count == 0)
		return 0;
	if (outgrown_read_roots(outgrown, meta, err) < 0 || outgrown_follow(outgrown, err) < 0)
		return -1;
	return outgrown_narrow(outgrown, meta, err);
}

static int outgrown_remove_some(struct outgrown *outgrown, struct meta *meta, size_t *at,
				uint64_t *count, struct err *err)
{
	if (outgrown_read_roots(outgrown, meta, err) < 0 || outgrown_follow(outgrown, err) < 0)
		return -1;
	for (int left = OUTGROWN_BATCH; left > 0 && *at < outgrown->count; left--) {
		const struct outgrown_item *wanted = &outgrown->items[(*at)++];
		struct repository_item item;
		int goes = outgrown_judge(outgrown, meta, wanted, &item, err);

		if (goes < 0 || (goes == 1 && repository_del(meta, str_of(outgrown->name),
							     item.kind, &item.digest, err) < 0))
			return -1;
		if (goes == 1 && item.kind == REPOSITORY_BLOB) /* an image's is of its bakes */
			use_forget(outgrown->options->store, &item.blob);
		*count += goes == 1;
	}
	return 0;
}

static int outgrown_remove_batch(struct outgrown *outgrown, size_t *at, uint64_t *count,
				 struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct collector *collector = outgrown->options->collector;
	int result = collect_exclude(collector, err);

	if (result == 0)
		result = meta_begin(outgrown->options->store, META_WRITE, &meta, err);
	if (result == 0)
		result = outgrown_remove_some(outgrown, meta, at, count, err);
	if (result == 0)
		result = meta_commit(steal_ptr(&meta), err);
	collect_admit(collector);
	return result;
}

static int outgrown_remove(struct outgrown *outgrown, uint64_t *count, struct err *err)
{
	for (size_t at = 0; at < outgrown->count;) {
		if (cancel_check(outgrown->options->cancel, err) < 0 ||
		    outgrown_remove_batch(outgrown, &at, count, err) < 0)
			return -1;
	}
	return 0;
}

static int outgrown_tell(const struct outgrown *outgrown, struct digest_set *out, uint64_t *count,
			 struct err *err)
{
	for (size_t i = 0; i < outgrown->count; i++) {
		const struct repository_item item = {.kind = outgrown->items[i].kind,
						     .digest = outgrown->items[i].digest};
		struct digest name;

		outgrown_name(str_of(outgrown->name), &item, &name);
		if (digest_set_add(out, &name, err) < 0)
			return -1;
		++*count;
	}
	return 0;
}

/* The next repository after this one, in place. 1, 0 at the end, -1. */
static int outgrown_next(struct outgrown *outgrown, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(outgrown->options->store, META_READ, &meta, err) < 0)
		return -1;
	return repository_next_name(meta, outgrown->name, err);
}

int outgrown_sweep(const struct outgrown_options *options, struct digest_set *out,
		   uint64_t *out_count, struct err *err)
{
	char name[GRAMMAR_NAME_MAX + 1] = "";
	int more = 1;

	while (more == 1) {
		struct outgrown outgrown = {.options = options};

		memcpy(outgrown.name, name, sizeof(name));
		more = outgrown_next(&outgrown, err);
		memcpy(name, outgrown.name, sizeof(name));
		if (more == 1 && outgrown_read(&outgrown, err) < 0)
			more = -1;
		if (more == 1 &&
		    (options->dry_run ? outgrown_tell(&outgrown, out, out_count, err)
				      : outgrown_remove(&outgrown, out_count, err)) < 0)
			more = -1;
		outgrown_done(&outgrown);
	}
	return more;
}
