/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.c - the order in which an image leaves.
 *
 *	1 what the name stands for there: a digest    ours: done
 *	2 of an index, each of its manifests          held, or 3 and 4 with it
 *	3 config and layers, in parallel              held, mounted, or sent
 *	4 the document, under its digest or the name  names nothing that is not there
 *	5 what it is about, where the registry does not note that
 *	6 its other tags                              in one request, where the registry can
 *	7 1 to 5 for each document that is about it
 */
#include "registry/push_priv.h"

#include "layers/blob.h"
#include "layers/lease.h"
#include "registry/fetch_priv.h"
#include "registry/referrers_remote_priv.h"

#include <inttypes.h>

static void push_send_event(struct push *push, const struct push_event *event)
{
	if (!push->spec->event)
		return;
	lock_take(&push->event_lock);
	push->spec->event(push->spec->event_ctx, event);
	lock_drop(&push->event_lock);
}

void push_tell(struct push *push, enum push_event_kind kind, const struct digest *digest,
	       uint64_t done, uint64_t size)
{
	const struct push_event event = {
		.kind = kind, .digest = *digest, .done = done, .size = size};

	push_send_event(push, &event);
}

static void push_warn(void *ctx, struct str text)
{
	const struct push_event event = {.kind = PUSH_WARNING, .text = text};

	push_send_event(ctx, &event);
}

int push_lane(struct push *push, size_t lane, struct http **out, struct err *err)
{
	if (!push->lanes[lane] && remote_connect(push->remote, &push->lanes[lane], err) < 0)
		return -1;
	*out = push->lanes[lane];
	return 0;
}

/* 1 the registry's name stands for this digest, 0 it does not or nobody knows, -1. */
static int push_is_there(struct push *push, const char *name, const struct digest *digest,
			 struct err *err)
{
	struct digest there;
	struct http *http;
	int found;

	if (push_lane(push, 0, &http, err) < 0)
		return -1;
	found = fetch_head(push->remote, http, name, &there, err);
	/* A repository that does not exist yet may want no credentials, or others. */
	if (found < 0)
		return err->kind == ERR_NOT_FOUND || err->kind == ERR_UNAUTHORIZED ? 0 : -1;
	return found == 1 && digest_equal(&there, digest);
}

static int push_document(struct push *push, const struct digest *digest, const char *name,
			 size_t depth, struct err *err);

/* What an index names and the store lacks has to be in the registry already. */
static int push_child(struct push *push, const struct descriptor *what, size_t depth,
		      struct err *err)
{
	char name[DIGEST_TEXT_MAX];
	struct blob_info info;
	int found = blob_find(push->store, &what->digest, &info, err);

	digest_format(&what->digest, name);
	if (found == 1)
		return push_document(push, &what->digest, name, depth + 1, err);
	if (found == 0)
		found = push_is_there(push, name, &what->digest, err);
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "the index names %s, which is neither in the store nor in the "
			       "registry; push the image of one platform",
			       name);
	return found < 0 ? -1 : 0;
}

static int push_named(struct push *push, const struct closure *closure, size_t depth,
		      struct err *err)
{
	for (size_t i = 0; i < closure->count; i++) {
		if (closure->items[i].kind == CLOSURE_DOCUMENT &&
		    push_child(push, &closure->items[i].what, depth, err) < 0)
			return -1;
	}
	return push_blobs(push, closure, err);
}

/* A registry that notes by itself what a manifest is about says so. */
static int push_note_subject(const struct push *push, struct http *http,
			     const struct closure *closure, struct str text,
			     const struct http_reply *response, struct err *err)
{
	auto_outline struct outline outline = {0};

	if (!json_object_get(closure->document, "subject") ||
	    http_header(response, "OCI-Subject").len > 0)
		return 0;
	if (outline_parse(text, &outline, err) < 0)
		return -1;
	if (!outline.has_subject)
		return 0;
	return referrers_remote_note(push->remote, http, &outline, text, err);
}

