/* SPDX-License-Identifier: Apache-2.0 */
/* What is about an image goes where the image goes, and is listed there: to and from a stand-in. */
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/pull.h"
#include "registry/push.h"
#include "registry/referrers.h"
#include "registry/referrers_remote_priv.h"
#include "registry/repository.h"
#include "tests/layers/store_fixture.h"
#include "tests/registry/standin.h"

#include <stdio.h>
#include <string.h>

#define SHELF_MAX 32

struct document {
	char name[256]; /* a tag or a digest */
	struct buf text;
};

/* A registry of manifests; whatever blob it is asked for it has, and it is {}. */
struct shelf {
	struct store_fixture *from;
	struct store_fixture *to;
	struct standin server;
	struct cancel cancel;
	char host[64];
	bool api;          /* it has the referrers API, */
	bool pages;        /* with one manifest to a page */
	bool tags_at_once; /* it puts the tags of a query */
	bool refuses_tags; /* it refuses a query */
	struct document documents[SHELF_MAX];
	size_t count;
	int puts;
	int found; /* referrers that a pull told of */
};

static struct document *shelf_find(struct shelf *shelf, struct str name)
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

static int shelf_new(void **state)
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

static int shelf_free(void **state)
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

/* A manifest of one empty config; about another, if that is not NULL. */
static void make(struct store *store, const char *type, const struct digest *subject,
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

static int send(struct shelf *shelf, const struct push_spec *asked, const char *name,
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

/* The index under the tag of what is about a digest, as text; "" for none. */
static const char *tagged(struct shelf *shelf, const struct digest *subject)
{
	char tag[REFERRERS_TAG_MAX];
	const struct document *document =
		shelf_find(shelf, str_of(referrers_remote_tag(subject, tag)));

	return document ? document->text.ptr : "";
}

static void a_tag_lists_what_is_about_an_image(void **state)
{
	struct shelf *shelf = *state;
	struct store *store = shelf->from->store;
	struct digest image;
	struct digest digests[2];
	struct push_spec spec = {.referrers = digests, .referrer_count = 2};
	char expected[1024];
	char first[DIGEST_TEXT_MAX];
	char second[DIGEST_TEXT_MAX];
	struct err err = {0};

	make(store, "i/image", NULL, &image);
	make(store, "s/signature", &image, &digests[0]);
	make(store, "b/bill", &image, &digests[1]);
	spec.manifest = image;
	check_ok(send(shelf, &spec, ":1", &err), &err);
	(void)digest_format(&digests[0], first);
	(void)digest_format(&digests[1], second);
	(void)snprintf(
		expected, sizeof(expected),
		"{\"manifests\":[{\"annotations\":{\"of\":\"s/signature\"},\"artifactType\":"
		"\"s/signature\",\"digest\":\"%s\",\"mediaType\":\"" MEDIA_OCI_MANIFEST
		"\",\"size\":%zu},{\"annotations\":{\"of\":\"b/bill\"},\"artifactType\":\"b/bill\","
		"\"digest\":\"%s\",\"mediaType\":\"" MEDIA_OCI_MANIFEST
		"\",\"size\":%zu}],\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"schemaVersion\":2}",
		first, shelf_find(shelf, str_of(first))->text.len, second,
		shelf_find(shelf, str_of(second))->text.len);
	assert_string_equal(tagged(shelf, &image), expected);
	assert_int_equal(shelf->puts, 5); /* the tag's is put for each */
	check_ok(send(shelf, &spec, ":1", &err), &err);
	assert_int_equal(shelf->puts, 0);
	assert_string_equal(tagged(shelf, &image), expected);
}

static void a_registry_that_knows_subjects_needs_no_tag(void **state)
{
	struct shelf *shelf = *state;
	struct digest image;
	struct digest about;
	struct push_spec spec = {.referrers = &about, .referrer_count = 1};
	struct err err = {0};

	shelf->api = true;
	make(shelf->from->store, "i/image", NULL, &image);
	make(shelf->from->store, "s/signature", &image, &about);
	spec.manifest = image;
	check_ok(send(shelf, &spec, ":1", &err), &err);
	assert_int_equal(shelf->puts, 2);
	assert_string_equal(tagged(shelf, &image), "");
}

static void tags_are_put_at_once_where_that_can_be(void **state)
{
	static const struct str tags[] = {STR("2"), STR("3"), STR("latest")};
	static const struct {
		bool at_once;
		bool refuses;
		int puts;
	} cases[] = {{true, false, 2}, {false, false, 5}, {false, true, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shelf *shelf;
		struct push_spec spec = {.tags = tags, .tag_count = 3};
		struct err err = {0};

		assert_int_equal(shelf_free(state), 0);
		assert_int_equal(shelf_new(state), 0);
		shelf = *state;
		shelf->tags_at_once = cases[i].at_once;
		shelf->refuses_tags = cases[i].refuses;
		make(shelf->from->store, "i/image", NULL, &spec.manifest);
		check_ok(send(shelf, &spec, ":1", &err), &err);
		assert_int_equal(shelf->puts, cases[i].puts);
		for (size_t j = 0; j < 3; j++)
			assert_non_null(shelf_find(shelf, tags[j]));
		check_ok(send(shelf, &spec, ":1", &err), &err);
		assert_int_equal(shelf->puts, 0);
	}
}

static void hears(void *ctx, const struct pull_event *event)
{
	struct shelf *shelf = ctx;

	shelf->found += event->kind == PULL_REFERRER;
}

static int gather(struct shelf *shelf, struct err *err)
{
	struct reference reference;
	struct pull_spec spec = {.reference = &reference,
				 .bare = true,
				 .all_platforms = true,
				 .referrers = true,
				 .event = hears,
				 .event_ctx = shelf,
				 .cancel = &shelf->cancel};
	char text[256];
	struct tag tag;

	(void)snprintf(text, sizeof(text), "%s/acme/tool:1", shelf->host);
	check_ok(reference_parse(str_of(text), &reference, err), err);
	return pull_image(shelf->to->store, &spec, &tag, err);
}

/* A signature of the image, a bill of it, and a signature of that bill. */
static void what_is_about_an_image_comes_with_it(void **state)
{
	static const struct {
		bool api;
		bool pages;
	} cases[] = {{false, false}, {true, false}, {true, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct digest digests[3];
		struct push_spec spec = {.referrers = digests, .referrer_count = 3};
		struct blob_info info;
		struct shelf *shelf;
		struct err err = {0};

		assert_int_equal(shelf_free(state), 0);
		assert_int_equal(shelf_new(state), 0);
		shelf = *state;
		shelf->api = cases[i].api;
		shelf->pages = cases[i].pages;
		make(shelf->from->store, "i/image", NULL, &spec.manifest);
		make(shelf->from->store, "s/signature", &spec.manifest, &digests[0]);
		make(shelf->from->store, "b/bill", &spec.manifest, &digests[1]);
		make(shelf->from->store, "s/signature", &digests[1], &digests[2]);
		check_ok(send(shelf, &spec, ":1", &err), &err);
		check_ok(gather(shelf, &err), &err);
		assert_int_equal(shelf->found, 3);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(blob_find(shelf->to->store, &digests[j], &info, &err), 1);
	}
}

/* As a push to us leaves it. */
static void record(struct store *store, const struct digest *digest)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item = {.kind = REPOSITORY_MANIFEST,
				       .source = REPOSITORY_PUSHED,
				       .digest = *digest,
				       .blob = *digest,
				       .at_ms = clock_now_ms(),
				       .media_type = MEDIA_OCI_MANIFEST};
	struct err err = {0};

	check_ok(blob_read_all(store, digest, &text, &err), &err);
	item.size = text.len;
	check_ok(outline_parse(buf_str(&text), &outline, &err), &err);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put_manifest(meta, STR("acme/tool"), &item, &outline, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void the_store_knows_what_was_pushed_to_it(void **state)
{
	struct shelf *shelf = *state;
	struct store *store = shelf->from->store;
	auto_free struct digest *found = NULL;
	struct digest image;
	struct digest digests[3];
	size_t count;
	struct err err = {0};

	make(store, "i/image", NULL, &image);
	make(store, "s/signature", &image, &digests[0]);
	make(store, "s/signature", &digests[0], &digests[1]);
	make(store, "o/other", NULL, &digests[2]);
	for (size_t i = 0; i < 3; i++)
		record(store, &digests[i]);
	check_ok(referrers_find(store, &image, &found, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_true(digest_equal(&found[0], &digests[0]));
	assert_true(digest_equal(&found[1], &digests[1]));
}

static void the_tag_is_made_of_the_digest(void **state)
{
	char tag[REFERRERS_TAG_MAX];
	struct digest digest;
	struct err err = {0};

	(void)state;
	digest_of(STR(""), &digest);
	assert_string_equal(
		referrers_remote_tag(&digest, tag),
		"sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_ok(
		digest_parse(STR("sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d3"
				 "6ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af9"
				 "27da3e"),
			     &digest, &err),
		&err);
	assert_string_equal(
		referrers_remote_tag(&digest, tag),
		"sha512-cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shelf_new, shelf_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tag_lists_what_is_about_an_image),
		TEST(a_registry_that_knows_subjects_needs_no_tag),
		TEST(tags_are_put_at_once_where_that_can_be),
		TEST(what_is_about_an_image_comes_with_it),
		TEST(the_store_knows_what_was_pushed_to_it),
		TEST(the_tag_is_made_of_the_digest),
	};

	return cmocka_run_group_tests_name("registry/referrers", tests, NULL, NULL);
}
