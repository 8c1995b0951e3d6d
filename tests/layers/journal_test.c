/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/journal.h"
#include "tests/layers/store_fixture.h"

#include <inttypes.h>

#define NOW ((int64_t)1700000000000)

static uint64_t append(struct store *store, int64_t at_ms, const char *type)
{
	struct event event = {.at_ms = at_ms, .type = str_of(type)};
	struct meta *meta;
	struct err err = {0};
	uint64_t id;

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	return id;
}

struct seen {
	char text[256]; /* "id:type " of each */
	int stop_at;
	int count;
};

static int see(void *ctx, const struct event *event, struct err *err)
{
	struct seen *seen = ctx;
	size_t used = strlen(seen->text);

	(void)err;
	(void)snprintf(seen->text + used, sizeof(seen->text) - used, "%" PRIu64 ":" STR_FMT " ",
		       event->id, STR_ARG(event->type));
	return ++seen->count == seen->stop_at ? 7 : 0;
}

static void check_read(struct store *store, uint64_t after, const char *expected)
{
	AUTO(meta) struct meta *meta = NULL;
	struct seen seen = {0};
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(journal_read(meta, after, see, &seen, &err), &err);
	assert_string_equal(seen.text, expected);
}

static int trim(struct store *store, uint64_t keep, int64_t keep_ms)
{
	struct journal_policy policy = {keep, keep_ms};
	struct meta *meta;
	struct err err = {0};
	int more;

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	more = journal_trim(meta, &policy, NOW, &err);
	check_ok(more, &err);
	check_ok(meta_commit(meta, &err), &err);
	return more;
}

static void an_empty_journal_has_no_ends(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	uint64_t oldest;
	uint64_t newest;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(journal_ends(meta, &oldest, &newest, &err), 0);
	check_read(fixture->store, 0, "");
}

static void ids_rise_by_one_over_restarts(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(append(fixture->store, NOW, "a"), 1);
	assert_int_equal(append(fixture->store, NOW - 5, "b"), 2); /* whatever the clock says */
	assert_int_equal(append(store_fixture_reopen(fixture, false), NOW, "c"), 3);
	check_read(fixture->store, 0, "1:a 2:b 3:c ");
	check_read(fixture->store, 1, "2:b 3:c ");
	check_read(fixture->store, 3, "");
	check_read(fixture->store, UINT64_MAX, "");
}

static void the_order_holds_where_a_byte_overflows(void **state)
{
	struct store_fixture *fixture = *state;
	struct meta *meta;
	struct err err = {0};
	uint64_t id = 0;

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (uint64_t i = 1; i <= 300; i++) {
		struct event event = {.type = i == 256 ? STR("here") : STR("x")};

		check_ok(journal_append(meta, &event, &id, &err), &err);
		assert_int_equal(id, i);
	}
	check_ok(meta_commit(meta, &err), &err);
	check_read(fixture->store, 297, "298:x 299:x 300:x ");
}

static void an_aborted_change_leaves_no_event_and_takes_no_id(void **state)
{
	struct store_fixture *fixture = *state;
	struct event event = {.type = STR("never")};
	struct meta *meta;
	struct err err = {0};
	uint64_t id;

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	meta_abort(meta);
	assert_int_equal(append(fixture->store, NOW, "a"), 1);
	check_read(fixture->store, 0, "1:a ");
}

static void a_reader_stops_where_it_wants(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct seen seen = {.stop_at = 2};
	struct err err = {0};

	for (int i = 0; i < 3; i++)
		(void)append(fixture->store, NOW, "x");
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(journal_read(meta, 0, see, &seen, &err), 7);
	assert_string_equal(seen.text, "1:x 2:x ");
}

static int check_whole(void *ctx, const struct event *event, struct err *err)
{
	AUTO(json) json_t *json = journal_format(event);
	auto_buf struct buf text = BUF_INIT(4096);

	check_ok(json_format(json, &text, err), err);
	assert_string_equal(text.ptr, ctx);
	return 0;
}