/* A document and all that it names, under a tag or its digest. */
static int push_document(struct push *push, const struct digest *digest, const char *name,
			 size_t depth, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_closure struct closure closure = {0};
	auto_http_reply struct http_reply response = {0};
	struct http *http;
	int there;

	if (depth > PUSH_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "indexes in indexes, more than %d deep",
			       PUSH_DEPTH_MAX);
	if (blob_read_all(push->store, digest, &text, err) < 0 ||
	    closure_parse(buf_str(&text), &closure, err) < 0)
		return -1;
	there = push_is_there(push, name, digest, err);
	if (there != 0) {
		push_tell(push, PUSH_DOCUMENT_HELD, digest, text.len, text.len);
		return there < 0 ? -1 : 0;
	}
	if (push_named(push, &closure, depth, err) < 0 || push_lane(push, 0, &http, err) < 0)
		return -1;
	if (upload_document(push->remote, http, name, closure.media_type, buf_str(&text), &response,
			    err) < 0 ||
	    push_note_subject(push, http, &closure, buf_str(&text), &response, err) < 0)
		return err_ctx(err, "manifest");
	push_tell(push, PUSH_DOCUMENT, digest, text.len, text.len);
	return 0;
}

/* The further tags that do not stand for the image yet. */
static int push_pick_tags(struct push *push, struct str picked[static PUSH_TAGS_MAX], size_t *count,
			  struct err *err)
{
	const struct push_spec *spec = push->spec;

	for (size_t i = 0; i < spec->tag_count; i++) {
		char name[REFERENCE_TEXT_MAX];
		int there;

		(void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(spec->tags[i]));
		there = push_is_there(push, name, &spec->manifest, err);
		if (there < 0)
			return -1;
		if (there == 0)
			picked[(*count)++] = spec->tags[i];
	}
	return 0;
}

/* Whether the registry says that it put this tag: "OCI-Tag: a, b". */
static bool push_has_tag(const struct http_reply *response, struct str tag)
{
	struct str headers = buf_str(&response->headers);
	struct str field;
	struct str one;

	while (http_header_next(&headers, "OCI-Tag", &field)) {
		while (str_cut(&field, ',', &one)) {
			if (str_equal(str_trim(one), tag))
				return true;
		}
	}
	return false;
}

/*
 * All tags in one request, by the digest; one that does not know of that keeps
 * the document once more, or refuses it, and says of no tag that it is put.
 */
static int push_tags_at_once(struct push *push, const struct closure *closure, struct str text,
			     const struct str *tags, size_t count, struct http_reply *response,
			     struct err *err)
{
	auto_buf struct buf name = BUF_INIT(HTTP_URL_MAX);
	char digest[DIGEST_TEXT_MAX];
	struct http *http;
	struct err refused;

	if (buf_addf(&name, err, "%s", digest_format(&push->spec->manifest, digest)) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (buf_addf(&name, err, "%ctag=" STR_FMT, i == 0 ? '?' : '&', STR_ARG(tags[i])) <
		    0)
			return -1;
	}
	if (push_lane(push, 0, &http, err) < 0)
		return -1;
	if (upload_document(push->remote, http, name.ptr, closure->media_type, text, response,
			    &refused) == 0 ||
	    response->status / 100 == 4)
		return 0;
	*err = refused;
	return -1;
}

static int push_tag(struct push *push, const struct closure *closure, struct str text,
		    struct str tag, struct err *err)
{
	auto_http_reply struct http_reply response = {0};
	char name[REFERENCE_TEXT_MAX];
	struct http *http;

	(void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(tag));
	if (push_lane(push, 0, &http, err) < 0 ||
	    upload_document(push->remote, http, name, closure->media_type, text, &response, err) <
		    0)
		return err_ctx(err, "tag %s", name);
	return 0;
}

static int push_tags(struct push *push, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_closure struct closure closure = {0};
	auto_http_reply struct http_reply response = {0};
	struct str tags[PUSH_TAGS_MAX];
	size_t count = 0;

	if (push_pick_tags(push, tags, &count, err) < 0)
		return -1;
	if (count == 0)
		return 0;
	if (blob_read_all(push->store, &push->spec->manifest, &text, err) < 0 ||
	    closure_parse(buf_str(&text), &closure, err) < 0 ||
	    (count > 1 &&
	     push_tags_at_once(push, &closure, buf_str(&text), tags, count, &response, err) < 0))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!push_has_tag(&response, tags[i]) &&
		    push_tag(push, &closure, buf_str(&text), tags[i], err) < 0)
			return -1;
	}
	push_tell(push, PUSH_DOCUMENT, &push->spec->manifest, text.len, text.len);
	return 0;
}

