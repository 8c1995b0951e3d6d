/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/failure.h"
#include "layers/layer.h"
#include "layers/step.h"
#include "tests/layers/records.h"

#include <stdio.h>

#define LONG_LOG (STEP_LOG_INLINE_MAX * 40)

static void put(struct store *store, const char *key, int64_t at_ms, struct str log)
{
	auto_failure struct failure failure = FAILURE_INIT;
	struct meta *meta;
	struct err err = {0};

	failure.key = named(key);
	failure.at_ms = at_ms;
	failure.log.size = log.len;
	check_ok(buf_add(&failure.log.inline_log, log, &err), &err);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(failure_put(meta, &failure, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static int find(struct store *store, struct str hex, struct failure *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	check_ok(meta_begin(store, META_READ, &meta, err), err);
	return failure_find(meta, hex, out, err);
}

static int find_key(struct store *store, const char *key, struct failure *out)
{
	struct digest digest = named(key);
	char hex[DIGEST_HEX_MAX];
	struct err err = {0};
	int found = find(store, (struct str){digest_hex(&digest, hex), 12}, out, &err);

	check_ok(found, &err);
	return found;
}

static void a_failure_comes_back_by_the_beginning_of_its_key(void **state)
{
	struct store_fixture *fixture = *state;
	auto_failure struct failure out = FAILURE_INIT;
	struct digest key = named("a");

	assert_int_equal(find_key(fixture->store, "a", &out), 0);
	put(fixture->store, "a", 5, STR("first"));
	put(fixture->store, "a", 6, STR("\0\xff again"));
	assert_int_equal(find_key(fixture->store, "a", &out), 1);
	assert_true(digest_equal(&out.key, &key));
	assert_int_equal(out.at_ms, 6);
	assert_int_equal(out.log.size, 8);
	assert_true(str_equal(buf_str(&out.log.inline_log), STR("\0\xff again")));
	assert_int_equal(find_key(fixture->store, "b", &out), 0);
}

static void a_beginning_that_fits_several_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	auto_failure struct failure out = FAILURE_INIT;
	struct err err = {0};

	put(fixture->store, "a", 5, STR("one"));
	put(fixture->store, "b", 5, STR("two"));
	check_err(find(fixture->store, STR(""), &out, &err), &err, ERR_INVALID);
}

static void the_oldest_of_too_many_goes(void **state)
{
	struct store_fixture *fixture = *state;
	auto_failure struct failure out = FAILURE_INIT;
	char key[16];

	for (int i = 0; i <= (int)FAILURES_MAX; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		put(fixture->store, key, i == 7 ? 1 : 100 + i, STR("log"));
	}
	assert_int_equal(find_key(fixture->store, "7", &out), 0);
	assert_int_equal(find_key(fixture->store, "0", &out), 1);
	assert_int_equal(find_key(fixture->store, key, &out), 1);
}

static void a_step_that_succeeds_has_no_failure_any_more(void **state)
{
	struct store_fixture *fixture = *state;
	auto_failure struct failure out = FAILURE_INIT;
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	struct meta *meta;
	struct err err = {0};

	put(fixture->store, "a", 5, STR("log"));
	put(fixture->store, "b", 5, STR("log"));
	record.key = named("a");
	record.empty = true;
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(step_put(meta, &record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(find_key(fixture->store, "a", &out), 0);
	assert_int_equal(find_key(fixture->store, "b", &out), 1);
}

static void a_log_is_copied_whole_from_record_or_blob(void **state)
{
	struct store_fixture *fixture = *state;
	auto_step_log struct step_log log = STEP_LOG_INIT;
	auto_buf struct buf in = BUF_INIT(LONG_LOG);
	auto_buf struct buf out = BUF_INIT(LONG_LOG);
	struct buf_sink sink = BUF_SINK(&out);
	struct layer_writer *writer;
	struct layer_info info;
	struct err err = {0};

	check_ok(buf_add(&log.inline_log, STR("short"), &err), &err);
	log.size = 5;
	check_ok(step_log_copy(fixture->store, &log, &sink.sink, &err), &err);
	assert_true(str_equal(buf_str(&out), STR("short")));
	buf_clear(&out);
	while (in.len < LONG_LOG)
		check_ok(buf_add(&in, STR("0123456\n"), &err), &err);
	check_ok(layer_writer_open(fixture->store, LAYER_ZSTD, &writer, &err), &err);
	check_ok(layer_writer_sink(writer)->write(layer_writer_sink(writer), buf_str(&in), &err),
		 &err);
	check_ok(layer_writer_finish(writer, &info, &err), &err);
	layer_writer_close(writer);
	log.blob = info.blob;
	log.size = in.len;
	check_ok(step_log_copy(fixture->store, &log, &sink.sink, &err), &err);
	assert_true(str_equal(buf_str(&out), buf_str(&in)));
}

#define STORE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_failure_comes_back_by_the_beginning_of_its_key),
		STORE_TEST(a_beginning_that_fits_several_is_refused),
		STORE_TEST(the_oldest_of_too_many_goes),
		STORE_TEST(a_step_that_succeeds_has_no_failure_any_more),
		STORE_TEST(a_log_is_copied_whole_from_record_or_blob),
	};

	return cmocka_run_group_tests_name("layers/failure", tests, NULL, NULL);
}
