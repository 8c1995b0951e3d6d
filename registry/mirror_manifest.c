/* SPDX-License-Identifier: Apache-2.0 */
/* mirror_manifest.c - manifests and indexes: by their digest once, by a tag when its time is over.
 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "registry/fetch_priv.h"
#include "registry/outline.h"
#include "registry/repository.h"

#include <stdio.h>

/* What came of a manifest. */
struct mirror_document {
	struct buf text;
	struct outline outline;
	struct digest digest; /* as it was asked for */
	char type[REPOSITORY_TYPE_MAX];
};

static void mirror_document_done(struct mirror_document *document)
{
	buf_done(&document->text);
	outline_done(&document->outline);
}

static void auto_mirror_document_release(struct mirror_document *slot)
{
	mirror_document_done(slot);
}

/* Its own word goes first, since the digest covers that alone; then the upstream's, if it is one.
 */
static void mirror_manifest_find_type(struct mirror_document *document,
				      const struct http_reply *reply)
{
	const struct outline *outline = &document->outline;
	static const char *const general[] = {"", "text/plain", "application/json",
					      "application/octet-stream"};
	struct str type = fetch_media_type(reply);
	bool says_nothing = type.len >= sizeof(document->type);

	for (size_t i = 0; i < sizeof(general) / sizeof(general[0]); i++)
		says_nothing = says_nothing || str_equal(type, str_of(general[i]));
	if (outline->media_type.len > 0 && outline->media_type.len < sizeof(document->type))
		type = outline->media_type;
	else if (says_nothing)
		type = outline_type(outline);
	(void)snprintf(document->type, sizeof(document->type), STR_FMT, STR_ARG(type));
}

/* Everything that a manifest has to be before it is kept. named: the digest that it must have. */
static int mirror_manifest_check(struct mirror_document *document, const struct http_reply *reply,
				 const struct digest *named, struct err *err)
{
	struct str text = buf_str(&document->text);
	AUTO(hasher) struct hasher hasher = {0};
	struct err why;

	hasher_init_as(&hasher, named ? named->algorithm : DIGEST_SHA256);
	hasher_add(&hasher, text);
	hasher_final(&hasher, &document->digest);
	if (named && !digest_equal(named, &document->digest))
		return err_set(err, ERR_CORRUPT, "what the upstream sent has another digest");
	if (outline_parse(text, &document->outline, &why) < 0)
		return err_set(err, why.kind == ERR_INVALID ? ERR_CORRUPT : why.kind,
			       "what the upstream sent is no manifest: %.300s", why.text);
	if (fetch_check_manifest(reply, text, &document->digest, err) < 0)
		return -1;
	mirror_manifest_find_type(document, reply);
	return 0;
}

static int mirror_manifest_fetch(struct mirror_hand *hand, const char *name,
				 const struct digest *named, struct mirror_document *out,
				 struct err *err)
{
	struct buf_sink body = BUF_SINK(&out->text);
	const struct remote_request request = {.method = HTTP_GET,
					       .kind = "manifests",
					       .name = name,
					       .document = true,
					       .accept = FETCH_ACCEPT,
					       .body = &body.sink};
	auto_http_reply struct http_reply reply = {0};
	struct retry retry = remote_retry(mirror_remote_get(hand->remote));

	while (true) {
		buf_clear(&out->text);
		if (mirror_ask(hand, &request, &reply, err) == 0)
			break;
		/* A connection that broke; an answer is one. */
		if (reply.status != 0 || !reply.worth_retrying || err->kind == ERR_TIMEOUT ||
		    retry_wait(&retry, hand->http, -1, err) < 0)
			return -1;
	}
	atomic_fetch_add(&hand->task->place.upstream->counts.fetched, out->text.len);
	return mirror_manifest_check(out, &reply, named, err);
}

/* The bytes, durably. */
static int mirror_manifest_store(struct store *store, const struct mirror_document *document,
				 struct repository_item *out, struct err *err)
{
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct blob_info info;

	if (blob_writer_open(store, &writer, err) < 0 ||
	    blob_writer_add(writer, buf_str(&document->text), err) < 0 ||
	    blob_writer_commit(writer, &document->digest, &info, err) < 0)
		return -1;
	*out = (struct repository_item){
		.kind = REPOSITORY_MANIFEST,
		.source = REPOSITORY_MIRRORED,
		.digest = document->digest,
		.size = info.size,
		.at_ms = clock_now_ms(),
	};
	digest_of(buf_str(&document->text), &out->blob);
	memcpy(out->media_type, document->type, sizeof(out->media_type));
	return 0;
}

/* What the tag of this task stands for, from now on. */
static int mirror_manifest_note_tag(struct meta *meta, const struct mirror_task *task,
				    const struct digest *digest, struct err *err)
{
	const struct mirror_tag tag = {.digest = *digest, .checked_ms = clock_now_ms()};

	return mirror_record_put_tag(meta, task->place.key, str_of(task->name), &tag, err);
}

static int mirror_manifest_keep(struct mirror_hand *hand, const struct mirror_document *document,
				struct err *err)
{
	struct store *store = hand->mirror->options.store;
	const struct mirror_task *task = hand->task;
	struct repository_item item;
	AUTO(lease) struct lease *lease = NULL;
	AUTO(meta) struct meta *meta = NULL;

