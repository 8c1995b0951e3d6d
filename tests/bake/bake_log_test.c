/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/bake_log.h"
#include "tests/layers/store_fixture.h"

#define BAKE "bak_01jd0000000000000000000001"

static void add(struct store *store, const char *text)
{
	auto_bake_log struct bake_log log = BAKE_LOG_INIT;
	struct err err = {0};

	check_ok(bake_log_open(store, STR(BAKE), &log, &err), &err);
	check_ok(bake_log_add(&log, str_of(text), &err), &err);
}

static void check_read(struct store *store, uint64_t offset, size_t room, const char *expected)
{
	auto_buf struct buf out = BUF_INIT(room);
	struct err err = {0};

	check_ok(bake_log_read(store, STR(BAKE), offset, &out, &err), &err);
	assert_true(str_equal(buf_str(&out), str_of(expected)));
}

static void a_log_grows_and_is_read_on_from_where_a_reader_was(void **state)
{
	struct store_fixture *fixture = *state;

	check_read(fixture->store, 0, 100, "");
	add(fixture->store, "one\n");
	check_read(fixture->store, 0, 100, "one\n");
	check_read(fixture->store, 4, 100, "");
	add(fixture->store, "two\n"); /* by another attempt */
	check_read(fixture->store, 4, 100, "two\n");
	check_read(fixture->store, 2, 3, "e\nt");
	check_read(fixture->store, 1000, 100, "");
}

static void a_log_that_was_removed_is_gone(void **state)
{
	struct store_fixture *fixture = *state;

	add(fixture->store, "one\n");
	bake_log_remove(fixture->store, STR(BAKE));
	check_read(fixture->store, 0, 100, "");
	bake_log_remove(fixture->store, STR(BAKE));
}

static void what_is_beyond_the_ceiling_is_left_out_and_that_is_said(void **state)
{
	static char piece[1024 * 1024];
	struct store_fixture *fixture = *state;
	auto_bake_log struct bake_log log = BAKE_LOG_INIT;
	auto_buf struct buf end = BUF_INIT((size_t)1024);
	struct err err = {0};

	memset(piece, 'a', sizeof(piece));
	check_ok(bake_log_open(fixture->store, STR(BAKE), &log, &err), &err);
	for (uint64_t sum = 0; sum <= BAKE_LOG_BYTES_MAX; sum += sizeof(piece))
		check_ok(bake_log_add(&log, (struct str){piece, sizeof(piece)}, &err), &err);
	bake_log_close(&log);
	check_ok(bake_log_open(fixture->store, STR(BAKE), &log, &err), &err);
	check_ok(bake_log_add(&log, STR("more\n"), &err), &err);
	check_ok(bake_log_read(fixture->store, STR(BAKE), BAKE_LOG_BYTES_MAX, &end, &err), &err);
	assert_string_equal(end.ptr, "\n[the rest of this log is left out]\n");
}

static void what_is_no_id_leads_nowhere(void **state)
{
	static const char *const wrong[] = {"",
					    "..",
					    "../lock",
					    "bak_",
					    "agt_01jd0000000000000000000001",
					    "bak_01jd0000000000000000000001/x"};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		auto_bake_log struct bake_log log = BAKE_LOG_INIT;
		auto_buf struct buf out = BUF_INIT((size_t)100);
		struct err err = {0};

		check_err(bake_log_open(fixture->store, str_of(wrong[i]), &log, &err), &err,
			  ERR_INVALID);
		check_ok(bake_log_read(fixture->store, str_of(wrong[i]), 0, &out, &err), &err);
		assert_int_equal(out.len, 0);
		bake_log_remove(fixture->store, str_of(wrong[i]));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_log_grows_and_is_read_on_from_where_a_reader_was),
		TEST(a_log_that_was_removed_is_gone),
		TEST(what_is_beyond_the_ceiling_is_left_out_and_that_is_said),
		TEST(what_is_no_id_leads_nowhere),
	};

	return cmocka_run_group_tests_name("bake/bake_log", tests, NULL, NULL);
}
