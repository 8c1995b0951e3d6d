/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_trim.c - what an upstream's images may take, kept: over max_bytes, what
 * was used longest ago goes, until nine tenths of that are left. Only records
 * go here; the bytes are a collection's, where nothing else names them.
 *
 * What is being read is pinned, and stays. A blob that comes is none of these
 * before it is whole, and then it is the youngest.
 */
#include "registry/mirror_trim.h"

#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/digest_set.h"
#include "layers/use.h"
#include "registry/mirror_priv.h"
#include "registry/repository.h"

#define TRIM_LOW_PERCENT 90
#define TRIM_RECORD_MS                                                            \
	((int64_t)30 * 24 * 3600 * 1000) /* of a tag or list that nobody asks for \
					  */
#define TRIM_BATCH 256                   /* records that one transaction removes */
#define TRIM_ITEMS_MAX ((size_t)4 * 1024 * 1024)

struct trim_item {
	struct digest blob;
	uint64_t size;
	int64_t used_ms;
};

struct trim {
	struct store *store;
	struct mirror *mirror; /* what it gives away stays; or NULL */
	const char *host;      /* the upstream's name; NULL for all of them */
	uint64_t max_bytes;
	bool dry_run;
	struct trim_item *items; /* owned; each blob once */
	size_t count;
	uint64_t bytes; /* of them */
	struct digest_set seen;
	struct digest_set gone;
};

static void auto_trim_release(struct trim *slot)
{
	free(slot->items);
	digest_set_done(&slot->seen);
	digest_set_done(&slot->gone);
}

static bool mirror_trim_is_its(const struct trim *trim, struct str repository,
			       const struct repository_item *item)
{
	size_t len = trim->host ? strlen(trim->host) : 0;

	if (item->source != REPOSITORY_MIRRORED || !trim->host)
		return item->source == REPOSITORY_MIRRORED;
	return repository.len > len && repository.ptr[len] == '/' &&
	       str_starts(repository, str_of(trim->host));
}

static int mirror_trim_count(void *ctx, struct str repository, const struct repository_item *item,
			     struct err *err)
{
	struct trim *trim = ctx;
	int is_new;

	if (!mirror_trim_is_its(trim, repository, item))
		return 0;
	is_new = digest_set_add(&trim->seen, &item->blob, err);
	if (is_new <= 0)
		return is_new;
	if (array_make_room(&trim->items, sizeof(*trim->items), trim->count, TRIM_ITEMS_MAX,
			    "mirrored blobs", err) < 0)
		return -1;
	trim->items[trim->count++] = (struct trim_item){item->blob, item->size, item->at_ms};
	trim->bytes += item->size;
	return 0;
}

static int mirror_trim_read(struct trim *trim, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(trim->store, META_READ, &meta, err) < 0)
		return -1;
	return repository_each(meta, mirror_trim_count, trim, err);
}

static int mirror_trim_compare(const void *a, const void *b)
{
	const struct trim_item *first = a;
	const struct trim_item *second = b;

	return (first->used_ms > second->used_ms) - (first->used_ms < second->used_ms);
}

/* In the order in which they go. */
static int mirror_trim_sort(struct trim *trim, struct err *err)
{
	for (size_t i = 0; i < trim->count; i++) {
		struct trim_item *item = &trim->items[i];
		int64_t used_ms = 0;

		if (use_find(trim->store, &item->blob, &used_ms, err) < 0)
			return -1;
		if (used_ms > item->used_ms)
			item->used_ms = used_ms;
	}
	if (trim->count > 0)
		qsort(trim->items, trim->count, sizeof(*trim->items), mirror_trim_compare);
	return 0;
}

/* Which of them go, so that the rest is no more than that. */
static int mirror_trim_choose(struct trim *trim, uint64_t low, uint64_t *out_bytes, struct err *err)
{
	for (size_t i = 0; i < trim->count && trim->bytes > low; i++) {
		const struct trim_item *item = &trim->items[i];

		if (trim->mirror && mirror_is_pinned(trim->mirror, &item->blob))
			continue;
		if (digest_set_add(&trim->gone, &item->blob, err) < 0)
			return -1;
		trim->bytes -= item->size;
		*out_bytes += item->size;
	}
	return 0;
}

/* Removal, in batches */

struct trim_record {
	char repository[REFERENCE_REPOSITORY_MAX + 1];
	enum repository_kind kind;
	struct digest digest;
	struct digest blob;
};

struct trim_batch {
	struct trim *trim;
	size_t count;
	struct trim_record records[TRIM_BATCH];
};

/* 1 the batch is full. */
static int mirror_trim_find(void *ctx, struct str repository, const struct repository_item *item,
			    struct err *err)
{
	struct trim_batch *batch = ctx;
	struct trim_record *record = &batch->records[batch->count];

	(void)err; /* the shape of repository_each_fn */
	if (!mirror_trim_is_its(batch->trim, repository, item) ||
	    !digest_set_has(&batch->trim->gone, &item->blob))
		return 0;
	*record = (struct trim_record){
		.kind = item->kind, .digest = item->digest, .blob = item->blob};
	memcpy(record->repository, repository.ptr, repository.len);
	return ++batch->count == TRIM_BATCH;
}

/* Remove some. 1 there may be more, 0 none is left, -1. */
static int mirror_trim_remove_some(struct trim *trim, struct err *err)
{
	struct store *store = trim->store;
	auto_free struct trim_batch *batch = calloc(1, sizeof(*batch));
	AUTO(meta) struct meta *meta = NULL;

	if (!batch)
		abort();
	batch->trim = trim;
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    repository_each(meta, mirror_trim_find, batch, err) < 0)
		return -1;
	for (size_t i = 0; i < batch->count; i++) {
		const struct trim_record *record = &batch->records[i];

		if (repository_del(meta, str_of(record->repository), record->kind, &record->digest,
				   err) < 0)
			return -1;
		use_forget(store, &record->blob);
	}
	if (batch->count == 0)
		return 0;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : 1;
}

