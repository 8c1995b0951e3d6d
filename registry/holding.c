/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/holding.h"

#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/digest_set.h"
#include "registry/outline.h"

#include <stdio.h>

bool holding_split(struct str reference, struct str *out_repository, struct str *out_tag)
{
	struct str rest = str_starts(reference, STR(HOLDING_HOST "/"))
				  ? str_skip(reference, sizeof(HOLDING_HOST "/") - 1)
				  : STR("");
	const char *colon = rest.len > 0 ? memrchr(rest.ptr, ':', rest.len) : NULL;

	if (!colon || memchr(rest.ptr, '@', rest.len))
		return false;
	*out_repository = (struct str){rest.ptr, (size_t)(colon - rest.ptr)};
	*out_tag = str_skip(rest, out_repository->len + 1);
	return out_repository->len > 0 && out_repository->len <= GRAMMAR_NAME_MAX;
}

bool holding_join(struct str repository, struct str tag, char out[static HOLDING_REFERENCE_MAX])
{
	int n = snprintf(out, HOLDING_REFERENCE_MAX, HOLDING_HOST "/" STR_FMT ":" STR_FMT,
			 STR_ARG(repository), STR_ARG(tag));

	return n > 0 && (size_t)n < HOLDING_REFERENCE_MAX;
}

/* A document that is still to be read. */
struct holding_document {
	struct digest digest;
	char media_type[REPOSITORY_TYPE_MAX]; /* as whoever names it says */
};

enum holding_way { HOLDING_PUT, HOLDING_RELEASE, HOLDING_CHECK };

struct holding {
	struct meta *meta;
	struct str repository;
	int64_t now_ms;
	enum holding_way way;
	struct digest_set seen[DIGEST_SHA512 + 1]; /* by their sha256, for each kind of name */
	struct holding_document *waiting;          /* owned */
	size_t count;
	size_t total;
};

static void holding_done(struct holding *holding)
{
	for (size_t i = 0; i < sizeof(holding->seen) / sizeof(holding->seen[0]); i++)
		digest_set_done(&holding->seen[i]);
	free(holding->waiting);
}

static void holding_set_type(char out[static REPOSITORY_TYPE_MAX], struct str type)
{
	if (type.len < REPOSITORY_TYPE_MAX)
		(void)snprintf(out, REPOSITORY_TYPE_MAX, STR_FMT, STR_ARG(type));
	else
		out[0] = '\0';
}

static int holding_await(struct holding *holding, const struct digest *digest, struct str type,
			 struct err *err)
{
	if (holding->total++ >= HOLDING_DOCUMENTS_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu documents of one image",
			       HOLDING_DOCUMENTS_MAX);
	holding->waiting = array_grow(holding->waiting, holding->count, sizeof(*holding->waiting));
	holding->waiting[holding->count].digest = *digest;
	holding_set_type(holding->waiting[holding->count].media_type, type);
	holding->count++;
	return 0;
}

/* 1 an item of what the store has and was not seen before by this name; 0, -1. */
static int holding_look(struct holding *holding, const struct digest *digest,
			struct repository_item *out, struct err *err)
{
	struct store *store = meta_store(holding->meta);
	struct blob_info info;
	int found = blob_find(store, digest, &info, err);

	if (found != 1)
		return found;
	*out = (struct repository_item){.source = REPOSITORY_BAKED,
					.digest = *digest,
					.size = info.size,
					.at_ms = holding->now_ms};
	found = blob_find_id(store, digest, &out->blob, err);
	return found == 1 ? digest_set_add(&holding->seen[digest->algorithm], &out->blob, err)
			  : found;
}

/* What the repository has of it already: that is asked for, or follows its tags. */
static int holding_find(const struct holding *holding, const struct repository_item *item,
			struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct repository_item held;
	int found = repository_find(holding->meta, holding->repository, item->kind, &item->digest,
				    &held, err);

	if (found == 0 && holding->way == HOLDING_CHECK)
		return err_set(err, ERR_NOT_FOUND, STR_FMT " has no %s",
			       STR_ARG(holding->repository), digest_format(&item->digest, text));
	if (found <= 0 || holding->way == HOLDING_CHECK || held.source != REPOSITORY_PUSHED)
		return found;
	return repository_release(holding->meta, holding->repository, &held, err);
}

static int holding_keep(struct holding *holding, const struct repository_item *item,
			const struct outline *outline, struct err *err)
{
	if (holding->way != HOLDING_PUT)
		return holding_find(holding, item, err);
	return outline ? repository_put_manifest(holding->meta, holding->repository, item, outline,
						 err)
		       : repository_put(holding->meta, holding->repository, item, err);
}

static int holding_add_blob(struct holding *holding, const struct descriptor *what, struct err *err)
{
	struct repository_item item;
	int found = holding_look(holding, &what->digest, &item, err);

	return found == 1 ? holding_keep(holding, &item, NULL, err) : found;
}

static int holding_add_items(struct holding *holding, const struct outline *outline,
			     struct err *err)
{
	for (size_t i = 0; i < outline->count; i++) {
		const struct outline_item *item = &outline->items[i];
		int result = item->kind == OUTLINE_DOCUMENT
				     ? holding_await(holding, &item->what.digest,
						     item->what.media_type, err)
				     : holding_add_blob(holding, &item->what, err);

		if (result < 0)
			return -1;
	}
	return 0;
}

/* What no registry would take is no part of an image. */
static int holding_add_document(struct holding *holding, const struct holding_document *document,
				struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};
	struct repository_item item;
	struct err none;
	int found = holding_look(holding, &document->digest, &item, err);

	if (found != 1 || item.size > MANIFEST_MAX)
		return found < 0 ? -1 : 0;
	if (blob_read_all(meta_store(holding->meta), &document->digest, &text, err) < 0)
		return -1;
	if (outline_parse(buf_str(&text), &outline, &none) < 0)
		return 0;
	item.kind = REPOSITORY_MANIFEST;
	holding_set_type(item.media_type, outline.media_type.len > 0 ? outline.media_type
					  : document->media_type[0]  ? str_of(document->media_type)
								     : outline_type(&outline));
	if (holding_keep(holding, &item, &outline, err) < 0)
		return -1;
	return holding_add_items(holding, &outline, err);
}

static int holding_run(struct meta *meta, struct str repository, const struct digest *target,
		       enum holding_way way, struct err *err)
{
	struct holding holding = {
		.meta = meta, .repository = repository, .now_ms = clock_now_ms(), .way = way};
	int result = holding_await(&holding, target, STR(""), err);

	while (result == 0 && holding.count > 0) {
		const struct holding_document next = holding.waiting[--holding.count];

		result = holding_add_document(&holding, &next, err);
	}
	holding_done(&holding);
	return result;
}

int holding_put(struct meta *meta, struct str repository, const struct digest *target,
		struct err *err)
{
	return holding_run(meta, repository, target, HOLDING_PUT, err);
}

int holding_check(struct meta *meta, struct str repository, const struct digest *target,
		  struct err *err)
{
	return holding_run(meta, repository, target, HOLDING_CHECK, err);
}

int holding_release(struct meta *meta, struct str repository, const struct digest *target,
		    struct err *err)
{
	return holding_run(meta, repository, target, HOLDING_RELEASE, err);
}