static int push_referrers(struct push *push, struct err *err)
{
	for (size_t i = 0; i < push->spec->referrer_count; i++) {
		const struct digest *digest = &push->spec->referrers[i];
		char name[DIGEST_TEXT_MAX];

		digest_format(digest, name);
		if (push_document(push, digest, name, 1, err) < 0)
			return err_ctx(err, "referrer %s", name);
	}
	return 0;
}

/* Whether a digest, by its own algorithm, is the image's. 1, 0, -1. */
static int push_is_called(const struct push *push, const struct digest *digest, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);

	if (digest->algorithm == DIGEST_SHA256)
		return digest_equal(digest, &push->spec->manifest);
	if (blob_read_all(push->store, &push->spec->manifest, &text, err) < 0)
		return -1;
	return digest_is_of(digest, buf_str(&text));
}

static int push_check(const struct push *push, struct err *err)
{
	const struct push_spec *spec = push->spec;
	const struct reference *reference = spec->reference;
	int called = 1;

	if (reference->kind != REFERENCE_REGISTRY)
		return err_set(err, ERR_INVALID,
			       "only registries are pushed to; export writes layouts and archives");
	if (reference->has_digest)
		called = push_is_called(push, &reference->digest, err);
	if (called < 0)
		return -1;
	if (called == 0)
		return err_set(err, ERR_INVALID, "the image has another digest than the name");
	if (spec->tag_count > PUSH_TAGS_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu tags at once", PUSH_TAGS_MAX);
	return 0;
}

static int push_all(struct push *push, struct err *err)
{
	const struct push_spec *spec = push->spec;
	char name[REFERENCE_TEXT_MAX];
	const struct remote_spec remote = {.host = spec->reference->host,
					   .path = spec->reference->path,
					   .push = true,
					   .from = spec->from,
					   .plain_http = spec->plain_http,
					   .ca_file = spec->ca_file,
					   .user = spec->user,
					   .password = spec->password,
					   .tries = PUSH_TRIES,
					   .warn = push_warn,
					   .warn_ctx = push,
					   .cancel = spec->cancel,
					   .cancel_too = &push->stop};

	if (spec->reference->tag.len > 0)
		(void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(spec->reference->tag));
	else
		digest_format(spec->reference->has_digest ? &spec->reference->digest
							  : &spec->manifest,
			      name);
	if (push_check(push, err) < 0 || remote_open(&remote, &push->remote, err) < 0)
		return -1;
	if (push_document(push, &spec->manifest, name, 1, err) < 0 || push_tags(push, err) < 0)
		return -1;
	return push_referrers(push, err);
}

/* What a user wrote stands in front of what went wrong with it. */
static int push_failed(const struct push_spec *spec, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct err ignored;

	if (reference_format(spec->reference, &name, &ignored) == 0)
		(void)err_ctx(err, "push %s", name.ptr);
	return -1;
}

/* All that the manifest leads to, and what is about it, stays until it is pushed. */
static int push_hold(struct store *store, const struct push_spec *spec, struct lease **out,
		     struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;

	if (lease_open(store, &lease, err) < 0 || lease_add(lease, &spec->manifest, err) < 0)
		return -1;
	for (size_t i = 0; i < spec->referrer_count; i++) {
		if (lease_add(lease, &spec->referrers[i], err) < 0)
			return -1;
	}
	if (lease_rest(lease, err) < 0)
		return -1;
	*out = steal_ptr(&lease);
	return 0;
}

int push_image(struct store *store, const struct push_spec *spec, struct digest *out,
	       struct err *err)
{
	struct push push = {
		.store = store, .spec = spec, .event_lock = LOCK_INIT, .sources.lock = LOCK_INIT};
	AUTO(lease) struct lease *lease = NULL;
	int result;

	if (push_hold(store, spec, &lease, err) < 0 || cancel_init(&push.stop, err) < 0)
		return -1;
	result = push_all(&push, err);
	for (size_t i = 0; i < LANES; i++)
		http_close(push.lanes[i]);
	remote_close(push.remote);
	push_sources_done(&push.sources);
	cancel_done(&push.stop);
	if (result < 0)
		return push_failed(spec, err);
	*out = spec->manifest;
	return 0;
}
