/* SPDX-License-Identifier: Apache-2.0 */
/* mirror_answer_list.c - tags and referrers of a mirrored repository, as its upstream lists them.
 */
#include "registry/mirror_answer_priv.h"

#include "registry/v2_page.h"

#define LIST_TAGS "tags"

/* What the upstream said, if it did; fresh: it need not be asked. 1, 0 or -1. */
static int mirror_answer_list_find(const struct v2_call *call, const struct mirror_wish *wish,
				   json_t **out, bool *out_fresh, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int64_t at_ms = 0;
	int found;

	if (meta_begin(call->v2->store, META_READ, &meta, err) < 0)
		return -1;
	found = mirror_record_find_list(meta, wish->place->key, wish->name, out, &at_ms, err);
	*out_fresh = mirror_is_fresh(wish->place, at_ms);
	return found;
}

/* Of an upstream that never listed its tags: those that were asked for. 1 there are some. */
static int mirror_answer_list_find_own(const struct v2_call *call, const struct mirror_wish *wish,
				       json_t **out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (wish->kind != MIRROR_TAGS || meta_begin(call->v2->store, META_READ, &meta, err) < 0 ||
	    mirror_record_list_tags(meta, wish->place->key, out, err) < 0)
		return -1;
	return json_array_size(*out) > 0;
}

/* 1 and the list, 0 the call waits, -1 and why there is none. */
static int mirror_answer_list_get(struct v2_call *call, const struct mirror_wish *wish,
				  json_t **out, struct err *err)
{
	AUTO(json) json_t *held = NULL;
	bool fresh = false;
	int found = mirror_answer_list_find(call, wish, &held, &fresh, err);
	int result;
	struct err why;

	if (found < 0)
		return -1;
	if (found == 1 && fresh) {
		mirror_count_hit(call, wish->place);
		*out = steal_ptr(&held);
		return 1;
	}
	result =
		mirror_visit_ask(call, wish, found == 1 ? MIRROR_PATIENCE_MS : MIRROR_WAIT_MS, err);
	if (result == 0)
		return 0;
	if (result == 1)
		return mirror_answer_list_find(call, wish, out, &fresh, err);
	if (mirror_is_no(err))
		return -1;
	if (found == 0 && mirror_answer_list_find_own(call, wish, &held, &why) < 1)
		return -1;
	mirror_mark_stale(call, wish->place);
	*out = steal_ptr(&held);
	return 1;
}

static void mirror_answer_list_send(struct v2_call *call, const char *type, const json_t *body)
{
	auto_free char *text = json_dumps(body, JSON_COMPACT);

	if (!text)
		abort();
	http_set_body(call->response, type, str_of(text));
}

/* Tags */

static bool mirror_answer_list_is_after(const json_t *tag, struct str last)
{
	struct str name = json_str(tag);
	size_t len = name.len < last.len ? name.len : last.len;
	int order = len > 0 ? memcmp(name.ptr, last.ptr, len) : 0;

	return order > 0 || (order == 0 && name.len > last.len);
}

/* The next page is asked for by the same way. */
static void mirror_answer_list_add_link(struct v2_call *call, const struct v2_page *page,
					struct str last)
{
	auto_buf struct buf query = BUF_INIT(V2_PAGE_LINK_MAX);
	struct str ns = call->path.ns;
	struct err full;

	if (ns.len > 0 &&
	    (buf_add(&query, STR("&ns="), &full) < 0 || v2_page_escape(ns, &query, &full) < 0))
		return;
	v2_page_link(call, page, last, buf_str(&query));
}

static void mirror_answer_list_send_tags(struct v2_call *call, const json_t *tags)
{
	AUTO(json)
	json_t *body =
		json_pack("{s:o, s:[]}", "name", json_from_str(call->path.repository), "tags");
	json_t *names = json_object_get(body, "tags");
	struct v2_page page;
	const json_t *tag;
	size_t i;

	if (v2_page_read(call, &page) < 0)
		return;
	json_array_foreach(tags, i, tag)
	{
		if (!mirror_answer_list_is_after(tag, page.last))
			continue;
		if (json_array_size(names) == page.max) {
			if (page.max > 0)
				mirror_answer_list_add_link(
					call, &page, json_str(json_array_get(names, page.max - 1)));
			break;
		}
		if (json_array_append(names, (json_t *)drop_const(tag)) < 0)
			abort();
	}
	mirror_answer_list_send(call, "application/json", body);
}

void mirror_answer_tags(struct v2_call *call, const struct mirror_place *place)
{
	const struct mirror_wish wish = {
		.kind = MIRROR_TAGS, .place = place, .name = STR(LIST_TAGS)};
	AUTO(json) json_t *tags = NULL;
	struct err err;
	int result = mirror_answer_list_get(call, &wish, &tags, &err);

	if (result < 0)
		mirror_refuse(call, place, &err);
	else if (result == 1)
		mirror_answer_list_send_tags(call, tags);
}

/* Referrers */

/* Those of one type, where one is asked for. */
static json_t *mirror_answer_list_filter(struct v2_call *call, json_t *descriptors)
{
	json_t *out = json_array();
	struct str type;
	json_t *one;
	size_t i;

	if (!out)
		abort();
	if (!v2_path_find(call->request, STR("artifactType"), &type) || type.len == 0) {
		if (json_array_extend(out, descriptors) < 0)
			abort();
		return out;
	}
	http_add_header(call->response, "OCI-Filters-Applied", STR("artifactType"));
	json_array_foreach(descriptors, i, one)
	{
		const json_t *its = json_object_get(one, "artifactType");

		if (json_is_string(its) && str_equal(json_str(its), type) &&
		    json_array_append(out, one) < 0)
			abort();
	}
	return out;
}

void mirror_answer_referrers(struct v2_call *call, const struct mirror_place *place)
{
	const struct mirror_wish wish = {.kind = MIRROR_REFERRERS,
					 .place = place,
					 .name = call->path.reference,
					 .digest = &call->path.digest};
	AUTO(json) json_t *descriptors = NULL;
	AUTO(json) json_t *body = NULL;
	struct err err;
	int result = mirror_answer_list_get(call, &wish, &descriptors, &err);

	if (result < 0)
		mirror_refuse(call, place, &err);
	if (result < 1)
		return;
	body = json_pack("{s:i, s:s, s:o}", "schemaVersion", 2, "mediaType", MEDIA_OCI_INDEX,
			 "manifests", mirror_answer_list_filter(call, descriptors));
	if (!body)
		abort();
	mirror_answer_list_send(call, MEDIA_OCI_INDEX, body);
}
