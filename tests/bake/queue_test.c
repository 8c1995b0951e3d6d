/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/bake_log.h"
#include "tests/bake/workshop.h"

static void check_status(struct workshop *workshop, int agent, int64_t version,
			 const char *expected)
{
	AUTO(json) json_t *status = workshop_status(workshop, agent, version);

	assert_string_equal(workshop_text(status, "status"), expected);
}

static void a_version_is_baked_behind_its_callers_back(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	auto_bakes_record struct bakes_record record = {0};

	workshop_start(workshop, 2);
	workshop_put(workshop, 1, 1);
	record = workshop_wait(workshop, 1, BAKES_READY);
	status = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(status, "status"), "ready");
	workshop_check_image(status, "first");
	assert_int_equal(json_integer_value(json_object_get(status, "sizeBytes")), 100);
	assert_string_equal(workshop_text(status, "finishedAt"), "2023-11-14T22:13:20.000Z");
	assert_int_equal(record.attempt, 1);
	assert_int_equal(record.cached_steps, 2);
	assert_int_equal(workshop->published, 1);
	workshop_check_events(workshop, "image.baking image.ready");
}

static void a_version_without_an_image_is_none_and_bakes_nothing(void **state)
{
	struct workshop *workshop = *state;
	struct queue_ticket ticket;
	struct err err = {0};

	workshop_start(workshop, 1);
	workshop_put_base(workshop, 1, 1, "");
	check_status(workshop, 1, 1, "none");
	workshop_check_events(workshop, "");
	check_err(queue_rebake(workshop->queue, workshop_agent(1), 0, &ticket, &err), &err,
		  ERR_CONFLICT);
}

static void a_bake_whose_version_was_never_appended_never_was(void **state)
{
	struct workshop *workshop = *state;
	struct queue_version put = {.agent_id = workshop_agent(1),
				    .slug = STR("a"),
				    .version = 1,
				    .base = STR("debian:12")};
	struct meta *meta;
	struct err err = {0};

	workshop_start(workshop, 1);
	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(queue_put(workshop->queue, meta, &put, &err), &err);
	meta_abort(meta);
	workshop_put(workshop, 2, 1);
	workshop_ended(workshop, 2, BAKES_READY);
	assert_int_equal(workshop->made_count, 1);
	workshop_check_events(workshop, "image.baking image.ready");
}

static void no_more_run_at_once_than_may(void **state)
{
	struct workshop *workshop = *state;

	workshop_hold(workshop);
	workshop_start(workshop, 2);
	for (int64_t version = 1; version <= 5; version++)
		workshop_put(workshop, 1, version);
	workshop_wait_made(workshop, 2);
	for (size_t i = 3; i <= 5; i++) {
		workshop_let_go(workshop, 1);
		workshop_wait_made(workshop, i);
	}
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	assert_int_equal(workshop->running_most, 2);
}

static void agents_take_turns(void **state)
{
	struct workshop *workshop = *state;
	static const int expected[] = {1, 1, 2, 3, 1, 1};

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	for (int64_t version = 2; version <= 4; version++)
		workshop_put(workshop, 1, version);
	workshop_put(workshop, 2, 1);
	workshop_put(workshop, 3, 1);
	workshop_open_gate(workshop);
	workshop_wait_made(workshop, 6);
	workshop_ended(workshop, 1, BAKES_READY);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(workshop->made[i].agent_id, workshop_agent(expected[i]).ptr);
}

static void a_newer_version_cancels_no_older_one(void **state)
{
	struct workshop *workshop = *state;

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	workshop_put(workshop, 1, 2);
	check_status(workshop, 1, 1, "baking");
	check_status(workshop, 1, 0, "baking");
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	check_status(workshop, 1, 1, "ready");
	check_status(workshop, 1, 2, "ready");
	workshop_check_events(workshop, "image.baking image.baking image.ready image.ready");
}

static void readers_see_the_step_that_runs(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	const json_t *step;

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	status = workshop_status(workshop, 1, 0);
	step = json_object_get(status, "step");
	assert_string_equal(workshop_text(status, "phase"), "running");
	assert_int_equal(json_integer_value(json_object_get(step, "n")), 2);
	assert_int_equal(json_integer_value(json_object_get(step, "of")), 3);
	assert_string_equal(workshop_text(step, "text"), "RUN make");
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	check_status(workshop, 1, 0, "ready");
}

