/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/status_push.h"
#include "tests/bake/workshop.h"

#define BORN "image.baking image.ready "

/* An agent whose first version has its image. */
static void bear(struct workshop *workshop)
{
	workshop_start(workshop, 2);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_READY);
}

static struct queue_ticket rebake(struct workshop *workshop)
{
	struct queue_ticket ticket;
	struct err err = {0};

	check_ok(queue_rebake(workshop->queue, workshop_agent(1), 0, &ticket, &err), &err);
	return ticket;
}

static void the_old_image_serves_until_there_is_another(void **state)
{
	struct workshop *workshop = *state;
	struct digest first = workshop_image("first");
	AUTO(json) json_t *during = NULL;
	AUTO(json) json_t *after = NULL;
	struct queue_ticket ticket;

	bear(workshop);
	workshop_set_image(workshop, "second");
	workshop_hold(workshop);
	ticket = rebake(workshop);
	assert_false(ticket.joined);
	workshop_wait_made(workshop, 2);
	during = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(during, "status"), "ready");
	workshop_check_image(during, "first");
	assert_string_equal(workshop_text(json_object_get(during, "rebake"), "status"), "baking");
	assert_string_equal(workshop_text(json_object_get(during, "rebake"), "phase"), "running");
	assert_string_equal(workshop_text(json_object_get(during, "rebake"), "bakeId"),
			    ticket.bake_id);
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	after = workshop_status(workshop, 1, 0);
	workshop_check_image(after, "second");
	workshop_check_image(json_object_get(after, "previous"), "first");
	assert_string_equal(workshop_text(json_object_get(after, "rebake"), "status"), "ready");
	assert_true(workshop->made[1].rebake);
	assert_true(digest_equal(&workshop->made[1].previous, &first));
	assert_false(workshop->made[1].has_base); /* it is asked for again */
	workshop_check_events(workshop, BORN "image.rebaking image.rebaked");
}

static void an_equal_image_is_unchanged(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;

	bear(workshop);
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	status = workshop_status(workshop, 1, 0);
	workshop_check_image(status, "first");
	assert_null(json_object_get(status, "previous"));
	assert_string_equal(workshop_text(json_object_get(status, "rebake"), "status"),
			    "unchanged");
	workshop_check_events(workshop, BORN "image.rebaking image.unchanged");
}

static void a_rebake_that_fails_takes_nothing_away(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	const json_t *last;

	bear(workshop);
	workshop_fail(workshop, ERR_STEP, true);
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_FAILED);
	status = workshop_status(workshop, 1, 0);
	last = json_object_get(status, "rebake");
	assert_string_equal(workshop_text(status, "status"), "ready");
	workshop_check_image(status, "first");
	assert_null(json_object_get(status, "error"));
	assert_string_equal(workshop_text(last, "status"), "failed");
	assert_string_equal(workshop_text(json_object_get(last, "error"), "code"), "StepFailed");
	workshop_check_events(workshop, BORN "image.rebaking image.rebakeFailed");
}

static void a_rebake_that_waits_leaves_the_image_ready(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	AUTO(json) json_t *after = NULL;
	const json_t *last;

	bear(workshop);
	workshop_fail(workshop, ERR_REMOTE, false);
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_WAITING);
	status = workshop_status(workshop, 1, 0);
	last = json_object_get(status, "rebake");
	assert_string_equal(workshop_text(status, "status"), "ready");
	assert_null(json_object_get(status, "retryAt"));
	assert_string_equal(workshop_text(last, "status"), "baking");
	assert_string_equal(workshop_text(last, "phase"), "waiting");
	assert_string_equal(workshop_text(last, "retryAt"), "2023-11-14T22:13:25.000Z");
	assert_string_equal(workshop_text(json_object_get(last, "error"), "code"),
			    "UpstreamFailed");
	assert_int_equal(json_integer_value(json_object_get(last, "attempt")), 1);
	workshop_fail(workshop, ERR_NONE, false);
	workshop_pass_ms(workshop, 5000);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	after = workshop_status(workshop, 1, 0);
	last = json_object_get(after, "rebake");
	assert_string_equal(workshop_text(last, "status"), "unchanged");
	assert_null(json_object_get(last, "error"));
	assert_null(json_object_get(last, "retryAt"));
}

