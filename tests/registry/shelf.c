/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/shelf.h"

#include "layers/blob.h"
#include "registry/manifest.h"

#include <stdio.h>
#include <string.h>

struct document *shelf_find(struct shelf *shelf, struct str name)
{
	for (size_t i = 0; i < shelf->count; i++) {
		if (str_equal(str_of(shelf->documents[i].name), name))
			return &shelf->documents[i];
	}
	return NULL;
}

static void shelf_put(struct shelf *shelf, struct str name, struct str text)
{
	struct document *document = shelf_find(shelf, name);
	struct err err = {0};

	if (!document) {
		assert_true(shelf->count < SHELF_MAX);
		document = &shelf->documents[shelf->count++];
		document->text = BUF_INIT(MANIFEST_MAX);
		(void)snprintf(document->name, sizeof(document->name), STR_FMT, STR_ARG(name));
	}
	buf_clear(&document->text);
	check_ok(buf_add(&document->text, text, &err), &err);
}

/* PUT manifests/NAME?tag=a&tag=b */
static void shelf_take(struct shelf *shelf, const struct standin_request *request, struct str name,
		       struct str query)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf headers = BUF_INIT(4096);
	const char *length = strstr(request->text, "Content-Length: ");
	struct str number = str_of(length ? length + 16 : "0");
	char digest[DIGEST_TEXT_MAX];
	struct digest named;
	struct str tag;
	struct err err = {0};
	uint64_t size = 0;

	shelf->puts++;
	(void)str_take_number(&number, &size);
	assert_true(standin_read_body(request, (size_t)size, &text, &err));
	if (query.len > 0 && shelf->refuses_tags) {
		standin_answer(request, "400 Bad", "", STR(""));
		return;
	}
	digest_of(buf_str(&text), &named);
	shelf_put(shelf, str_of(digest_format(&named, digest)), buf_str(&text));
	shelf_put(shelf, name, buf_str(&text));
	while (shelf->tags_at_once && str_cut(&query, '&', &tag)) {
		assert_true(str_starts(tag, STR("tag=")));
		tag = str_skip(tag, 4);
		shelf_put(shelf, tag, buf_str(&text));
		check_ok(buf_addf(&headers, &err, "%s" STR_FMT,
				  headers.len ? ", " : "OCI-Tag: ", STR_ARG(tag)),
			 &err);
	}
	if (headers.len > 0)
		check_ok(buf_addf(&headers, &err, "\r\n"), &err);
	if (shelf->api && memmem(text.ptr, text.len, "\"subject\"", 9))
		check_ok(buf_addf(&headers, &err, "OCI-Subject: sha256:x\r\n"), &err);
	standin_answer(request, "201 Created", headers.len > 0 ? headers.ptr : "", STR(""));
}

static void shelf_give(struct shelf *shelf, const struct standin_request *request, struct str name)
{
	const struct document *document = shelf_find(shelf, name);
	char digest[DIGEST_TEXT_MAX];
	struct digest named;

	if (!document) {
		standin_answer(request, "404 Not Found", "", STR(""));
		return;
	}
	digest_of(buf_str(&document->text), &named);
	standin_say(request,
		    "HTTP/1.1 200 OK\r\nDocker-Content-Digest: %s\r\nContent-Length: %zu\r\n"
		    "Connection: close\r\n\r\n%s",
		    digest_format(&named, digest), document->text.len,
		    strcmp(request->method, "HEAD") == 0 ? "" : document->text.ptr);
}

/* The API: who names this digest as a subject, one to a page perhaps. */
static void shelf_list(struct shelf *shelf, const struct standin_request *request,
		       struct str subject, struct str query)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	size_t from = query.len > 0 ? (size_t)(query.ptr[query.len - 1] - '0') : 0;
	char link[64] = "";
	struct err err = {0};
	size_t number = 0;
	int listed = 0;

	check_ok(buf_addf(&text, &err, "{\"schemaVersion\":2,\"manifests\":["), &err);
	for (size_t i = 0; i < shelf->count; i++) {
		const struct document *document = &shelf->documents[i];
		bool about =
			strncmp(document->name, "sha256:", 7) == 0 &&
			strstr(document->text.ptr, "\"subject\"") &&
			memmem(document->text.ptr, document->text.len, subject.ptr, subject.len);

		if (!about || number++ < from)
			continue;
		if (shelf->pages && listed == 1) {
			(void)snprintf(link, sizeof(link), "Link: <?from=%zu>; rel=\"next\"\r\n",
				       number - 1);
			break;
		}
		check_ok(buf_addf(&text, &err,
				  "%s{\"mediaType\":\"" MEDIA_OCI_MANIFEST
				  "\",\"digest\":\"%s\",\"size\":%zu}",
				  listed++ > 0 ? "," : "", document->name, document->text.len),
			 &err);
	}
	check_ok(buf_addf(&text, &err, "]}"), &err);
	standin_answer(request, "200 OK", link, buf_str(&text));
}