static void what_a_bake_wrote_can_be_read(void **state)
{
	struct workshop *workshop = *state;
	auto_buf struct buf log = BUF_INIT((size_t)1024);
	auto_bakes_record struct bakes_record record = {0};
	struct err err = {0};

	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	record = workshop_wait(workshop, 1, BAKES_READY);
	check_ok(bake_log_read(workshop->fixture->store, str_of(record.id), 0, &log, &err), &err);
	assert_string_equal(log.ptr, "[2/3] RUN make\nit works\n");
}

static void what_failed_in_passing_is_tried_five_times_more(void **state)
{
	static const int64_t waits_ms[] = {5000, 10000, 20000, 40000, 80000};
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record last = {0};
	AUTO(json) json_t *status = NULL;

	workshop_fail(workshop, ERR_REMOTE, false);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	for (size_t i = 0; i < 5; i++) {
		struct bakes_record record;

		workshop_wait_made(workshop, i + 1);
		record = workshop_wait(workshop, 1, BAKES_WAITING);
		assert_int_equal(record.attempt, i + 1);
		assert_int_equal(record.retry_ms - workshop->now_ms, waits_ms[i]);
		bakes_record_done(&record);
		workshop_pass_ms(workshop, waits_ms[i] - 1);
		assert_int_equal(workshop->made_count, i + 1);
		workshop_pass_ms(workshop, 1);
	}
	last = workshop_wait(workshop, 1, BAKES_FAILED);
	assert_int_equal(last.attempt, 6);
	assert_int_equal(workshop->made_count, 6);
	status = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(json_object_get(status, "error"), "code"),
			    "UpstreamFailed");
	workshop_check_events(workshop, "image.baking image.failed");
}

static void who_waits_for_another_attempt_says_until_when(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	AUTO(json) json_t *after = NULL;

	workshop_fail(workshop, ERR_FULL, false);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_WAITING);
	status = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(status, "status"), "baking");
	assert_string_equal(workshop_text(status, "phase"), "waiting");
	assert_string_equal(workshop_text(status, "retryAt"), "2023-11-14T22:13:25.000Z");
	assert_string_equal(workshop_text(json_object_get(status, "error"), "code"), "StoreFull");
	workshop_fail(workshop, ERR_NONE, false);
	workshop_pass_ms(workshop, 5000);
	workshop_ended(workshop, 1, BAKES_READY);
	after = workshop_status(workshop, 1, 0);
	assert_null(json_object_get(after, "error"));
	assert_null(json_object_get(after, "retryAt"));
	assert_int_equal(json_integer_value(json_object_get(after, "attempt")), 2);
}

static void what_would_fail_again_is_not_tried(void **state)
{
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record record = {0};
	AUTO(json) json_t *status = NULL;
	const json_t *error;

	workshop_fail(workshop, ERR_STEP, true);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	record = workshop_wait(workshop, 1, BAKES_FAILED);
	status = workshop_status(workshop, 1, 0);
	error = json_object_get(status, "error");
	assert_int_equal(record.attempt, 1);
	assert_string_equal(workshop_text(status, "status"), "failed");
	assert_string_equal(workshop_text(error, "code"), "StepFailed");
	assert_int_equal(json_integer_value(json_object_get(error, "step")), 2);
	assert_int_equal(json_integer_value(json_object_get(error, "exitCode")), 3);
	assert_string_equal(workshop_text(error, "logTail"), "no such file\n");
	assert_true(json_is_true(json_object_get(error, "terminal")));
	workshop_check_events(workshop, "image.baking image.failed");
}

static void an_image_that_cannot_be_published_is_made_again(void **state)
{
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record record = {0};

	workshop->publish_fails = true;
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	record = workshop_wait(workshop, 1, BAKES_WAITING);
	assert_string_equal(workshop_text(record.error, "code"), "StoreFull");
	workshop_check_events(workshop, "image.baking");
}

