/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event_stream.h"
#include "api/upkeep.h"
#include "layers/base/clock.h"
#include "layers/journal.h"
#include "tests/layers/store_fixture.h"

#define STREAM_MAX ((size_t)1024 * 1024)

/* In one transaction. */
static void append_many(struct store *store, const char *type, const char *agent_id, size_t count)
{
	const struct event event = {.at_ms = 1000,
				    .type = str_of(type),
				    .agent_id = str_of(agent_id),
				    .bake_id = STR(""),
				    .session_id = STR(""),
				    .root_id = STR(""),
				    .sandbox_id = STR("")};
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	uint64_t id;

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < count; i++)
		check_ok(journal_append(meta, &event, &id, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void append(struct store *store, const char *type, const char *agent_id)
{
	append_many(store, type, agent_id, 1);
}

static struct http_stream *open_stream(struct store *store, uint64_t after, const char *type)
{
	const struct event_filter filter = {STR(""), STR(""), str_of(type)};

	return event_stream_new(store, after, &filter, 7);
}

/* What comes now: the first comment is cut off. */
static void check_next(struct http_stream *stream, const char *expected)
{
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);
	struct http_wait wait = {0};
	struct err err = {0};
	struct str got;
	char piece[11];
	ssize_t n;

	while ((n = stream->read(stream, 0, piece, sizeof(piece), false, &wait)) > 0)
		check_ok(buf_add(&out, (struct str){piece, (size_t)n}, &err), &err);
	assert_int_equal(n, 0);
	assert_int_equal(wait.topic, 7);
	got = buf_str(&out);
	if (str_starts(got, STR(":\n\n")))
		got = str_skip(got, 3);
	assert_true(str_equal(got, str_of(expected)));
}

static const char first[] = "id: 1\nevent: image.ready\ndata: {\"agentId\":\"agt_1\","
			    "\"at\":\"1970-01-01T00:00:01.000Z\",\"data\":{},\"id\":\"1\","
			    "\"type\":\"image.ready\"}\n\n";
static const char second[] = "id: 2\nevent: image.failed\ndata: {\"agentId\":\"agt_2\","
			     "\"at\":\"1970-01-01T00:00:01.000Z\",\"data\":{},\"id\":\"2\","
			     "\"type\":\"image.failed\"}\n\n";

static void events_come_behind_what_was_seen_and_as_they_happen(void **state)
{
	struct store_fixture *fixture = *state;
	struct http_stream *all = open_stream(fixture->store, 0, "");
	struct http_stream *later;

	check_next(all, "");
	append(fixture->store, "image.ready", "agt_1");
	check_next(all, first);
	later = open_stream(fixture->store, 1, "");
	append(fixture->store, "image.failed", "agt_2");
	check_next(all, second);
	check_next(later, second);
	check_next(later, "");
	all->close(all);
	later->close(later);
}

static void a_quiet_stream_comments_every_fifteen_seconds(void **state)
{
	struct store_fixture *fixture = *state;
	struct http_stream *quiet = open_stream(fixture->store, 0, "");
	struct http_wait wait = {0};
	int64_t began_ms = clock_monotonic_ms();
	char text[8];

	assert_int_equal(quiet->read(quiet, 0, text, sizeof(text), false, &wait), 3);
	assert_memory_equal(text, ":\n\n", 3);
	assert_int_equal(quiet->read(quiet, 3, text, sizeof(text), false, &wait), 0);
	assert_in_range(wait.until_ms, began_ms + 15000, clock_monotonic_ms() + 15000);
	quiet->close(quiet);
}

static void a_filter_shows_what_fits_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct http_stream *failed = open_stream(fixture->store, 0, "image.failed");

	append(fixture->store, "image.ready", "agt_1");
	append(fixture->store, "image.failed", "agt_2");
	check_next(failed, second);
	failed->close(failed);
}

static void a_long_search_lets_others_have_their_turn(void **state)
{
	struct store_fixture *fixture = *state;
	const struct event_filter filter = {STR(""), STR(""), STR("image.failed"), true};
	struct http_stream *stream = event_stream_new(fixture->store, 0, &filter, 7);
	struct http_wait wait = {0};
	char text[512];
	size_t turns = 0;
	ssize_t n;

	append_many(fixture->store, "image.ready", "agt_1", 2500);
	append(fixture->store, "image.failed", "agt_1");
	while ((n = stream->read(stream, 0, text, sizeof(text), false, &wait)) == 0) {
		assert_true(wait.until_ms <= clock_monotonic_ms());
		turns++;
	}
	assert_int_equal(turns, 2);
	assert_true(n > 0 && str_starts((struct str){text, (size_t)n}, STR("id: 2501\n")));
	assert_int_equal(stream->read(stream, 0, text, sizeof(text), false, &wait),
			 HTTP_STREAM_END);
	stream->close(stream);
}

static void what_is_no_longer_kept_is_a_gap(void **state)
{
	struct store_fixture *fixture = *state;
	const struct config config = {.events_keep = 1};
	struct http_stream *behind = open_stream(fixture->store, 0, "");
	struct err err = {0};

	append(fixture->store, "image.ready", "agt_1");
	append(fixture->store, "image.failed", "agt_2");
	check_ok(upkeep_trim_events(fixture->store, &config, NULL, &err), &err);
	check_next(behind, "event: gap\ndata: {\"type\":\"gap\",\"after\":\"0\",\"oldest\":"
			   "\"2\"}\n\nid: 2\nevent: image.failed\ndata: {\"agentId\":\"agt_2\","
			   "\"at\":\"1970-01-01T00:00:01.000Z\",\"data\":{},\"id\":\"2\",\"type\":"
			   "\"image.failed\"}\n\n");
	behind->close(behind);
}

static void an_event_of_another_store_is_a_gap(void **state)
{
	struct store_fixture *fixture = *state;
	struct http_stream *ahead = open_stream(fixture->store, 9, "image.none");

	append(fixture->store, "image.ready", "agt_1");
	check_next(ahead, "event: gap\ndata: {\"type\":\"gap\",\"after\":\"9\",\"oldest\":"
			  "\"1\"}\n\n");
	check_next(ahead, "");
	ahead->close(ahead);
}

static void as_many_events_are_kept_as_the_configuration_says(void **state)
{
	struct store_fixture *fixture = *state;
	const struct config silent = {.events_keep = 0};
	const struct config one = {.events_keep = 1};
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	uint64_t oldest;
	uint64_t newest;

	for (int i = 0; i < 3; i++)
		append(fixture->store, "image.ready", "agt_1");
	check_ok(upkeep_trim_events(fixture->store, &silent, NULL, &err), &err);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(journal_ends(meta, &oldest, &newest, &err), 1);
	assert_int_equal(oldest, 1);
	meta_abort(steal_ptr(&meta));
	check_ok(upkeep_trim_events(fixture->store, &one, NULL, &err), &err);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(journal_ends(meta, &oldest, &newest, &err), 1);
	assert_int_equal(oldest, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_come_behind_what_was_seen_and_as_they_happen),
		TEST(a_quiet_stream_comments_every_fifteen_seconds),
		TEST(a_filter_shows_what_fits_it),
		TEST(a_long_search_lets_others_have_their_turn),
		TEST(what_is_no_longer_kept_is_a_gap),
		TEST(an_event_of_another_store_is_a_gap),
		TEST(as_many_events_are_kept_as_the_configuration_says),
	};

	return cmocka_run_group_tests_name("api/event_stream", tests, NULL, NULL);
}