static void an_event_is_told_as_the_contract_has_it(void **state)
{
	static char expected[] =
		"{\"agentId\":\"agt_1\",\"at\":\"2023-11-14T22:13:20.000Z\",\"bakeId\":\"bak_1\","
		"\"data\":{\"digest\":\"sha256:x\"},\"id\":\"1\",\"rootId\":\"ses_0\","
		"\"sandboxId\":\"sbx_1\",\"sessionId\":\"ses_1\",\"type\":\"image.ready\","
		"\"version\":3}";
	static char bare[] = "{\"at\":\"2023-11-14T22:13:20.000Z\",\"data\":{},\"id\":\"2\","
			     "\"type\":\"sandbox.oom\"}";
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *data = json_pack("{s:s}", "digest", "sha256:x");
	struct event event = {.at_ms = NOW,
			      .type = STR("image.ready"),
			      .agent_id = STR("agt_1"),
			      .version = 3,
			      .bake_id = STR("bak_1"),
			      .session_id = STR("ses_1"),
			      .root_id = STR("ses_0"),
			      .sandbox_id = STR("sbx_1"),
			      .data = data};
	struct meta *meta;
	struct err err = {0};
	uint64_t id;

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	check_ok(journal_read(meta, 0, check_whole, expected, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	(void)append(fixture->store, NOW, "sandbox.oom");
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(journal_read(meta, 1, check_whole, bare, &err), &err);
	meta_abort(meta);
}

static void data_without_end_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	auto_free char *long_text = calloc(1, JOURNAL_DATA_MAX + 1);
	AUTO(json) json_t *data = NULL;
	struct event event = {.type = STR("image.failed")};
	struct err err = {0};
	uint64_t id;

	assert_non_null(long_text);
	memset(long_text, 'x', JOURNAL_DATA_MAX);
	data = json_pack("{s:s}", "logTail", long_text);
	event.data = data;
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_err(journal_append(meta, &event, &id, &err), &err, ERR_LIMIT);
}

static void what_is_too_many_or_too_old_is_trimmed(void **state)
{
	struct store_fixture *fixture = *state;

	for (int i = 1; i <= 6; i++)
		(void)append(fixture->store, NOW - 1000 + (int64_t)i * 100, "x");
	assert_int_equal(trim(fixture->store, 0, 0), 0);
	assert_int_equal(trim(fixture->store, 9, 901), 0);
	check_read(fixture->store, 0, "1:x 2:x 3:x 4:x 5:x 6:x ");
	assert_int_equal(trim(fixture->store, 0, 800), 0); /* 800 ms old still stays */
	check_read(fixture->store, 0, "2:x 3:x 4:x 5:x 6:x ");
	assert_int_equal(trim(fixture->store, 3, 0), 0);
	check_read(fixture->store, 0, "4:x 5:x 6:x ");
}

static void the_newest_event_stays_so_that_no_id_is_used_twice(void **state)
{
	struct store_fixture *fixture = *state;

	(void)append(fixture->store, 0, "x");
	(void)append(fixture->store, 0, "y");
	assert_int_equal(trim(fixture->store, 1, 1), 0);
	check_read(fixture->store, 0, "2:y ");
	assert_int_equal(append(store_fixture_reopen(fixture, false), NOW, "z"), 3);
}

static void a_long_trim_is_made_in_pieces(void **state)
{
	struct store_fixture *fixture = *state;
	struct event event = {.type = STR("x")};
	struct meta *meta;
	struct err err = {0};
	uint64_t id;

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (int i = 0; i < JOURNAL_TRIM_MAX + 3; i++)
		check_ok(journal_append(meta, &event, &id, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(trim(fixture->store, 2, 0), 1);
	check_read(fixture->store, 0, "1001:x 1002:x 1003:x ");
	assert_int_equal(trim(fixture->store, 2, 0), 0);
	check_read(fixture->store, 0, "1002:x 1003:x ");
}

static void count_call(void *ctx)
{
	++*(int *)ctx;
}

static void listeners_hear_of_each_commit_that_appended(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *record = json_pack("{s:i}", "v", 1);
	struct event event = {.type = STR("x")};
	struct meta *meta;
	int first = 0;
	int second = 0;
	struct err err = {0};
	uint64_t id;

	journal_listen(fixture->store, count_call, &first);
	(void)append(fixture->store, NOW, "x");
	assert_int_equal(first, 1);

	journal_listen(fixture->store, count_call, &second);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	assert_int_equal(first, 1); /* not before it is durable */
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(first, 2);
	assert_int_equal(second, 1);

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "t", STR("a"), record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(journal_append(meta, &event, &id, &err), &err);
	meta_abort(meta);
	assert_int_equal(first, 2);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(an_empty_journal_has_no_ends),
		STORE_TEST(ids_rise_by_one_over_restarts),
		STORE_TEST(the_order_holds_where_a_byte_overflows),
		STORE_TEST(an_aborted_change_leaves_no_event_and_takes_no_id),
		STORE_TEST(a_reader_stops_where_it_wants),
		STORE_TEST(an_event_is_told_as_the_contract_has_it),
		STORE_TEST(data_without_end_is_refused),
		STORE_TEST(what_is_too_many_or_too_old_is_trimmed),
		STORE_TEST(the_newest_event_stays_so_that_no_id_is_used_twice),
		STORE_TEST(a_long_trim_is_made_in_pieces),
		STORE_TEST(listeners_hear_of_each_commit_that_appended),
	};

	return cmocka_run_group_tests_name("layers/journal", tests, NULL, NULL);
}
