/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/page.h"
#include "tests/layers/store_fixture.h"

static void put(struct meta *meta, const char *key, int n)
{
	AUTO(json) json_t *record = json_pack("{s:i, s:i}", "v", 1, "n", n);
	struct err err = {0};

	check_ok(meta_put(meta, "t", str_of(key), record, &err), &err);
}

static struct meta *fill(struct store *store)
{
	struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	put(meta, "a1", 1);
	put(meta, "b1", 2);
	put(meta, "b2", 3);
	put(meta, "b3", 4);
	put(meta, "b4", 5);
	put(meta, "c1", 6);
	return meta;
}

/* Odd ones are left out where ctx says so. */
static int item(void *ctx, struct str key, const json_t *record, json_t **out, struct err *err)
{
	json_int_t n = json_integer_value(json_object_get(record, "n"));

	(void)key;
	(void)err;
	*out = ctx && n % 2 ? NULL : json_integer(n);
	return 0;
}

static json_t *read_page(struct meta *meta, const char *prefix, bool even, size_t limit,
			 struct str cursor)
{
	int yes = 1;
	struct page_source source = {
		.table = "t", .prefix = str_of(prefix), .item = item, .ctx = even ? &yes : NULL};
	struct page page = {limit, cursor};
	json_t *out = NULL;
	struct err err = {0};

	check_ok(page_read(meta, &source, &page, &out, &err), &err);
	return out;
}

static void check_pages(struct meta *meta, const char *prefix, bool even, size_t limit,
			const char *expected)
{
	auto_buf struct buf text = BUF_INIT(256);
	AUTO(json) json_t *page = read_page(meta, prefix, even, limit, STR(""));
	struct err err = {0};

	for (;;) {
		json_t *next;

		check_ok(json_format(json_object_get(page, "items"), &text, &err), &err);
		if (json_is_null(json_object_get(page, "next")))
			break;
		next = read_page(meta, prefix, even, limit,
				 json_str(json_object_get(page, "next")));
		json_decref(page);
		page = next;
	}
	assert_string_equal(text.ptr, expected);
}

static void pages_go_from_the_newest_to_the_oldest(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = fill(fixture->store);

	check_pages(meta, "", false, 50, "[6,5,4,3,2,1]");
	check_pages(meta, "", false, 4, "[6,5,4,3][2,1]");
	check_pages(meta, "", false, 3, "[6,5,4][3,2,1]");
	check_pages(meta, "b", false, 3, "[5,4,3][2]");
	check_pages(meta, "b", false, 1, "[5][4][3][2]");
	check_pages(meta, "b", true, 1, "[4][2]");
	check_pages(meta, "d", false, 1, "[]");
}

static void what_is_added_meanwhile_is_on_no_later_page(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = fill(fixture->store);
	AUTO(json) json_t *first = read_page(meta, "b", false, 2, STR(""));
	AUTO(json) json_t *second = NULL;
	struct err err = {0};

	put(meta, "b5", 9);
	assert_int_equal(meta_del(meta, "t", STR("b3"), &err), 1); /* where the page ended */
	second = read_page(meta, "b", false, 2, json_str(json_object_get(first, "next")));
	assert_int_equal(json_integer_value(json_array_get(json_object_get(second, "items"), 0)),
			 3);
	assert_true(json_is_null(json_object_get(second, "next")));
}

static void a_cursor_of_no_such_list_is_refused(void **state)
{
	static const char *const wrong[] = {"x", "6", "6231zz", "62", "6131", "B2", "\xff\xff"};
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = fill(fixture->store);
	struct page_source source = {.table = "t", .prefix = STR("b"), .item = item};
	char long_one[2 * META_KEY_MAX + 2];
	json_t *out = NULL;
	struct err err = {0};

	memset(long_one, '6', sizeof(long_one));
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct page page = {1, i < sizeof(wrong) / sizeof(wrong[0])
					       ? str_of(wrong[i])
					       : (struct str){long_one, sizeof(long_one)}};

		check_err(page_read(meta, &source, &page, &out, &err), &err, ERR_INVALID);
		assert_string_equal(err.path, "cursor");
	}
}

static void limit_and_cursor_are_taken_from_a_request(void **state)
{
	static const char *const wrong[] = {"{\"limit\": 0}", "{\"limit\": 501}", "{\"limit\": -1}",
					    "{\"limit\": \"5\"}", "{\"limit\": 1.5}"};
	AUTO(json) json_t *none = json_object();
	AUTO(json) json_t *both = json_pack("{s:i, s:s}", "limit", 500, "cursor", "ab");
	struct page page;
	struct err err = {0};

	(void)state;
	check_ok(page_parse(none, &page, &err), &err);
	assert_int_equal(page.limit, 50);
	assert_int_equal(page.cursor.len, 0);
	check_ok(page_parse(both, &page, &err), &err);
	assert_int_equal(page.limit, 500);
	assert_true(str_equal(page.cursor, STR("ab")));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		AUTO(json) json_t *request = NULL;

		check_ok(json_parse(str_of(wrong[i]), 64, &request, &err), &err);
		check_err(page_parse(request, &page, &err), &err, ERR_INVALID);
		assert_string_equal(err.path, "limit");
	}
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(pages_go_from_the_newest_to_the_oldest),
		STORE_TEST(what_is_added_meanwhile_is_on_no_later_page),
		STORE_TEST(a_cursor_of_no_such_list_is_refused),
		cmocka_unit_test(limit_and_cursor_are_taken_from_a_request),
	};

	return cmocka_run_group_tests_name("layers/page", tests, NULL, NULL);
}