static void a_second_rebake_joins_the_first(void **state)
{
	struct workshop *workshop = *state;
	struct queue_ticket first;
	struct queue_ticket second;
	struct queue_ticket third;

	bear(workshop);
	workshop_hold(workshop);
	first = rebake(workshop);
	second = rebake(workshop);
	workshop_wait_made(workshop, 2);
	third = rebake(workshop);
	assert_true(second.joined && third.joined);
	assert_string_equal(second.bake_id, first.bake_id);
	assert_string_equal(third.bake_id, first.bake_id);
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
	assert_false(rebake(workshop).joined);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void rebakes_of_two_versions_follow_each_other(void **state)
{
	struct workshop *workshop = *state;
	struct queue_ticket first;
	struct queue_ticket second;

	bear(workshop);
	workshop_hold(workshop);
	first = rebake(workshop);
	workshop_wait_made(workshop, 2);
	workshop_put(workshop, 1, 2);
	workshop_wait_made(workshop, 3);
	second = rebake(workshop); /* of the version that is latest now */
	assert_false(second.joined);
	assert_string_not_equal(second.bake_id, first.bake_id);
	workshop_let_go(workshop, 2);
	workshop_wait_made(workshop, 4);
	assert_int_equal(workshop->made[3].version, 2);
	assert_true(workshop->made[3].rebake);
	assert_int_equal(workshop->running_most, 2);
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED);
}

static void a_failed_version_gets_its_image_by_a_rebake(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *during = NULL;
	AUTO(json) json_t *after = NULL;

	workshop_fail(workshop, ERR_STEP, true);
	workshop_start(workshop, 1);
	workshop_put(workshop, 1, 1);
	workshop_ended(workshop, 1, BAKES_FAILED);
	workshop_fail(workshop, ERR_NONE, false);
	workshop_hold(workshop);
	(void)rebake(workshop);
	workshop_wait_made(workshop, 2);
	during = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(during, "status"), "baking");
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	after = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(after, "status"), "ready");
	assert_null(json_object_get(after, "previous"));
	workshop_check_events(workshop, "image.baking image.failed image.rebaking image.ready "
					"image.rebaked");
}

static void a_cancelled_rebake_leaves_the_image_ready(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	struct queue_ticket ticket;
	struct err err = {0};

	bear(workshop);
	workshop_hold(workshop);
	ticket = rebake(workshop);
	workshop_wait_made(workshop, 2);
	check_ok(queue_cancel(workshop->queue, str_of(ticket.bake_id), &err), &err);
	workshop_ended(workshop, 1, BAKES_CANCELLED);
	status = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(status, "status"), "ready");
	assert_string_equal(workshop_text(json_object_get(status, "rebake"), "status"), "failed");
	workshop_check_events(workshop, BORN "image.rebaking bake.cancelled image.rebakeFailed");
}

static void a_rollback_puts_the_image_before_the_last_rebake_back(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *status = NULL;
	struct digest first = workshop_image("first");
	struct digest digest;
	struct err err = {0};

	bear(workshop);
	workshop_set_image(workshop, "second");
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	check_ok(queue_rollback(workshop->queue, workshop_agent(1), &digest, &err), &err);
	assert_true(digest_equal(&digest, &first));
	status = workshop_status(workshop, 1, 0);
	workshop_check_image(status, "first");
	assert_int_equal(workshop->restored, 1);
	workshop_check_events(workshop, BORN "image.rebaking image.rebaked image.rebaked");
	check_err(queue_rollback(workshop->queue, workshop_agent(1), &digest, &err), &err,
		  ERR_CONFLICT);
}

