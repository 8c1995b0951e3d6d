/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_referrers.h"
#include "tests/registry/v2_desk.h"

#include <stdlib.h>

#define LARGE ((size_t)300 * 1024)
#define EMPTY_TYPE "application/vnd.oci.empty.v1+json"

/* Put a manifest about the subject; extra are more of its members, ",..." or "". */
static struct stock refer(struct v2_desk *desk, const struct stock *subject, const char *config,
			  const char *extra, enum digest_algorithm algorithm)
{
	struct stock empty = v2_stock_blob(desk, "a", "{}", algorithm);
	size_t size = strlen(extra) + 2048;
	auto_free char *text = malloc(size);
	struct stock stock;
	char target[512];

	assert_non_null(text);
	(void)snprintf(text, size,
		       "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"config\":%s,\"subject\":%s%s}",
		       MEDIA_OCI_MANIFEST, stock_descriptor(&empty, config),
		       stock_descriptor(subject, MEDIA_OCI_MANIFEST), extra);
	stock = stock_absent(text, algorithm);
	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", stock.name);
	(void)v2_ask(desk, HTTP_PUT, target, MEDIA_OCI_MANIFEST, str_of(text));
	v2_check_status(desk, 201);
	assert_string_equal(v2_header(desk, "OCI-Subject"), subject->name);
	return stock;
}

/* The entries; the caller releases them. */
static json_t *list(struct v2_desk *desk, const struct stock *subject, const char *query)
{
	AUTO(json) json_t *index = NULL;
	char target[1024];
	struct err err = {0};

	(void)snprintf(target, sizeof(target), "/v2/a/referrers/%s%s", subject->name, query);
	(void)v2_get(desk, target);
	v2_check_status(desk, 200);
	assert_string_equal(v2_header(desk, "Content-Type"), MEDIA_OCI_INDEX);
	check_ok(json_parse(buf_str(&desk->response.body), HTTP_ANSWER_MAX, &index, &err), &err);
	assert_int_equal(json_integer_value(json_object_get(index, "schemaVersion")), 2);
	assert_string_equal(json_string_value(json_object_get(index, "mediaType")),
			    MEDIA_OCI_INDEX);
	return json_incref(json_object_get(index, "manifests"));
}

static size_t count(struct v2_desk *desk, const struct stock *subject, const char *query)
{
	AUTO(json) json_t *entries = list(desk, subject, query);

	return json_array_size(entries);
}

static const json_t *entry_of(const json_t *entries, const struct stock *stock)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "digest")), stock->name) == 0)
			return entry;
	}
	return NULL;
}

static const char *word(const json_t *entry, const char *key)
{
	return json_string_value(json_object_get(entry, key));
}

static void nothing_refers_to_what_is_unknown(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock subject = stock_absent("nobody", v2_both[i]);

		assert_int_equal(count(&desk, &subject, ""), 0);
	}
}

static void who_refers_is_described(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock subject = stock_absent("later", v2_both[i]);
		struct stock plain = refer(&desk, &subject, "text/x-config", "", v2_both[i]);
		struct stock typed = refer(&desk, &subject, EMPTY_TYPE,
					   ",\"artifactType\":\"text/x+y\",\"annotations\":"
					   "{\"k\":\"v\"}",
					   v2_both[i]);
		AUTO(json) json_t *entries = list(&desk, &subject, "");
		AUTO(json) json_t *some = NULL;
		const json_t *entry = entry_of(entries, &plain);

		assert_int_equal(json_array_size(entries), 2);
		assert_null(v2_header(&desk, "OCI-Filters-Applied"));
		assert_string_equal(word(entry, "artifactType"), "text/x-config");
		assert_string_equal(word(entry, "mediaType"), MEDIA_OCI_MANIFEST);
		assert_int_equal(json_integer_value(json_object_get(entry, "size")), plain.size);
		entry = entry_of(entries, &typed);
		assert_string_equal(word(entry, "artifactType"), "text/x+y");
		assert_string_equal(word(json_object_get(entry, "annotations"), "k"), "v");
		some = list(&desk, &subject, "?artifactType=text/x+y");
		assert_string_equal(v2_header(&desk, "OCI-Filters-Applied"), "artifactType");
		assert_int_equal(json_array_size(some), 1);
		assert_non_null(entry_of(some, &typed));
		assert_int_equal(count(&desk, &subject, "?artifactType="),
				 count(&desk, &subject, ""));
		assert_int_equal(count(&desk, &subject, "?artifactType=text/z"), 0);
	}
}

static void an_index_that_refers_has_no_type_of_its_own(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock subject = stock_absent("later", DIGEST_SHA256);
	AUTO(json) json_t *entries = NULL;
	char text[1024];

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[],\"subject\":%s}",
		       stock_descriptor(&subject, MEDIA_OCI_MANIFEST));
	(void)v2_ask(&desk, HTTP_PUT, "/v2/a/manifests/x", MEDIA_OCI_INDEX, str_of(text));
	v2_check_status(&desk, 201);
	entries = list(&desk, &subject, "");
	assert_int_equal(json_array_size(entries), 1);
	assert_null(json_object_get(json_array_get(entries, 0), "artifactType"));
}

