/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/v2_desk.h"

#define EMPTY "{\"schemaVersion\":2,\"manifests\":[]}"

static void put(struct v2_desk *desk, const char *repository, const char *tag)
{
	char target[1024];

	(void)snprintf(target, sizeof(target), "/v2/%s/manifests/%s", repository, tag);
	(void)v2_ask(desk, HTTP_PUT, target, NULL, STR(EMPTY));
	v2_check_status(desk, 201);
}

/* The list, and the path of the next one or NULL. */
static void check_list(struct v2_desk *desk, const char *target, const char *body, const char *link)
{
	const char *found;

	(void)v2_get(desk, target);
	v2_check_status(desk, 200);
	assert_string_equal(v2_body(desk), body);
	assert_string_equal(v2_header(desk, "Content-Type"), "application/json");
	found = v2_header(desk, "Link");
	if (!link)
		assert_null(found);
	else
		assert_string_equal(found, link);
}

#define A(list) "{\"name\":\"a\",\"tags\":[" list "]}\n"
#define NEXT(path) "<" path ">; rel=\"next\""

static void tags_come_in_the_order_of_their_bytes(void **state)
{
	static const char *const tags[] = {"b", "a", "A", "_", "a.1", "a-1", "1", "ab"};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		put(&desk, "a", tags[i]);
	put(&desk, "a-b", "elsewhere");
	put(&desk, "a/b", "elsewhere");
	check_list(&desk, "/v2/a/tags/list",
		   A("\"1\",\"A\",\"_\",\"a\",\"a-1\",\"a.1\",\"ab\",\"b\""), NULL);
}

static void tags_come_in_pages(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);

	put(&desk, "a", "1");
	put(&desk, "a", "2");
	put(&desk, "a", "3");
	check_list(&desk, "/v2/a/tags/list?n=2", A("\"1\",\"2\""),
		   NEXT("/v2/a/tags/list?n=2&last=2"));
	check_list(&desk, "/v2/a/tags/list?n=2&last=2", A("\"3\""), NULL);
	check_list(&desk, "/v2/a/tags/list?n=3", A("\"1\",\"2\",\"3\""), NULL);
	check_list(&desk, "/v2/a/tags/list?n=99999999999999999999", A("\"1\",\"2\",\"3\""), NULL);
	check_list(&desk, "/v2/a/tags/list?n=0", A(""), NULL);
	check_list(&desk, "/v2/a/tags/list?last=1", A("\"2\",\"3\""), NULL);
	check_list(&desk, "/v2/a/tags/list?last=1x", A("\"2\",\"3\""), NULL); /* need not exist */
	check_list(&desk, "/v2/a/tags/list?last=3", A(""), NULL);
	(void)v2_get(&desk, "/v2/a/tags/list?n=-1");
	v2_check_refused(&desk, 400, "UNSUPPORTED");
	(void)v2_get(&desk, "/v2/a/tags/list?n=x");
	v2_check_refused(&desk, 400, "UNSUPPORTED");
}

static void a_repository_without_tags_is_known(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock stock = stock_absent(EMPTY, v2_both[i]);

		put(&desk, i ? "y" : "x", stock.name);
		check_list(&desk, i ? "/v2/y/tags/list" : "/v2/x/tags/list",
			   i ? "{\"name\":\"y\",\"tags\":[]}\n" : "{\"name\":\"x\",\"tags\":[]}\n",
			   NULL);
		(void)v2_get(&desk, "/v2/other/tags/list");
		v2_check_refused(&desk, 404, "NAME_UNKNOWN");
	}
}

#define ALL(list) "{\"repositories\":[" list "]}\n"

static void the_catalog_has_what_may_be_pulled(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);

	check_list(&desk, "/v2/_catalog", ALL(""), NULL);
	put(&desk, "b", "1");
	put(&desk, "a/c", "1");
	put(&desk, "a", "1");
	put(&desk, "a", "2");
	(void)v2_stock_blob(&desk, "blobs-alone", "x", DIGEST_SHA256);
	check_list(&desk, "/v2/_catalog", ALL("\"a\",\"a/c\",\"b\""), NULL);
	check_list(&desk, "/v2/_catalog?n=2", ALL("\"a\",\"a/c\""),
		   NEXT("/v2/_catalog?n=2&last=a/c"));
	check_list(&desk, "/v2/_catalog?n=2&last=a/c", ALL("\"b\""), NULL);
	check_list(&desk, "/v2/_catalog?n=0", ALL(""), NULL);
	desk.hidden = "a/c";
	check_list(&desk, "/v2/_catalog?n=1", ALL("\"a\""), NEXT("/v2/_catalog?n=1&last=a"));
	check_list(&desk, "/v2/_catalog?n=1&last=a", ALL("\"b\""), NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tags_come_in_the_order_of_their_bytes),
		TEST(tags_come_in_pages),
		TEST(a_repository_without_tags_is_known),
		TEST(the_catalog_has_what_may_be_pulled),
	};

	return cmocka_run_group_tests_name("registry/v2_tags", tests, NULL, NULL);
}