static void shelf_serve(void *ctx, const struct standin_request *request)
{
	struct shelf *shelf = ctx;
	struct str query = str_of(request->target);
	struct str path;
	struct str name;

	(void)str_cut(&query, '?', &path);
	if (str_starts(path, STR("/v2/acme/tool/blobs/"))) {
		standin_say(request,
			    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n%s",
			    strcmp(request->method, "HEAD") == 0 ? "" : "{}");
	} else if (str_starts(path, STR("/v2/acme/tool/referrers/")) && shelf->api) {
		shelf_list(shelf, request, str_skip(path, strlen("/v2/acme/tool/referrers/")),
			   query);
	} else if (str_starts(path, STR("/v2/acme/tool/manifests/"))) {
		name = str_skip(path, strlen("/v2/acme/tool/manifests/"));
		if (strcmp(request->method, "PUT") == 0)
			shelf_take(shelf, request, name, query);
		else
			shelf_give(shelf, request, name);
	} else {
		standin_answer(request, "404 Not Found", "", STR("page not found"));
	}
}

int shelf_new(void **state)
{
	struct shelf *shelf = calloc(1, sizeof(*shelf));
	struct err err = {0};
	void *fixture = NULL;

	assert_non_null(shelf);
	assert_int_equal(store_fixture_open(&fixture), 0);
	shelf->from = fixture;
	assert_int_equal(store_fixture_open(&fixture), 0);
	shelf->to = fixture;
	check_ok(cancel_init(&shelf->cancel, &err), &err);
	standin_start(&shelf->server, shelf_serve, shelf);
	(void)snprintf(shelf->host, sizeof(shelf->host), "127.0.0.1:%u", shelf->server.port);
	*state = shelf;
	return 0;
}

int shelf_free(void **state)
{
	struct shelf *shelf = *state;
	void *from = shelf->from;
	void *to = shelf->to;

	standin_stop(&shelf->server);
	cancel_done(&shelf->cancel);
	for (size_t i = 0; i < shelf->count; i++)
		buf_done(&shelf->documents[i].text);
	free(shelf);
	return store_fixture_close(&from) | store_fixture_close(&to);
}

struct shelf *shelf_again(void **state)
{
	assert_int_equal(shelf_free(state), 0);
	assert_int_equal(shelf_new(state), 0);
	return *state;
}

void shelf_make(struct store *store, const char *type, const struct digest *subject,
		struct digest *out)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	struct digest config;
	struct err err = {0};

	check_ok(blob_put(store, STR("{}"), &config, &err), &err);
	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"artifactType\":\"%s\",\"config\":{\"mediaType\":\"a/b\",\"digest\":"
			  "\"%s\",\"size\":2},\"layers\":[],\"annotations\":{\"of\":\"%s\"}",
			  type, digest_format(&config, name), type),
		 &err);
	if (subject)
		check_ok(buf_addf(&text, &err,
				  ",\"subject\":{\"mediaType\":\"" MEDIA_OCI_MANIFEST
				  "\",\"digest\":\"%s\",\"size\":9}",
				  digest_format(subject, name)),
			 &err);
	check_ok(buf_addf(&text, &err, "}"), &err);
	check_ok(blob_put(store, buf_str(&text), out, &err), &err);
}

int shelf_send(struct shelf *shelf, const struct push_spec *asked, const char *name,
	       struct err *err)
{
	struct push_spec spec = *asked;
	struct reference reference;
	struct digest digest;
	char text[256];

	(void)snprintf(text, sizeof(text), "%s/acme/tool%s", shelf->host, name);
	check_ok(reference_parse(str_of(text), &reference, err), err);
	spec.reference = &reference;
	spec.cancel = &shelf->cancel;
	shelf->puts = 0;
	return push_image(shelf->from->store, &spec, &digest, err);
}
