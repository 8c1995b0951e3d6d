/* SPDX-License-Identifier: Apache-2.0 */
/* Tags and referrers of a mirrored repository. */
#include "tests/registry/mirror_bench.h"

#define TAGS "/v2/" BENCH_UP "/acme/tool/tags/list"

static void check_list(struct mirror_bench *bench, const char *path, const char *query,
		       const char *value, const char *expected)
{
	const struct mirror_want want = {
		.method = HTTP_GET, .path = path, .query = query, .value = value};
	struct mirror_got got;

	mirror_bench_ask(bench, &want, &got);
	assert_int_equal(got.status, 200);
	if (got.len != strlen(expected) || memcmp(got.body, expected, got.len) != 0)
		fail_msg("%.*s", (int)got.len, got.body);
	mirror_got_done(&got);
}

static void lists_in_pages(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	char link[128];

	if (!strstr(request->target, "/tags/list")) {
		upstream_serves(bench, request);
	} else if (strstr(request->target, "last=b")) {
		standin_answer(
			request, "200 OK", "",
			STR("{\"name\": \"acme/tool\", \"tags\": [\"c\", \"Z\", \"b\", \"?\"]}"));
	} else {
		(void)snprintf(link, sizeof(link),
			       "Link: </v2/acme/tool/tags/list?last=b&n=2>; rel=\"next\"\r\n");
		standin_answer(request, "200 OK", link,
			       STR("{\"name\": \"acme/tool\", \"tags\": [\"a\", \"b\"]}"));
	}
}

static void all_pages_are_one_list_in_order(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, lists_in_pages, NULL);
	check_list(bench, TAGS, NULL, NULL,
		   "{\"name\":\"up.example/acme/tool\",\"tags\":[\"Z\",\"a\",\"b\",\"c\"]}");
	check_list(bench, TAGS, "last", "a",
		   "{\"name\":\"up.example/acme/tool\",\"tags\":[\"b\",\"c\"]}");
	check_list(bench, TAGS, "last", "aa",
		   "{\"name\":\"up.example/acme/tool\",\"tags\":[\"b\",\"c\"]}");
	check_list(bench, TAGS, "n", "0", "{\"name\":\"up.example/acme/tool\",\"tags\":[]}");
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void a_page_has_a_link_to_the_next(void **state)
{
	struct mirror_want want = {.method = HTTP_GET, .path = TAGS, .query = "n", .value = "3"};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, lists_in_pages, NULL);
	mirror_bench_ask(bench, &want, &got);
	assert_non_null(strstr(got.headers,
			       "Link: </v2/up.example/acme/tool/tags/list?n=3&last=b>; "
			       "rel=\"next\"\n"));
	mirror_got_done(&got);
	want.value = "4";
	mirror_bench_ask(bench, &want, &got);
	assert_null(strstr(got.headers, "Link"));
	mirror_got_done(&got);
	want.value = "x";
	mirror_bench_ask(bench, &want, &got);
	assert_int_equal(got.status, 400);
	mirror_got_done(&got);
}

static void goes_on_for_ever(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK",
		       "Link: </v2/acme/tool/tags/list?last=b&n=2>; rel=\"next\"\r\n",
		       STR("{\"name\": \"acme/tool\", \"tags\": [\"a\"]}"));
}

static void a_list_without_end_is_none(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, goes_on_for_ever, NULL);
	assert_int_equal(mirror_bench_status(bench, TAGS), 502);
}

static void goes_on_inside(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "Link: <http://169.254.169.254/latest>; rel=\"next\"\r\n",
		       STR("{\"name\": \"acme/tool\", \"tags\": [\"a\"]}"));
}

static void a_list_does_not_go_on_where_no_registry_is(void **state)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = TAGS};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, goes_on_inside, NULL);
	mirror_bench_ask(bench, &want, &got);
	assert_non_null(memmem(got.body, got.len, "no host of a registry", 21));
	mirror_got_done(&got);
}

static void while_it_is_down_the_list_is_the_last_one(void **state)
{
	struct mirror_bench *bench = *state;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, lists_in_pages, NULL);
	assert_int_equal(mirror_bench_status(bench, TAGS), 200);
	standin_stop(&bench->server);
	check_list(bench, TAGS, NULL, NULL,
		   "{\"name\":\"up.example/acme/tool\",\"tags\":[\"Z\",\"a\",\"b\",\"c\"]}");
}