/* What is above the low mark goes, of what was read. */
static int mirror_trim_to(struct trim *trim, uint64_t low, const struct cancel *cancel,
			  uint64_t *out_bytes, struct err *err)
{
	int more = 1;

	if (mirror_trim_sort(trim, err) < 0 || mirror_trim_choose(trim, low, out_bytes, err) < 0)
		return -1;
	while (more == 1 && !trim->dry_run) {
		if (cancel_check(cancel, err) < 0)
			return -1;
		more = mirror_trim_remove_some(trim, err);
	}
	return more < 0 ? -1 : 0;
}

static int mirror_trim_run(struct trim *trim, const struct cancel *cancel, uint64_t *out_bytes,
			   struct err *err)
{
	if (mirror_trim_read(trim, err) < 0)
		return -1;
	if (trim->bytes <= trim->max_bytes || trim->max_bytes == 0)
		return 0;
	return mirror_trim_to(trim, trim->max_bytes / 100 * TRIM_LOW_PERCENT, cancel, out_bytes,
			      err);
}

static int mirror_trim_upstream(struct mirror *mirror, struct mirror_upstream *upstream,
				const struct cancel *cancel, uint64_t *out_bytes, struct err *err)
{
	AUTO(trim)
	struct trim trim = {.store = mirror->options.store,
			    .mirror = mirror,
			    .host = upstream->host,
			    .max_bytes = upstream->max_bytes};
	struct mirror_counts *counts = &upstream->counts;
	uint64_t fetched = atomic_load(&counts->fetched);

	if (mirror_trim_run(&trim, cancel, out_bytes, err) < 0)
		return -1;
	atomic_store(&counts->held, trim.bytes);
	atomic_store(&counts->fetched_then, fetched);
	return 0;
}

/* What upstreams said long ago, and nobody has asked since. */
static int mirror_trim_records(struct store *store, const struct cancel *cancel, struct err *err)
{
	int64_t before_ms = clock_now_ms() - TRIM_RECORD_MS;
	int gone = TRIM_BATCH;

	while (gone == TRIM_BATCH) {
		AUTO(meta) struct meta *meta = NULL;

		if (cancel_check(cancel, err) < 0 || meta_begin(store, META_WRITE, &meta, err) < 0)
			return -1;
		gone = mirror_record_forget(meta, before_ms, TRIM_BATCH, err);
		if (gone < 0 || (gone > 0 && meta_commit(steal_ptr(&meta), err) < 0))
			return -1;
	}
	return 0;
}

int mirror_trim(struct mirror *mirror, const struct cancel *cancel, uint64_t *out_bytes,
		struct err *err)
{
	*out_bytes = 0;
	for (size_t i = 0; i < mirror->upstream_count; i++) {
		struct mirror_upstream *upstream = &mirror->upstreams[i];

		if (mirror_trim_upstream(mirror, upstream, cancel, out_bytes, err) < 0)
			return err_ctx(err, "mirror of %s", upstream->host);
	}
	return mirror_trim_records(mirror->options.store, cancel, err);
}

static int mirror_trim_store_of(const struct mirror_trim_spec *spec,
				const struct mirror_upstream_spec *upstream, uint64_t *out_bytes,
				struct err *err)
{
	char host[URL_HOST_MAX];
	AUTO(trim)
	struct trim trim = {.store = spec->store,
			    .host = host,
			    .max_bytes = upstream->max_bytes,
			    .dry_run = spec->dry_run};

	if (upstream->max_bytes == 0)
		return 0;
	if (mirror_host_name(upstream->host, host, err) < 0)
		return -1;
	return mirror_trim_run(&trim, spec->cancel, out_bytes, err);
}

int mirror_trim_store(const struct mirror_trim_spec *spec, uint64_t *out_bytes, struct err *err)
{
	*out_bytes = 0;
	for (size_t i = 0; i < spec->upstream_count; i++) {
		const struct mirror_upstream_spec *upstream = &spec->upstreams[i];

		if (mirror_trim_store_of(spec, upstream, out_bytes, err) < 0)
			return err_ctx(err, "mirror of " STR_FMT, STR_ARG(upstream->host));
	}
	return spec->dry_run ? 0 : mirror_trim_records(spec->store, spec->cancel, err);
}

int mirror_trim_oldest(const struct mirror_trim_spec *spec, uint64_t bytes, uint64_t *out_bytes,
		       struct err *err)
{
	AUTO(trim) struct trim trim = {.store = spec->store, .dry_run = spec->dry_run};

	*out_bytes = 0;
	if (mirror_trim_read(&trim, err) < 0)
		return -1;
	return mirror_trim_to(&trim, trim.bytes > bytes ? trim.bytes - bytes : 0, spec->cancel,
			      out_bytes, err);
}

bool mirror_may_be_over(const struct mirror *mirror)
{
	for (size_t i = 0; i < mirror->upstream_count; i++) {
		const struct mirror_upstream *upstream = &mirror->upstreams[i];
		const struct mirror_counts *counts = &upstream->counts;
		uint64_t came = atomic_load(&counts->fetched) - atomic_load(&counts->fetched_then);

		if (upstream->max_bytes > 0 &&
		    (atomic_load(&counts->held) + came > upstream->max_bytes))
			return true;
	}
	return false;
}
