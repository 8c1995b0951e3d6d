/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/referrers_remote_priv.h"

#include "layers/digest_json.h"
#include "registry/fetch_priv.h"
#include "registry/referrers.h"
#include "registry/upload_priv.h"

#include <stdio.h>

/* Each descriptor's digest of an index. 0; -1, and *unread where it is none. */
static int referrers_read(struct str text, referrers_remote_fn *fn, void *ctx, bool *unread,
			  struct err *err)
{
	auto_outline struct outline outline = {0};

	*unread = outline_parse(text, &outline, err) < 0 || !outline.index;
	if (*unread)
		return err_set(err, ERR_REMOTE, "its list of referrers is no index");
	for (size_t i = 0; i < outline.count; i++) {
		if (fn(ctx, &outline.items[i].what.digest, err) < 0)
			return -1;
	}
	return 0;
}

/* 1 by the API; 0 this registry has none; -1. */
static int referrers_ask(struct remote *remote, struct http *http, const struct digest *subject,
			 referrers_remote_fn *fn, void *ctx, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf url = BUF_INIT(HTTP_URL_MAX);
	auto_http_reply struct http_reply response = {0};
	char name[DIGEST_TEXT_MAX];
	struct remote_request request = {.kind = "referrers",
					 .name = digest_format(subject, name),
					 .accept = MEDIA_OCI_INDEX};
	bool unread;

	for (int page = 0; page < REFERRERS_PAGES_MAX; page++) {
		int more;

		if (remote_get(remote, http, &request, "referrers", &text, &response, err) < 0)
			return page == 0 && response.status / 100 == 4 && response.status != 401 &&
					       response.status != 403 && response.status != 429
				       ? 0
				       : -1;
		if (referrers_read(buf_str(&text), fn, ctx, &unread, err) < 0)
			return unread && page == 0 ? 0 : -1;
		more = remote_next_page(remote, &request, &response, &url, err);
		if (more <= 0)
			return more < 0 ? -1 : 1;
		request.url = url.ptr;
	}
	return err_set(err, ERR_REMOTE, "its list of referrers has no end");
}

/* What the tag stands for: 1, 0 there is none, -1. */
static int referrers_fetch_tag(struct remote *remote, struct http *http,
			       const struct digest *subject, struct buf *out, struct err *err)
{
	char tag[REFERRERS_TAG_MAX];
	struct digest digest;

	if (fetch_manifest(remote, http, referrers_tag(subject, tag), out, &digest, err) == 0)
		return 1;
	return err->kind == ERR_NOT_FOUND ? 0 : -1;
}

int referrers_remote_each(struct remote *remote, struct http *http, const struct digest *subject,
			  referrers_remote_fn *fn, void *ctx, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	bool unread;
	int found = referrers_ask(remote, http, subject, fn, ctx, err);

	if (found == 0) {
		found = referrers_fetch_tag(remote, http, subject, &text, err);
		if (found == 1)
			found = referrers_read(buf_str(&text), fn, ctx, &unread, err);
	}
	return found < 0 ? err_ctx(err, "referrers of %s", digest_format(subject, name)) : 0;
}

/* As the referrers API describes a manifest. */
static json_t *referrers_describe(const struct outline *outline, struct str text,
				  const struct digest *digest)
{
	json_t *value = json_object();
	struct str type = outline->media_type.len > 0 ? outline->media_type : outline_type(outline);

	json_set(value, "mediaType", json_from_str(type));
	digest_json_set(value, "digest", digest);
	json_set_size(value, "size", text.len);
	if (outline->artifact_type.len > 0)
		json_set(value, "artifactType", json_from_str(outline->artifact_type));
	if (outline->annotations)
		json_set(value, "annotations", json_incref(outline->annotations));
	return value;
}

/* The tag's index, or a new one. Of what is no index nothing is kept. */
static json_t *referrers_load(struct str text)
{
	auto_outline struct outline outline = {0};
	struct err ignored;

	if (text.len > 0 && outline_parse(text, &outline, &ignored) == 0 && outline.index)
		return json_deep_copy(outline.document);
	return json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType", MEDIA_OCI_INDEX,
			 "manifests");
}

/* Whether it was not there before. */
static bool referrers_add(json_t *index, json_t *descriptor)
{
	json_t *list = json_object_get(index, "manifests");
	struct str digest = json_str(json_object_get(descriptor, "digest"));
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (str_equal(json_str(json_object_get(item, "digest")), digest))
			return false;
	}
	(void)json_array_append(list, descriptor);
	return true;
}

int referrers_remote_note(struct remote *remote, struct http *http, const struct outline *outline,
			  struct str text, struct err *err)
{
	const struct digest *subject = &outline->subject.digest;
	auto_buf struct buf before = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf after = BUF_INIT(MANIFEST_MAX);
	auto_http_reply struct http_reply response = {0};
	AUTO(json) json_t *descriptor = NULL;
	AUTO(json) json_t *index = NULL;
	char tag[REFERRERS_TAG_MAX];
	struct digest digest;

	(void)referrers_tag(subject, tag);
	digest_of(text, &digest);
	if (referrers_fetch_tag(remote, http, subject, &before, err) < 0)
		return err_ctx(err, "referrers' tag");
	descriptor = referrers_describe(outline, text, &digest);
	index = referrers_load(buf_str(&before));
	if (!referrers_add(index, descriptor))
		return 0;
	if (json_format(index, &after, err) < 0 ||
	    upload_document(remote, http, tag, STR(MEDIA_OCI_INDEX), buf_str(&after), &response,
			    err) < 0)
		return err_ctx(err, "referrers' tag");
	return 0;
}