static void a_bake_in_the_queue_is_cancelled_at_once(void **state)
{
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record record = {0};
	struct err err = {0};

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	workshop_put(workshop, 2, 1);
	record = workshop_wait(workshop, 2, BAKES_QUEUED);
	check_ok(queue_cancel(workshop->queue, str_of(record.id), &err), &err);
	check_status(workshop, 2, 0, "failed");
	check_err(queue_cancel(workshop->queue, str_of(record.id), &err), &err, ERR_CONFLICT);
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_put(workshop, 1, 2);
	workshop_ended(workshop, 1, BAKES_READY);
	assert_int_equal(workshop->made_count, 2);
}

static void a_running_bake_is_cancelled_soon(void **state)
{
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record record = {0};
	auto_bakes_record struct bakes_record last = {0};
	struct err err = {0};

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	record = workshop_wait(workshop, 1, BAKES_RUNNING);
	check_ok(queue_cancel(workshop->queue, str_of(record.id), &err), &err);
	last = workshop_wait(workshop, 1, BAKES_CANCELLED);
	assert_string_equal(workshop_text(last.error, "code"), "Cancelled");
	check_status(workshop, 1, 0, "failed");
	workshop_check_events(workshop, "image.baking bake.cancelled image.failed");
}

static void only_a_bake_that_is_there_can_be_cancelled(void **state)
{
	struct workshop *workshop = *state;
	struct err err = {0};

	workshop_start(workshop, 1);
	check_err(queue_cancel(workshop->queue, STR("bak_01jd0000000000000000000000"), &err), &err,
		  ERR_NOT_FOUND);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_READY);
}

static void a_new_version_stands_on_its_predecessors_base(void **state)
{
	struct workshop *workshop = *state;
	struct digest base = workshop_image("base");

	workshop_start(workshop, 1);
	workshop_put_base(workshop, 1, 1, "debian:12");
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_put_base(workshop, 1, 2, "debian:12");
	workshop_wait_made(workshop, 2);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_put_base(workshop, 1, 3, "debian:13");
	workshop_wait_made(workshop, 3);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_put_base(workshop, 1, 4, "debian:12");
	workshop_wait_made(workshop, 4);
	workshop_ended(workshop, 1, BAKES_READY);
	assert_false(workshop->made[0].has_base);
	assert_true(workshop->made[1].has_base);
	assert_true(digest_equal(&workshop->made[1].base, &base));
	assert_false(workshop->made[2].has_base);
	assert_false(workshop->made[3].has_base);
}

static void what_runs_is_put_back_when_the_daemon_stops(void **state)
{
	struct workshop *workshop = *state;

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_put(workshop, 2, 1);
	workshop_wait_made(workshop, 1);
	workshop_stop(workshop, 0);
	workshop_ended(workshop, 1, BAKES_QUEUED);
	workshop_check_events(workshop, "image.baking image.baking");
	workshop_open_gate(workshop);
	workshop_start(workshop, 1);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_ended(workshop, 2, BAKES_READY);
	assert_int_equal(workshop->made[1].attempt, 1); /* none was lost */
}

