/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_list.c - what an upstream lists: its tags, and what refers to a digest.
 * All pages of it are one list here.
 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"
#include "registry/fetch_priv.h"
#include "registry/grammar.h"
#include "registry/link_priv.h"

#include <stdio.h>

#define LIST_PAGES_MAX 100 /* of a list; one that goes on for ever is none */
#define LIST_BYTES_MAX (META_VALUE_MAX / 2)
#define LIST_PAGE "list?n=1000"

/* The address of the next page. False where this is the last. */
static bool mirror_list_next(const struct http_reply *reply, const char *base, struct buf *out)
{
	struct str link = link_find(http_header(reply, "Link"), STR("next"));
	struct err ignored;

	buf_clear(out);
	return link.len > 0 && url_join(base, link, out, &ignored) == 0;
}

/* Add a page's array to the list. */
static int mirror_list_add(json_t *list, struct str text, const char *key, size_t *left,
			   struct err *err)
{
	AUTO(json) json_t *page = NULL;
	json_t *items = NULL;
	struct err why;

	if (text.len > *left)
		return err_set(err, ERR_LIMIT, "the upstream's list is longer than %zu bytes",
			       LIST_BYTES_MAX);
	*left -= text.len;
	if (json_parse(text, LIST_BYTES_MAX, &page, &why) < 0 || !json_is_object(page) ||
	    json_get_array(page, "", key, &items, &why) < 0)
		return err_set(err, ERR_CORRUPT, "what the upstream sent is no list of %s", key);
	if (items && json_array_extend(list, items) < 0)
		abort();
	return 0;
}

struct list_question {
	const char *kind;
	const char *name;
	const char *key; /* of the array, in each page */
	const char *accept;
};

static int mirror_list_fetch(struct mirror_hand *hand, const struct list_question *question,
			     json_t *list, struct http_reply *reply, struct err *err)
{
	auto_buf struct buf base = BUF_INIT(HTTP_URL_MAX);
	auto_buf struct buf next = BUF_INIT(HTTP_URL_MAX);
	auto_buf struct buf text = BUF_INIT(LIST_BYTES_MAX);
	struct buf_sink body = BUF_SINK(&text);
	struct remote_request request = {.method = HTTP_GET,
					 .kind = question->kind,
					 .name = question->name,
					 .document = true,
					 .accept = question->accept,
					 .body = &body.sink};
	size_t left = LIST_BYTES_MAX;

	if (remote_base(mirror_remote_get(hand->remote), &base, err) < 0)
		return -1;
	for (int pages = 0; pages < LIST_PAGES_MAX; pages++) {
		buf_clear(&text);
		if (mirror_ask(hand, &request, reply, err) < 0 ||
		    mirror_list_add(list, buf_str(&text), question->key, &left, err) < 0)
			return -1;
		if (!mirror_list_next(reply, base.ptr, &next))
			return 0;
		request.url = next.ptr;
	}
	return err_set(err, ERR_CORRUPT, "the upstream's list has no end");
}

static int mirror_list_keep(struct mirror_hand *hand, struct str what, json_t *list,
			    struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(hand->mirror->options.store, META_SHARED, &meta, err) < 0 ||
	    mirror_record_put_list(meta, hand->task->place.key, what, list, clock_now_ms(), err) <
		    0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* Whether it came since its asker looked. 1, 0 or -1. */
static int mirror_list_is_here(struct mirror_hand *hand, struct err *err)
{
	const struct mirror_task *task = hand->task;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *list = NULL;
	int64_t at_ms = 0;
	int found;

	if (meta_begin(hand->mirror->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = mirror_record_find_list(meta, task->place.key, str_of(task->name), &list, &at_ms,
					err);
	return found == 1 ? mirror_is_fresh(&task->place, at_ms) : found;
}

static json_t *mirror_list_new(void)
{
	json_t *list = json_array();

	if (!list)
		abort();
	return list;
}

static int mirror_list_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of their bytes, each once; what is no tag is left out. */
static json_t *mirror_list_sort_tags(json_t *tags)
{
	size_t count = json_array_size(tags);
	auto_free const char **sorted = calloc(count + 1, sizeof(*sorted));
	json_t *out = mirror_list_new();
	size_t n = 0;

	if (!sorted)
		abort();
	for (size_t i = 0; i < count; i++) {
		const char *tag = json_string_value(json_array_get(tags, i));

		if (tag && grammar_is_tag(str_of(tag)))
			sorted[n++] = tag;
	}
	qsort(sorted, n, sizeof(*sorted), mirror_list_compare);
	for (size_t i = 0; i < n; i++) {
		if ((i == 0 || mirror_list_compare(&sorted[i - 1], &sorted[i]) != 0) &&
		    json_array_append_new(out, json_string(sorted[i])) < 0)
			abort();
	}
	return out;
}

int mirror_fetch_tags(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	static const struct list_question question = {"tags", LIST_PAGE, "tags",
						      "application/json, */*"};
	auto_http_reply struct http_reply reply = {0};
	AUTO(json) json_t *tags = mirror_list_new();
	AUTO(json) json_t *sorted = NULL;
	int here = mirror_list_is_here(hand, err);

	if (here != 0)
		return here < 0 ? -1 : 0;
	if (mirror_list_fetch(hand, &question, tags, &reply, err) < 0)
		return -1;
	sorted = mirror_list_sort_tags(tags);
	return mirror_list_keep(hand, str_of(task->name), sorted, err);
}

/* A registry without the API has an index of them under a tag, or nothing. */
static int mirror_list_fetch_fallback(struct mirror_hand *hand, json_t *list, struct err *err)
{
	char name[DIGEST_TEXT_MAX];
	const struct list_question question = {"manifests", name, "manifests", FETCH_ACCEPT};
	auto_http_reply struct http_reply reply = {0};

	(void)snprintf(name, sizeof(name), "%s", hand->task->name);
	*strchr(name, ':') = '-';
	name[sizeof("sha256-") - 1 + 64] = '\0'; /* of a sha512 no more */
	if (mirror_list_fetch(hand, &question, list, &reply, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : -1;
	return 0;
}

int mirror_fetch_referrers(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	const struct list_question question = {"referrers", task->name, "manifests",
					       MEDIA_OCI_INDEX ", */*"};
	auto_http_reply struct http_reply reply = {0};
	AUTO(json) json_t *list = mirror_list_new();
	int here = mirror_list_is_here(hand, err);

	if (here != 0)
		return here < 0 ? -1 : 0;
	if (mirror_list_fetch(hand, &question, list, &reply, err) < 0) {
		bool unknown = reply.status >= 400 && reply.status < 500 &&
			       !retry_status(reply.status) && err->kind != ERR_UNAUTHORIZED &&
			       err->kind != ERR_DENIED;

		(void)json_array_clear(list);
		if (!unknown || mirror_list_fetch_fallback(hand, list, err) < 0)
			return -1;
	}
	return mirror_list_keep(hand, str_of(task->name), list, err);
}
