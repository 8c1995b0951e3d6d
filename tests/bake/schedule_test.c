/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/schedule.h"
#include "tests/bake/workshop.h"

#define MINUTE_MS ((int64_t)60 * 1000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

/* The clock stands at 2023-11-14 22:13:20 UTC; the first rebake of "0 3 * * *" is at 03:00. */
#define DAILY "0 3 * * *"
#define TO_FIRST_MS (4 * HOUR_MS + 46 * MINUTE_MS + (int64_t)40 * 1000)

static struct schedule *begin(struct workshop *workshop)
{
	struct schedule *schedule;
	struct err err = {0};

	check_ok(schedule_start(workshop->fixture->store, workshop->queue, &workshop->clock,
				&schedule, &err),
		 &err);
	return schedule;
}

/* It looks at its clock at least once. */
static void turn(struct workshop *workshop)
{
	schedule_stop(begin(workshop));
}

static void put(struct workshop *workshop, const char *cron, int64_t jitter_ms)
{
	const struct spec_rebake rebake = {str_of(cron), jitter_ms};
	struct schedule *schedule = begin(workshop);
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(schedule_put(schedule, meta, workshop_agent(1), &rebake, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	schedule_stop(schedule);
}

/* An agent whose image is there, and which is baked anew then. */
static void bear(struct workshop *workshop, const char *cron, int64_t jitter_ms)
{
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_READY);
	put(workshop, cron, jitter_ms);
}

/* When its next rebake is due. */
static int64_t next_ms(struct workshop *workshop)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_get(meta, "schedules", workshop_agent(1), &record, &err), 1);
	return json_integer_value(json_object_get(record, "dueMs"));
}

static int count_one(void *ctx, const struct bakes_record *record, struct err *err)
{
	size_t *count = ctx;

	(void)err;
	*count += record->rebake ? 1 : 0;
	return 0;
}

static size_t rebakes(struct workshop *workshop)
{
	AUTO(meta) struct meta *meta = NULL;
	size_t count = 0;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	check_ok(bakes_each(meta, workshop_agent(1), STR(""), count_one, &count, &err), &err);
	return count;
}

static void a_rebake_comes_at_its_time_and_not_before(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, DAILY, 0);
	workshop_pass_ms(workshop, TO_FIRST_MS - 1);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 0);
	workshop_pass_ms(workshop, 1);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	assert_int_equal(next_ms(workshop) - workshop->now_ms, DAY_MS);
}

static void a_thread_that_waits_hears_of_a_new_time(void **state)
{
	struct workshop *workshop = *state;
	const struct spec_rebake rebake = {STR("* * * * *"), 0};
	struct schedule *schedule;
	struct meta *meta;
	struct err err = {0};

	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_READY);
	schedule = begin(workshop);
	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(schedule_put(schedule, meta, workshop_agent(1), &rebake, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	workshop_pass_ms(workshop, MINUTE_MS);
	schedule_wake(schedule);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	schedule_stop(schedule);
	assert_int_equal(rebakes(workshop), 1);
}

static void missed_times_are_caught_up_once(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, DAILY, 0);
	workshop_pass_ms(workshop, 30 * DAY_MS); /* the daemon was down, or the clock jumped */
	turn(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	turn(workshop);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	assert_true(next_ms(workshop) > workshop->now_ms);
	assert_true(next_ms(workshop) <= workshop->now_ms + DAY_MS);
}

static void a_clock_that_goes_back_a_little_repeats_no_time(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, DAILY, 0);
	workshop_pass_ms(workshop, TO_FIRST_MS);
	turn(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	workshop_pass_ms(workshop, -HOUR_MS);
	turn(workshop);
	workshop_pass_ms(workshop, HOUR_MS);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	workshop_pass_ms(workshop, DAY_MS);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 2);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void a_clock_that_was_years_ahead_stops_no_rebakes(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, DAILY, 0);
	workshop_pass_ms(workshop, 3650 * DAY_MS);
	turn(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	workshop_pass_ms(workshop, -3650 * DAY_MS);
	turn(workshop);
	assert_int_equal(next_ms(workshop) - workshop->now_ms, TO_FIRST_MS);
	workshop_pass_ms(workshop, TO_FIRST_MS);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 2);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void jitter_is_the_same_each_time_it_is_asked_for_and_below_its_ceiling(void **state)
{
	struct workshop *workshop = *state;
	int64_t at_ms;

	bear(workshop, DAILY, HOUR_MS);
	at_ms = workshop->now_ms + TO_FIRST_MS;
	assert_true(next_ms(workshop) >= at_ms && next_ms(workshop) < at_ms + HOUR_MS);
	at_ms = next_ms(workshop);
	put(workshop, "", 0);
	put(workshop, DAILY, HOUR_MS);
	assert_int_equal(next_ms(workshop), at_ms);
	workshop_pass_ms(workshop, at_ms - workshop->now_ms - 1);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 0);
	workshop_pass_ms(workshop, 1);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void jitter_never_reaches_the_time_that_follows(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, "* * * * *", DAY_MS);
	for (size_t i = 1; i <= 5; i++) {
		int64_t wait_ms = next_ms(workshop) - workshop->now_ms;

		assert_true(wait_ms < 2 * MINUTE_MS);
		workshop_pass_ms(workshop, wait_ms);
		turn(workshop);
		assert_int_equal(rebakes(workshop), i);
		workshop_wait_made(workshop, i + 1);
		workshop_ended(workshop, 1, BAKES_UNCHANGED);
	}
}

