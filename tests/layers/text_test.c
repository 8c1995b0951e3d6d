/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/text.h"

#include "layers/blob.h"
#include "tests/layers/store_fixture.h"

#define TEXT_TEST_MAX ((size_t)1024 * 1024)

static void check_kept(struct store *store, struct str text)
{
	auto_buf struct buf read = BUF_INIT(TEXT_TEST_MAX);
	struct buf_sink sink = BUF_SINK(&read);
	struct digest blob;
	struct err err = {0};

	check_ok(text_put(store, text, &blob, &err), &err);
	check_ok(text_copy(store, &blob, &sink.sink, &err), &err);
	assert_int_equal(read.len, text.len);
	assert_memory_equal(buf_str(&read).ptr, text.ptr, text.len);
}

static void a_text_of_any_length_comes_back(void **state)
{
	struct store_fixture *fixture = *state;
	static char text[400 * 1024];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 7);
	check_kept(fixture->store, STR(""));
	check_kept(fixture->store, STR("x"));
	check_kept(fixture->store, (struct str){text, (size_t)128 * 1024});
	check_kept(fixture->store, (struct str){text, sizeof(text)});
}

static void what_is_no_text_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf read = BUF_INIT(TEXT_TEST_MAX);
	struct buf_sink sink = BUF_SINK(&read);
	struct digest blob;
	struct err err = {0};

	check_ok(blob_put(fixture->store, STR("not compressed"), &blob, &err), &err);
	check_err(text_copy(fixture->store, &blob, &sink.sink, &err), &err, ERR_CORRUPT);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_text_of_any_length_comes_back),
		STORE_TEST(what_is_no_text_is_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