static void who_is_deleted_refers_to_nothing(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock subject = stock_absent("later", v2_both[i]);
		struct stock stock = refer(&desk, &subject, "text/x", "", v2_both[i]);
		char target[512];

		assert_int_equal(count(&desk, &subject, ""), 1);
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", stock.name);
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, target, NULL, STR("")), 202);
		assert_int_equal(count(&desk, &subject, ""), 0);
	}
}

/* The path of the next page, without its server; false at the end. */
static bool next_page(const struct v2_desk *desk, char out[1024])
{
	const char *link = v2_header(desk, "Link");
	const char *end = link ? strchr(link, '>') : NULL;

	if (!end)
		return false;
	assert_true(link[0] == '<' && link[1] == '/');
	assert_string_equal(end, ">; rel=\"next\"");
	(void)snprintf(out, 1024, "%.*s", (int)(end - link - 1), link + 1);
	return true;
}

static size_t count_pages(struct v2_desk *desk, const struct stock *subject, const char *query,
			  size_t *out_pages)
{
	size_t all = count(desk, subject, query);
	char target[1024];

	*out_pages = 1;
	while (next_page(desk, target)) {
		const char *rest = strchr(target, '?');

		assert_non_null(rest);
		all += count(desk, subject, rest);
		++*out_pages;
		assert_true(*out_pages < 100);
	}
	return all;
}

static void a_long_list_comes_in_pages(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock subject = stock_absent("later", DIGEST_SHA256);
	char extra[128];
	size_t pages;

	for (int i = 0; i < 7; i++) {
		(void)snprintf(extra, sizeof(extra), ",\"annotations\":{\"n\":\"%d\"}", i);
		(void)refer(&desk, &subject, i % 2 ? "text/x" : "text/y", extra, DIGEST_SHA256);
	}
	assert_int_equal(count_pages(&desk, &subject, "?n=3", &pages), 7);
	assert_int_equal(pages, 3);
	assert_int_equal(count_pages(&desk, &subject, "?n=2&artifactType=text/x", &pages), 3);
	assert_int_equal(pages, 2);
	assert_int_equal(count_pages(&desk, &subject, "?n=0", &pages), 0);
}

/* No client has to take an index of more than 4 MiB. */
static void large_entries_come_in_pages_unasked(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock subject = stock_absent("later", DIGEST_SHA256);
	auto_free char *extra = malloc(2 * LARGE);
	size_t pages;

	assert_non_null(extra);
	for (int i = 0; i < 5; i++) {
		int n = snprintf(extra, 1024, ",\"annotations\":{\"n\":\"%d", i);

		memset(extra + n, 'x', LARGE);
		(void)snprintf(extra + n + LARGE, 16, "\"}");
		(void)refer(&desk, &subject, "text/x", extra, DIGEST_SHA256);
	}
	assert_int_equal(count_pages(&desk, &subject, "", &pages), 5);
	assert_int_equal(pages, 2);
	assert_true(desk.response.body.len < 2 * V2_REFERRERS_BYTES);
}

/* An index that clients of old put under the fallback's tag. */
static void what_the_fallbacks_tag_lists_is_listed(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock subject = stock_absent("later", v2_both[i]);
		struct stock other = stock_absent("other", v2_both[i]);
		struct stock ours = refer(&desk, &subject, "text/x", "", v2_both[i]);
		struct stock theirs = refer(&desk, &other, "text/y", "", v2_both[i]);
		struct stock gone = refer(&desk, &other, "text/z", "", v2_both[i]);
		char target[1024];
		char text[2048];
		size_t pages;

		(void)snprintf(
			text, sizeof(text),
			"{\"schemaVersion\":2,\"mediaType\":\"%s\",\"manifests\":[%s,%s,%s]}",
			MEDIA_OCI_INDEX, stock_descriptor(&ours, MEDIA_OCI_MANIFEST),
			stock_descriptor(&gone, MEDIA_OCI_MANIFEST),
			stock_descriptor(&theirs, MEDIA_OCI_MANIFEST));
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%.6s-%.64s", subject.name,
			       subject.name + 7);
		(void)v2_ask(&desk, HTTP_PUT, target, MEDIA_OCI_INDEX, str_of(text));
		v2_check_status(&desk, 201);
		assert_int_equal(count(&desk, &subject, ""), 3);
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", gone.name);
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, target, NULL, STR("")), 202);
		assert_int_equal(count(&desk, &subject, ""), 2);
		assert_int_equal(count_pages(&desk, &subject, "?n=1", &pages), 2);
		assert_int_equal(pages, 2);
		assert_int_equal(count(&desk, &other, ""), 1);
	}
}

static void a_subject_that_is_none_is_refused(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);

	(void)v2_get(&desk, "/v2/a/referrers/sha256:abc");
	v2_check_refused(&desk, 400, "DIGEST_INVALID");
	(void)v2_get(&desk, "/v2/a/referrers/latest");
	v2_check_refused(&desk, 400, "DIGEST_INVALID");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_refers_to_what_is_unknown),
		TEST(who_refers_is_described),
		TEST(an_index_that_refers_has_no_type_of_its_own),
		TEST(who_is_deleted_refers_to_nothing),
		TEST(a_long_list_comes_in_pages),
		TEST(large_entries_come_in_pages_unasked),
		TEST(what_the_fallbacks_tag_lists_is_listed),
		TEST(a_subject_that_is_none_is_refused),
	};

	return cmocka_run_group_tests_name("registry/v2_referrers", tests, NULL, NULL);
}