	if (lease_open(store, &lease, err) < 0 ||
	    mirror_manifest_store(store, document, &item, err) < 0 ||
	    meta_begin(store, META_SHARED, &meta, err) < 0 ||
	    repository_put_manifest(meta, str_of(task->place.key), &item, &document->outline, err) <
		    0)
		return -1;
	if (task->kind == MIRROR_TAG &&
	    mirror_manifest_note_tag(meta, task, &document->digest, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

int mirror_fetch_manifest(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	AUTO(mirror_document) struct mirror_document document = {.text = BUF_INIT(MANIFEST_MAX)};
	struct repository_item item;
	int held = mirror_holds(hand->mirror, &task->place, REPOSITORY_MANIFEST, &task->digest,
				&item, err);

	if (held != 0)
		return held < 0 ? -1 : 0;
	if (mirror_manifest_fetch(hand, task->name, &task->digest, &document, err) < 0)
		return -1;
	return mirror_manifest_keep(hand, &document, err);
}

/* Tags */

/* What it stood for, if that is here; out_fresh: and does still. 1, 0 or -1. */
static int mirror_manifest_find_tag(struct mirror_hand *hand, struct digest *out, bool *out_fresh,
				    struct err *err)
{
	const struct mirror_task *task = hand->task;
	struct repository_item item;
	struct mirror_tag tag;
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(hand->mirror->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = mirror_record_find_tag(meta, task->place.key, str_of(task->name), &tag, err);
	if (found == 1)
		found = repository_find(meta, str_of(task->place.key), REPOSITORY_MANIFEST,
					&tag.digest, &item, err);
	if (found == 1) {
		*out = tag.digest;
		*out_fresh = mirror_is_fresh(&task->place, tag.checked_ms);
	}
	return found;
}

/*
 * 1 and what the upstream says that it stands for, 0 it does not answer such a
 * question and the manifest has to be got, -1.
 */
static int mirror_manifest_ask_digest(struct mirror_hand *hand, struct digest *out, struct err *err)
{
	const struct remote_request request = {.method = HTTP_HEAD,
					       .kind = "manifests",
					       .name = hand->task->name,
					       .document = true,
					       .accept = FETCH_ACCEPT};
	auto_http_reply struct http_reply reply = {0};
	struct err ignored;

	if (mirror_ask(hand, &request, &reply, err) == 0)
		return digest_parse(http_header(&reply, "Docker-Content-Digest"), out, &ignored) ==
		       0;
	/* It is down, or it says no; but some do not know HEAD, and signed URLs refuse it. */
	if (reply.status == 0 || retry_status(reply.status) || err->kind == ERR_NOT_FOUND ||
	    err->kind == ERR_UNAUTHORIZED || err->kind == ERR_DENIED)
		return -1;
	return 0;
}

/*
 * It stands for what is here: 1. 0: for something else, or it is not known for what.
 * held: what it stood for, or NULL.
 */
static int mirror_manifest_renew_tag(struct mirror_hand *hand, const struct digest *held,
				     struct digest *out, struct err *err)
{
	struct store *store = hand->mirror->options.store;
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	int found = mirror_manifest_ask_digest(hand, out, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_SHARED, &meta, err) < 0)
		return -1;
	if (!held || !digest_equal(held, out)) {
		found = repository_find(meta, str_of(hand->task->place.key), REPOSITORY_MANIFEST,
					out, &item, err);
		if (found <= 0)
			return found;
	}
	if (mirror_manifest_note_tag(meta, hand->task, out, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : 1;
}

/* The upstream has it no more. What it stood for stays, by its digest. */
static int mirror_manifest_forget_tag(struct mirror_hand *hand, const struct err *why,
				      struct err *err)
{
	const struct mirror_task *task = hand->task;
	AUTO(meta) struct meta *meta = NULL;
	struct err failed;

	if (meta_begin(hand->mirror->options.store, META_WRITE, &meta, &failed) == 0 &&
	    mirror_record_del_tag(meta, task->place.key, str_of(task->name), &failed) >= 0)
		(void)!meta_commit(steal_ptr(&meta), &failed);
	*err = *why;
	return -1;
}

static int mirror_manifest_fetch_tag(struct mirror_hand *hand, struct mirror_task *task,
				     struct err *err)
{
	AUTO(mirror_document) struct mirror_document document = {.text = BUF_INIT(MANIFEST_MAX)};

	if (mirror_manifest_fetch(hand, task->name, NULL, &document, err) < 0 ||
	    mirror_manifest_keep(hand, &document, err) < 0)
		return -1;
	task->digest = document.digest;
	return 0;
}

/* Whether a tag that is new here may well be another one's: a HEAD spends no quota. 1, 0 or -1. */
static int mirror_manifest_may_be_held(const struct mirror_hand *hand, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(hand->mirror->options.store, META_READ, &meta, err) < 0)
		return -1;
	return repository_exists(meta, str_of(hand->task->place.key), err);
}

int mirror_fetch_tag(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	struct digest held;
	struct err why = {0};
	bool fresh = false;
	int known = mirror_manifest_find_tag(hand, &held, &fresh, err);
	int result = known == 0 ? mirror_manifest_may_be_held(hand, err) : known;

	if (result < 0)
		return -1;
	if (fresh) {
		task->digest = held;
		return 0;
	}
	if (result == 1) {
		result = mirror_manifest_renew_tag(hand, known == 1 ? &held : NULL, &task->digest,
						   &why);
		if (result == 1)
			return 0;
	}
	if (result == 0 && mirror_manifest_fetch_tag(hand, task, &why) == 0)
		return 0;
	if (why.kind == ERR_NOT_FOUND)
		return mirror_manifest_forget_tag(hand, &why, err);
	*err = why;
	return -1;
}