static void a_rollback_pushes_the_image_that_it_puts_back(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *references = json_pack("[s]", "r.test/bot:1");
	AUTO(json) json_t *status = NULL;
	struct digest digest;
	struct err err = {0};

	workshop->pushes = references;
	bear(workshop);
	workshop_set_image(workshop, "second");
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	check_ok(queue_rollback(workshop->queue, workshop_agent(1), &digest, &err), &err);
	assert_int_equal(workshop->pushed_again, 1);
	status = workshop_status(workshop, 1, 0);
	workshop_check_image(json_array_get(json_object_get(status, "pushes"), 0), "first");
}

static void what_a_rebake_is_at_is_shown_after_a_push_of_its_version(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *references = json_pack("[s]", "r.test/bot:1");
	AUTO(json) json_t *status = NULL;
	struct status_push push = {
		.reference = STR("r.test/bot:1"), .state = "pushed", .at_ms = 1000};
	const struct status_progress progress = {.phase = "exporting"};
	struct bakes_record record;
	struct meta *meta;
	struct err err = {0};

	workshop->pushes = references;
	workshop_start(workshop, 2);
	workshop_put(workshop, 1, 1);
	record = workshop_wait(workshop, 1, BAKES_READY);
	workshop_hold(workshop);
	(void)rebake(workshop);
	workshop_wait_made(workshop, 2);
	push.bake_id = record.id;
	push.image = &record.image;
	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(status_find(meta, workshop_agent(1), 1, &status, &err), 1);
	assert_true(status_push_set(status, &push));
	check_ok(status_put(meta, status, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	json_decref(status);
	workshop->ear->progress(workshop->ear->ctx, &progress);
	status = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(json_object_get(status, "rebake"), "phase"), "exporting");
	assert_string_equal(
		workshop_text(json_array_get(json_object_get(status, "pushes"), 0), "status"),
		"pushed");
	workshop_open_gate(workshop);
	workshop_ended(workshop, 1, BAKES_UNCHANGED); /* which reads the references */
	bakes_record_done(&record);
}

static void a_version_stands_on_the_base_that_was_rolled_back_to(void **state)
{
	struct workshop *workshop = *state;
	struct digest base = workshop_image("base");
	struct digest ignored;
	struct err err = {0};

	workshop_start(workshop, 1);
	workshop_put_base(workshop, 1, 1, "debian:12");
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_set_image(workshop, "second");
	workshop_set_base(workshop, "moved");
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	check_ok(queue_rollback(workshop->queue, workshop_agent(1), &ignored, &err), &err);
	workshop_put_base(workshop, 1, 2, "debian:12");
	workshop_wait_made(workshop, 3);
	workshop_ended(workshop, 1, BAKES_READY);
	assert_true(workshop->made[2].has_base);
	assert_true(digest_equal(&workshop->made[2].base, &base));
}

static void a_version_stands_on_the_base_of_a_rebake(void **state)
{
	struct workshop *workshop = *state;
	struct digest moved = workshop_image("moved");

	workshop_start(workshop, 1);
	workshop_put_base(workshop, 1, 1, "debian:12");
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_set_image(workshop, "second");
	workshop_set_base(workshop, "moved");
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	workshop_fail(workshop, ERR_STEP, true);
	workshop_put_base(workshop, 1, 2, "debian:12");
	workshop_ended(workshop, 1, BAKES_FAILED);
	workshop_put_base(workshop, 1, 3, "debian:12");
	workshop_wait_made(workshop, 4);
	workshop_ended(workshop, 1, BAKES_FAILED);
	assert_true(workshop->made[2].has_base);
	assert_true(digest_equal(&workshop->made[2].base, &moved));
	assert_true(digest_equal(&workshop->made[3].base, &moved));
}

static void an_images_times_are_those_of_the_bake_that_made_it(void **state)
{
	struct workshop *workshop = *state;
	AUTO(json) json_t *rebaked = NULL;
	AUTO(json) json_t *rolled_back = NULL;
	struct digest ignored;
	struct err err = {0};

	bear(workshop);
	workshop_pass_ms(workshop, 60000);
	workshop_set_image(workshop, "second");
	(void)rebake(workshop);
	workshop_ended(workshop, 1, BAKES_READY);
	rebaked = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(rebaked, "startedAt"), "2023-11-14T22:14:20.000Z");
	assert_string_equal(workshop_text(rebaked, "finishedAt"), "2023-11-14T22:14:20.000Z");
	check_ok(queue_rollback(workshop->queue, workshop_agent(1), &ignored, &err), &err);
	rolled_back = workshop_status(workshop, 1, 0);
	assert_string_equal(workshop_text(rolled_back, "startedAt"), "2023-11-14T22:13:20.000Z");
	assert_string_equal(workshop_text(rolled_back, "finishedAt"), "2023-11-14T22:13:20.000Z");
}