/* The record as a daemon leaves it that dies between the two halves of a cancellation. */
static void leave_cancelling(struct workshop *workshop)
{
	auto_bakes_record struct bakes_record record = workshop_wait(workshop, 1, BAKES_QUEUED);
	struct meta *meta;
	struct err err = {0};

	record.state = BAKES_RUNNING;
	record.cancelling = true;
	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(bakes_put(meta, &record, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static void what_was_to_be_cancelled_is_so_after_a_kill(void **state)
{
	struct workshop *workshop = *state;

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_wait_made(workshop, 1);
	workshop_stop(workshop, 0);
	leave_cancelling(workshop);
	workshop_start(workshop, 1);
	workshop_ended(workshop, 1, BAKES_CANCELLED);
	check_status(workshop, 1, 0, "failed");
	assert_int_equal(workshop->made_count, 1);
	workshop_check_events(workshop, "image.baking bake.cancelled image.failed");
}

static int count_bake(void *ctx, const struct bakes_record *record, struct err *err)
{
	size_t *count = ctx;

	(void)record;
	(void)err;
	++*count;
	return 0;
}

static void old_bakes_go_and_their_logs(void **state)
{
	struct workshop *workshop = *state;
	auto_bakes_record struct bakes_record first = {0};
	auto_buf struct buf log = BUF_INIT((size_t)1024);
	AUTO(meta) struct meta *meta = NULL;
	size_t count = 0;
	struct err err = {0};

	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	first = workshop_wait(workshop, 1, BAKES_READY);
	for (int64_t version = 2; version <= BAKES_KEPT + 3; version++) {
		workshop_put(workshop, 1, version);
		workshop_wait_made(workshop, (size_t)version);
	}
	workshop_ended(workshop, 1, BAKES_READY);
	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	check_ok(bakes_each(meta, workshop_agent(1), STR(""), count_bake, &count, &err), &err);
	assert_int_equal(count, BAKES_KEPT);
	check_ok(bake_log_read(workshop->fixture->store, str_of(first.id), 0, &log, &err), &err);
	assert_int_equal(log.len, 0);
	check_status(workshop, 1, 1, "ready");
}

static void who_has_time_lets_what_runs_end(void **state)
{
	struct workshop *workshop = *state;

	workshop_hold(workshop);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_put(workshop, 2, 1);
	workshop_wait_made(workshop, 1);
	workshop_let_go(workshop, 1);
	workshop_stop(workshop, 50000);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_ended(workshop, 2, BAKES_QUEUED);
}

static void what_waits_for_another_attempt_waits_over_a_restart(void **state)
{
	struct workshop *workshop = *state;

	workshop_fail(workshop, ERR_REMOTE, false);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_WAITING);
	workshop_stop(workshop, 0);
	workshop_fail(workshop, ERR_NONE, false);
	workshop_start(workshop, 1);
	workshop_put(workshop, 2, 1); /* it goes first, though it came later */
	workshop_ended(workshop, 2, BAKES_READY);
	workshop_ended(workshop, 1, BAKES_WAITING);
	workshop_pass_ms(workshop, 5000);
	workshop_ended(workshop, 1, BAKES_READY);
}

static void bakes_are_counted_by_how_they_ended(void **state)
{
	struct workshop *workshop = *state;
	struct queue_counts counts;

	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_fail(workshop, ERR_STEP, true);
	workshop_put(workshop, 2, 1);
	workshop_ended(workshop, 2, BAKES_FAILED);
	workshop_hold(workshop);
	workshop_put(workshop, 3, 1);
	workshop_put(workshop, 3, 2);
	workshop_wait_made(workshop, 3); /* by the one thread, so the others are done with */
	queue_count(workshop->queue, &counts);
	assert_int_equal(counts.ended[BAKES_READY], 1);
	assert_int_equal(counts.ended[BAKES_FAILED], 1);
	assert_int_equal(counts.running, 1);
	assert_int_equal(counts.waiting, 1);
	assert_int_equal(counts.steps.all[INSTRUCTION_COPY], 3);
	assert_int_equal(counts.steps.cached[INSTRUCTION_COPY], 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, workshop_open, workshop_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_version_is_baked_behind_its_callers_back),
		TEST(a_version_without_an_image_is_none_and_bakes_nothing),
		TEST(a_bake_whose_version_was_never_appended_never_was),
		TEST(no_more_run_at_once_than_may),
		TEST(agents_take_turns),
		TEST(a_newer_version_cancels_no_older_one),
		TEST(readers_see_the_step_that_runs),
		TEST(what_a_bake_wrote_can_be_read),
		TEST(what_failed_in_passing_is_tried_five_times_more),
		TEST(who_waits_for_another_attempt_says_until_when),
		TEST(what_would_fail_again_is_not_tried),
		TEST(an_image_that_cannot_be_published_is_made_again),
		TEST(a_bake_in_the_queue_is_cancelled_at_once),
		TEST(a_running_bake_is_cancelled_soon),
		TEST(only_a_bake_that_is_there_can_be_cancelled),
		TEST(a_new_version_stands_on_its_predecessors_base),
		TEST(what_runs_is_put_back_when_the_daemon_stops),
		TEST(what_was_to_be_cancelled_is_so_after_a_kill),
		TEST(old_bakes_go_and_their_logs),
		TEST(who_has_time_lets_what_runs_end),
		TEST(what_waits_for_another_attempt_waits_over_a_restart),
		TEST(bakes_are_counted_by_how_they_ended),
	};

	return cmocka_run_group_tests_name("bake/queue", tests, NULL, NULL);
}
