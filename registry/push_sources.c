/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_sources.c - repositories of the same registry that a blob was pulled
 * from: it is mounted from there.
 */
#include "layers/base/array.h"
#include "layers/blob.h"
#include "registry/push_priv.h"
#include "registry/tag.h"

struct push_search {
	struct push *push;
	size_t images;
};

static void push_sources_add(struct push_sources *sources, const struct digest *blob,
			     struct str path)
{
	if (sources->count == PUSH_SOURCE_BLOBS_MAX)
		return; /* the others are sent */
	sources->at = array_grow(sources->at, sources->count, sizeof(*sources->at));
	sources->at[sources->count++] = (struct push_source){*blob, str_dup(path)};
}

static const struct push_source *push_sources_find(const struct push_sources *sources,
						   const struct digest *blob)
{
	for (size_t i = 0; i < sources->count; i++) {
		if (digest_equal(&sources->at[i].blob, blob))
			return &sources->at[i];
	}
	return NULL;
}

/* The blobs of an image that was pulled; one that cannot be read is no source. */
static void push_sources_read_image(struct push *push, const struct digest *manifest,
				    struct str path)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_closure struct closure closure = {0};
	struct err ignored;

	if (blob_read_all(push->store, manifest, &text, &ignored) < 0 ||
	    closure_parse(buf_str(&text), &closure, &ignored) < 0)
		return;
	for (size_t i = 0; i < closure.count; i++) {
		if (closure.items[i].kind == CLOSURE_BLOB &&
		    !push_sources_find(&push->sources, &closure.items[i].what.digest))
			push_sources_add(&push->sources, &closure.items[i].what.digest, path);
	}
}

static int push_sources_consider(void *ctx, struct str text, const struct tag *tag, struct err *err)
{
	struct push_search *search = ctx;
	const struct reference *ours = search->push->spec->reference;
	struct reference reference;

	if (!tag->pulled || reference_parse(text, &reference, err) < 0 ||
	    reference.kind != REFERENCE_REGISTRY || !str_equal(reference.host, ours->host) ||
	    str_equal(reference.path, ours->path))
		return 0;
	push_sources_read_image(search->push, &tag->manifest, reference.path);
	return ++search->images >= PUSH_SOURCES_MAX;
}

static int push_sources_read_locked(struct push *push, struct err *err)
	REQUIRES(push->sources.lock);
static int push_sources_read_locked(struct push *push, struct err *err)
{
	struct push_search search = {.push = push};
	AUTO(meta) struct meta *meta = NULL;

	if (push->sources.read)
		return 0;
	if (meta_begin(push->store, META_READ, &meta, err) < 0 ||
	    tag_each(meta, push_sources_consider, &search, err) < 0)
		return -1;
	push->sources.read = true;
	return 0;
}

int push_find_source(struct push *push, const struct digest *blob, struct str *out, struct err *err)
{
	struct str from = push->spec->from;
	const struct push_source *source = NULL;
	int result;

	if (from.len > 0 && !str_equal(from, push->spec->reference->path)) {
		*out = from;
		return 1;
	}
	lock_take(&push->sources.lock);
	result = push_sources_read_locked(push, err);
	if (result == 0)
		source = push_sources_find(&push->sources, blob);
	lock_drop(&push->sources.lock);
	if (source)
		*out = str_of(source->path);
	return source ? 1 : result;
}

void push_sources_done(struct push_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		free(sources->at[i].path);
	free(sources->at);
}