static void a_version_with_the_same_times_misses_none(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, DAILY, 0);
	workshop_pass_ms(workshop, TO_FIRST_MS + HOUR_MS);
	put(workshop, DAILY, 0); /* which looks at the clock, too */
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void a_version_without_times_is_baked_anew_no_more(void **state)
{
	struct workshop *workshop = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	bear(workshop, DAILY, 0);
	put(workshop, "", 0);
	workshop_pass_ms(workshop, 3 * DAY_MS);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 0);
	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_has(meta, "schedules", workshop_agent(1), &err), 0);
	assert_int_equal(
		meta_find_end(meta, "schedules.due", STR(""), META_FIRST, &(struct str){0}, &err),
		0);
}

static void a_time_joins_the_rebake_that_is_not_done(void **state)
{
	struct workshop *workshop = *state;

	bear(workshop, "* * * * *", 0);
	workshop_hold(workshop);
	for (int i = 0; i < 3; i++) {
		workshop_pass_ms(workshop, MINUTE_MS);
		turn(workshop);
	}
	assert_int_equal(rebakes(workshop), 1);
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void a_record_that_cannot_be_read_stops_no_other(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *wrong = json_pack("{s:i}", "v", 1);
	struct meta *meta;
	struct err err = {0};

	bear(workshop, DAILY, 0);
	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "schedules", workshop_agent(0), wrong, &err), &err);
	check_ok(meta_put(meta, "schedules.due",
			  STR("\0\0\0\0\0\0\0\1agt_01jd0000000000000000000000"), wrong, &err),
		 &err);
	check_ok(meta_commit(meta, &err), &err);
	workshop_pass_ms(workshop, TO_FIRST_MS);
	turn(workshop);
	assert_int_equal(rebakes(workshop), 1);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, workshop_open, workshop_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rebake_comes_at_its_time_and_not_before),
		TEST(a_thread_that_waits_hears_of_a_new_time),
		TEST(missed_times_are_caught_up_once),
		TEST(a_clock_that_goes_back_a_little_repeats_no_time),
		TEST(a_clock_that_was_years_ahead_stops_no_rebakes),
		TEST(jitter_is_the_same_each_time_it_is_asked_for_and_below_its_ceiling),
		TEST(jitter_never_reaches_the_time_that_follows),
		TEST(a_version_with_the_same_times_misses_none),
		TEST(a_version_without_times_is_baked_anew_no_more),
		TEST(a_time_joins_the_rebake_that_is_not_done),
		TEST(a_record_that_cannot_be_read_stops_no_other),
	};

	return cmocka_run_group_tests_name("bake/schedule", tests, NULL, NULL);
}
