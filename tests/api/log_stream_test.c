/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_stream.h"
#include "bake/bake_log.h"
#include "tests/layers/store_fixture.h"

#define STREAM_MAX ((size_t)256 * 1024)

/* A bake that runs, and has a log. */
static void begin(struct store *store, struct bakes_record *record)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	*record = (struct bakes_record){.version = 1,
					.state = BAKES_RUNNING,
					.agent_id = "agt_01jd0000000000000000000001",
					.slug = "bot",
					.base_name = STR("base")};
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(bakes_add(meta, record, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void end(struct store *store, struct bakes_record *record)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	record->state = BAKES_READY;
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(bakes_put(meta, record, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void add(struct store *store, const struct bakes_record *record, struct str text)
{
	auto_bake_log struct bake_log log = BAKE_LOG_INIT;
	struct err err = {0};

	check_ok(bake_log_open(store, str_of(record->id), &log, &err), &err);
	check_ok(bake_log_add(&log, text, &err), &err);
}

static struct http_stream *open_stream(struct store *store, const struct bakes_record *record,
				       size_t step, bool follow)
{
	const struct log_stream_options options = {store, record, step, follow};

	return log_stream_new(&options);
}

/* Append all that comes now, a few bytes at a time: 0 there may be more, or the end. */
static ssize_t take(struct http_stream *stream, bool over, struct buf *out)
{
	struct http_wait wait = {0};
	struct err err = {0};
	char piece[7];
	ssize_t n;

	while ((n = stream->read(stream, out->len, piece, sizeof(piece), over, &wait)) > 0)
		check_ok(buf_add(out, (struct str){piece, (size_t)n}, &err), &err);
	if (n == 0)
		assert_int_equal(wait.topic, http_topic(STR("agt_01jd0000000000000000000001")));
	return n;
}

static void check_all(struct store *store, const struct bakes_record *record, size_t step,
		      const char *expected)
{
	struct http_stream *stream = open_stream(store, record, step, false);
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);

	assert_int_equal(take(stream, false, &out), HTTP_STREAM_END);
	assert_true(str_equal(buf_str(&out), str_of(expected)));
	stream->close(stream);
}

static void a_step_of_a_log_is_what_stands_below_its_lines(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record record;

	begin(fixture->store, &record);
	add(fixture->store, &record,
	    STR("hearth: warning: old\n[1/3] ENV A=1\n[1/3] CACHED\n[2/3] RUN a\n[x/3] a\n"
		"[9/3] b\n [1/3] c\n[3/3] RUN c\nno end"));
	check_all(fixture->store, &record, 1, "[1/3] ENV A=1\n[1/3] CACHED\n");
	check_all(fixture->store, &record, 2, "[2/3] RUN a\n[x/3] a\n[9/3] b\n [1/3] c\n");
	check_all(fixture->store, &record, 3, "[3/3] RUN c\nno end");
	check_all(fixture->store, &record, 4, "");
}

static void a_log_without_a_byte_is_empty(void **state)
{
	struct store_fixture *fixture = *state;
	struct bakes_record record;

	begin(fixture->store, &record);
	check_all(fixture->store, &record, 0, "");
	check_all(fixture->store, &record, 1, "");
}

static void who_follows_waits_for_more_until_the_bake_ends(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);
	struct http_stream *stream;
	struct bakes_record record;

	begin(fixture->store, &record);
	stream = open_stream(fixture->store, &record, 2, true);
	assert_int_equal(take(stream, false, &out), 0);
	add(fixture->store, &record, STR("[1/2] RUN a\none\n[2/2] RU"));
	assert_int_equal(take(stream, false, &out), 0);
	assert_int_equal(out.len, 0);
	add(fixture->store, &record, STR("N b\ntwo\nthree"));
	assert_int_equal(take(stream, false, &out), 0);
	assert_string_equal(out.ptr, "[2/2] RUN b\ntwo\n");
	end(fixture->store, &record);
	assert_int_equal(take(stream, false, &out), HTTP_STREAM_END);
	assert_string_equal(out.ptr, "[2/2] RUN b\ntwo\nthree");
	stream->close(stream);
}

static void a_stream_that_must_end_says_what_is_left(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);
	struct http_stream *stream;
	struct bakes_record record;

	begin(fixture->store, &record);
	stream = open_stream(fixture->store, &record, 0, true);
	add(fixture->store, &record, STR("one"));
	assert_int_equal(take(stream, true, &out), HTTP_STREAM_END);
	assert_string_equal(out.ptr, "one");
	stream->close(stream);
}

static void a_line_may_be_longer_than_what_is_read_at_once(void **state)
{
	static char line[40000];
	struct store_fixture *fixture = *state;
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);
	struct http_stream *stream;
	struct bakes_record record;

	memset(line, 'a', sizeof(line));
	begin(fixture->store, &record);
	add(fixture->store, &record, STR("[1/1] RUN a\n"));
	add(fixture->store, &record, (struct str){line, sizeof(line)});
	stream = open_stream(fixture->store, &record, 1, false);
	assert_int_equal(take(stream, false, &out), HTTP_STREAM_END);
	assert_int_equal(out.len, sizeof(line) + 12);
	stream->close(stream);
}

static void a_long_search_lets_others_have_their_turn(void **state)
{
	static char line[40000];
	struct store_fixture *fixture = *state;
	auto_buf struct buf out = BUF_INIT(STREAM_MAX);
	struct http_stream *stream;
	struct bakes_record record;

	memset(line, '\n', sizeof(line));
	begin(fixture->store, &record);
	for (int i = 0; i < 40; i++)
		add(fixture->store, &record, (struct str){line, sizeof(line)});
	add(fixture->store, &record, STR("[1/1] RUN a\n"));
	stream = open_stream(fixture->store, &record, 1, false);
	assert_int_equal(take(stream, false, &out), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(take(stream, false, &out), HTTP_STREAM_END);
	assert_string_equal(out.ptr, "[1/1] RUN a\n");
	stream->close(stream);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_step_of_a_log_is_what_stands_below_its_lines),
		TEST(a_log_without_a_byte_is_empty),
		TEST(who_follows_waits_for_more_until_the_bake_ends),
		TEST(a_stream_that_must_end_says_what_is_left),
		TEST(a_line_may_be_longer_than_what_is_read_at_once),
		TEST(a_long_search_lets_others_have_their_turn),
	};

	return cmocka_run_group_tests_name("api/log_stream", tests, NULL, NULL);
}