static void there_is_nothing_to_roll_back_to_before_a_rebake(void **state)
{
	struct workshop *workshop = *state;
	struct digest digest;
	struct err err = {0};

	bear(workshop);
	check_err(queue_rollback(workshop->queue, workshop_agent(1), &digest, &err), &err,
		  ERR_CONFLICT);
	check_err(queue_rollback(workshop->queue, workshop_agent(2), &digest, &err), &err,
		  ERR_NOT_FOUND);
}

static void who_is_no_agent_is_not_rebaked(void **state)
{
	struct workshop *workshop = *state;
	struct queue_ticket ticket;
	struct err err = {0};

	workshop_start(workshop, 1);
	check_err(queue_rebake(workshop->queue, workshop_agent(1), 0, &ticket, &err), &err,
		  ERR_NOT_FOUND);
}

static void a_rebake_is_taken_up_after_a_restart(void **state)
{
	struct workshop *workshop = *state;
	struct queue_ticket ticket;
	auto_bakes_record struct bakes_record record = {0};

	bear(workshop);
	workshop_hold(workshop);
	ticket = rebake(workshop);
	workshop_wait_made(workshop, 2);
	workshop_stop(workshop, 0);
	workshop_open_gate(workshop);
	workshop_start(workshop, 1);
	record = workshop_wait(workshop, 1, BAKES_UNCHANGED);
	assert_string_equal(record.id, ticket.bake_id);
	workshop_check_events(workshop, BORN "image.rebaking image.unchanged");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, workshop_open, workshop_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_old_image_serves_until_there_is_another),
		TEST(an_equal_image_is_unchanged),
		TEST(a_rebake_that_fails_takes_nothing_away),
		TEST(a_rebake_that_waits_leaves_the_image_ready),
		TEST(a_second_rebake_joins_the_first),
		TEST(rebakes_of_two_versions_follow_each_other),
		TEST(a_failed_version_gets_its_image_by_a_rebake),
		TEST(a_cancelled_rebake_leaves_the_image_ready),
		TEST(a_rollback_puts_the_image_before_the_last_rebake_back),
		TEST(a_rollback_pushes_the_image_that_it_puts_back),
		TEST(what_a_rebake_is_at_is_shown_after_a_push_of_its_version),
		TEST(a_version_stands_on_the_base_that_was_rolled_back_to),
		TEST(a_version_stands_on_the_base_of_a_rebake),
		TEST(an_images_times_are_those_of_the_bake_that_made_it),
		TEST(there_is_nothing_to_roll_back_to_before_a_rebake),
		TEST(who_is_no_agent_is_not_rebaked),
		TEST(a_rebake_is_taken_up_after_a_restart),
	};

	return cmocka_run_group_tests_name("bake/queue_rebake", tests, NULL, NULL);
}