static void or_what_is_here(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, lists_in_pages, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	standin_stop(&bench->server);
	check_list(bench, TAGS, NULL, NULL,
		   "{\"name\":\"up.example/acme/tool\",\"tags\":[\"1.0\"]}");
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/other/tags/list"), 503);
}

/* Referrers */

#define REFERS                                                                                 \
	"{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"sha256:1\", \"artifactType\": " \
	"\"a/b\"}, {\"digest\": \"sha256:2\", \"artifactType\": \"c/d\"}]}"
#define REFERS_FIRST "{\"artifactType\":\"a/b\",\"digest\":\"sha256:1\"}"
#define REFERS_SECOND "{\"artifactType\":\"c/d\",\"digest\":\"sha256:2\"}"
#define INDEX_OF(what)                                                                    \
	"{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\"," \
	"\"manifests\":[" what "]}"

static void refers(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (strstr(request->target, "/referrers/sha256:"))
		standin_answer(request, "200 OK", "", STR(REFERS));
	else
		standin_answer(request, "404 Not Found", "", STR(""));
}

static void refers_by_a_tag(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (strstr(request->target, "/manifests/sha256-"))
		standin_answer(request, "200 OK", "", STR(REFERS));
	else
		standin_answer(request, "404 Not Found", "", STR(""));
}

static void refers_not(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	standin_answer(request,
		       atomic_load(&bench->flag) ? "503 Service Unavailable" : "404 Not Found", "",
		       STR("404 page not found"));
}

static const char *referrers(const struct mirror_bench *bench, char path[static 512])
{
	return mirror_bench_path("referrers", bench->manifest_name, path);
}

static void referrers_are_those_of_the_upstream(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	mirror_bench_open(bench, refers, NULL);
	check_list(bench, referrers(bench, path), NULL, NULL,
		   INDEX_OF(REFERS_FIRST "," REFERS_SECOND));
	check_list(bench, path, "artifactType", "c/d", INDEX_OF(REFERS_SECOND));
	check_list(bench, path, "artifactType", "x/y", INDEX_OF(""));
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void a_filter_says_that_it_was_applied(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];
	struct mirror_want want = {.method = HTTP_GET, .query = "artifactType", .value = "a/b"};
	struct mirror_got got;

	mirror_bench_open(bench, refers, NULL);
	want.path = referrers(bench, path);
	mirror_bench_ask(bench, &want, &got);
	assert_non_null(strstr(got.headers, "OCI-Filters-Applied: artifactType\n"));
	assert_non_null(
		strstr(got.headers, "Content-Type: application/vnd.oci.image.index.v1+json\n"));
	mirror_got_done(&got);
}

static void an_upstream_without_the_api_has_them_under_a_tag(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	mirror_bench_open(bench, refers_by_a_tag, NULL);
	check_list(bench, referrers(bench, path), NULL, NULL,
		   INDEX_OF(REFERS_FIRST "," REFERS_SECOND));
}

static void without_any_there_is_an_empty_index(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	mirror_bench_open(bench, refers_not, NULL);
	check_list(bench, referrers(bench, path), NULL, NULL, INDEX_OF(""));
	check_list(bench, path, NULL, NULL, INDEX_OF(""));
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void nobody_hears_that_there_are_none_while_it_is_not_known(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	atomic_store(&bench->flag, true);
	mirror_bench_open(bench, refers_not, NULL);
	assert_int_equal(mirror_bench_status(bench, referrers(bench, path)), 503);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(all_pages_are_one_list_in_order),
		TEST(a_page_has_a_link_to_the_next),
		TEST(a_list_without_end_is_none),
		TEST(a_list_does_not_go_on_where_no_registry_is),
		TEST(while_it_is_down_the_list_is_the_last_one),
		TEST(or_what_is_here),
		TEST(referrers_are_those_of_the_upstream),
		TEST(a_filter_says_that_it_was_applied),
		TEST(an_upstream_without_the_api_has_them_under_a_tag),
		TEST(without_any_there_is_an_empty_index),
		TEST(nobody_hears_that_there_are_none_while_it_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
