/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/pushes.h"

#include "bake/queue.h"
#include "bake/status_push.h"
#include "layers/journal.h"
#include "tests/layers/records.h"

#define FOR_EVER INT64_MAX

static void put(struct meta *meta, const char *reference, const char *image, const char *bake_id)
{
	const struct digest digest = named(image);
	struct err err = {0};

	check_ok(pushes_put(meta, str_of(reference), &digest, str_of(bake_id), 1000, &err), &err);
}

static bool may(void *ctx, const struct pushes_record *record)
{
	const char *reference = ctx; /* of the one that may not */

	return !reference || strcmp(reference, record->reference) != 0;
}

/* Whether one is due by then. */
static int find_due(struct meta *meta, int64_t now_ms, struct pushes_record *out)
{
	int64_t next_ms;
	struct err err = {0};

	return pushes_find_due(meta, now_ms, may, NULL, out, &next_ms, &err);
}

/* How the next one went; its kind is ERR_NONE where it is done. */
static void settle(struct meta *meta, enum err_kind kind, int64_t now_ms)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct err why = {0};
	struct err err = {0};

	assert_int_equal(find_due(meta, FOR_EVER, &record), 1);
	if (kind != ERR_NONE)
		(void)err_set(&why, kind, "it is so");
	check_ok(pushes_settle(meta, &record, kind == ERR_NONE ? NULL : &why, now_ms, &err), &err);
}

static void one_that_is_due_goes_before_one_that_waits(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	const struct digest image = named("b");
	struct meta *meta = begin_write(*state);
	int64_t next_ms;
	struct err err = {0};

	assert_int_equal(find_due(meta, 1000, &record), 0);
	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_REMOTE, 1000);
	put(meta, "r.test/b:1", "b", "bak_2");
	assert_int_equal(find_due(meta, 1000, &record), 1);
	assert_string_equal(record.reference, "r.test/b:1");
	assert_string_equal(record.bake_id, "bak_2");
	assert_true(digest_equal(&record.image, &image));
	assert_int_equal(record.retry_ms, 0);

	/* One that may not be tried is none that is waited for. */
	assert_int_equal(
		pushes_find_due(meta, 1000, may, drop_const("r.test/b:1"), &record, &next_ms, &err),
		0);
	assert_int_equal(next_ms, 1000 + QUEUE_RETRY_MS);
	end_write(meta);
}

static void one_that_is_done_is_gone(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin_write(*state);
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_NONE, 1000);
	assert_int_equal(find_due(meta, FOR_EVER, &record), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 0);
	end_write(meta);
}

static void what_fails_in_passing_is_tried_five_times_more(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin_write(*state);
	int64_t wait_ms = QUEUE_RETRY_MS;
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	for (int i = 0; i < QUEUE_RETRIES; i++, wait_ms *= 2) {
		settle(meta, ERR_REMOTE, 1000);
		assert_int_equal(find_due(meta, FOR_EVER, &record), 1);
		assert_int_equal(record.retry_ms, 1000 + wait_ms);
		assert_int_equal(record.attempt, i + 1);
	}
	settle(meta, ERR_REMOTE, 1000);
	assert_int_equal(find_due(meta, FOR_EVER, &record), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 1);
	assert_true(record.failed);
	assert_string_equal(json_string_value(json_object_get(record.error, "code")),
			    "UpstreamFailed");
	end_write(meta);
}

static void what_would_fail_again_is_not_tried_again(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin_write(*state);
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_DENIED, 1000);
	assert_int_equal(find_due(meta, FOR_EVER, &record), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 1);
	assert_true(record.failed);

	/* The next image has its own chance. */
	put(meta, "r.test/a:1", "b", "bak_2");
	assert_int_equal(find_due(meta, FOR_EVER, &record), 1);
	assert_int_equal(record.attempt, 0);
	end_write(meta);
}

static void a_later_image_takes_the_place_of_one_that_is_under_way(void **state)
{
	auto_pushes_record struct pushes_record first = {.error = NULL};
	auto_pushes_record struct pushes_record record = {.error = NULL};
	const struct digest later = named("b");
	struct meta *meta = begin_write(*state);
	struct err why = {0};
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	assert_int_equal(find_due(meta, FOR_EVER, &first), 1);
	put(meta, "r.test/a:1", "b", "bak_2");
	check_ok(pushes_settle(meta, &first, NULL, 1000, &err), &err);
	assert_int_equal(find_due(meta, FOR_EVER, &record), 1);
	assert_true(digest_equal(&record.image, &later));
	(void)err_set(&why, ERR_DENIED, "no");
	check_ok(pushes_settle(meta, &first, &why, 1000, &err), &err);
	assert_int_equal(find_due(meta, FOR_EVER, &record), 1);
	assert_int_equal(record.attempt, 0);
	end_write(meta);
}

/* A version of an agent whose bake made that image, which goes to r.test/a:1. The bake's id. */
static void bear(struct meta *meta, int64_t version, const char *image, struct bakes_record *bake)
{
	AUTO(json) json_t *references = json_pack("[s]", "r.test/a:1");
	AUTO(json) json_t *status = status_new(STR("agt_1"), STR("bot"), version);
	const struct digest digest = named(image);
	struct err err = {0};

	*bake = (struct bakes_record){.version = version,
				      .agent_id = "agt_1",
				      .slug = "bot",
				      .base_name = STR("scratch"),
				      .state = BAKES_READY,
				      .created_ms = 1000};
	check_ok(bakes_add(meta, bake, &err), &err);
	put(meta, "r.test/a:1", image, bake->id);
	status_push_begin(status, references, &digest, bake->id, 1000);
	check_ok(status_put(meta, status, &err), &err);
}

static void check_told(struct meta *meta, int64_t version, const char *state)
{
	AUTO(json) json_t *status = NULL;
	const json_t *push;
	struct err err = {0};

	assert_int_equal(status_find(meta, STR("agt_1"), version, &status, &err), 1);
	push = json_array_get(json_object_get(status, "pushes"), 0);
	assert_string_equal(json_string_value(json_object_get(push, "reference")), "r.test/a:1");
	assert_string_equal(json_string_value(json_object_get(push, "status")), state);
	assert_int_equal(json_object_get(push, "error") != NULL,
			 strcmp(state, "failed") == 0 || json_object_get(push, "retryAt") != NULL);
}

static int take_type(void *ctx, const struct event *event, struct err *err)
{
	(void)err;
	assert_true(str_equal(event->agent_id, STR("agt_1")));
	(void)snprintf(ctx, 32, STR_FMT, STR_ARG(event->type));
	return 0;
}

static void check_last_event(struct meta *meta, const char *type)
{
	char last[32] = "";
	struct err err = {0};

	check_ok(journal_read(meta, 0, take_type, last, &err), &err);
	assert_string_equal(last, type);
}

static void a_version_says_how_its_pushes_go(void **state)
{
	AUTO(bakes_record) struct bakes_record bake = {0};
	struct meta *meta = begin_write(*state);

	bear(meta, 1, "a", &bake);
	check_told(meta, 1, "pushing");
	settle(meta, ERR_REMOTE, 1000);
	check_told(meta, 1, "pushing");
	check_last_event(meta, "image.pushFailed");
	settle(meta, ERR_NONE, 7000);
	check_told(meta, 1, "pushed");
	check_last_event(meta, "image.pushed");
	end_write(meta);
}

static void one_that_fails_for_good_says_why(void **state)
{
	AUTO(bakes_record) struct bakes_record bake = {0};
	struct meta *meta = begin_write(*state);

	bear(meta, 1, "a", &bake);
	settle(meta, ERR_DENIED, 1000);
	check_told(meta, 1, "failed");
	check_last_event(meta, "image.pushFailed");
	end_write(meta);
}

static void what_another_version_pushes_instead_is_replaced(void **state)
{
	AUTO(bakes_record) struct bakes_record first = {0};
	AUTO(bakes_record) struct bakes_record second = {0};
	struct meta *meta = begin_write(*state);

	bear(meta, 1, "a", &first);
	bear(meta, 2, "b", &second);
	check_told(meta, 1, "replaced");
	check_told(meta, 2, "pushing");
	settle(meta, ERR_NONE, 1000);
	check_told(meta, 1, "replaced");
	check_told(meta, 2, "pushed");
	end_write(meta);
}

static void a_status_tells_the_pushes_of_each_bake(void **state)
{
	AUTO(json) json_t *references = json_pack("[s, s]", "r.test/a:1", "r.test/b:1");
	AUTO(json) json_t *status = status_new(STR("agt_1"), STR("bot"), 1);
	AUTO(json) json_t *same = NULL;
	AUTO(json) json_t *ours = NULL;
	AUTO(json) json_t *others = NULL;
	const struct digest image = named("a");
	const struct digest other = named("b");

	(void)state;
	status_push_begin(status, references, &image, "bak_1", 1000);
	same = status_push_references(status);
	assert_true(json_equal(same, references));
	ours = status_push_of_bake(status, "bak_1", &image);
	assert_int_equal(json_array_size(ours), 2);
	others = status_push_of_bake(status, "bak_1", &other);
	assert_int_equal(json_array_size(others), 0);
	status_push_begin(status, NULL, &image, "bak_2", 2000);
	assert_null(json_object_get(status, "pushes"));
}

#define fixture_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(one_that_is_due_goes_before_one_that_waits),
		fixture_test(one_that_is_done_is_gone),
		fixture_test(what_fails_in_passing_is_tried_five_times_more),
		fixture_test(what_would_fail_again_is_not_tried_again),
		fixture_test(a_later_image_takes_the_place_of_one_that_is_under_way),
		fixture_test(a_version_says_how_its_pushes_go),
		fixture_test(one_that_fails_for_good_says_why),
		fixture_test(what_another_version_pushes_instead_is_replaced),
		cmocka_unit_test(a_status_tells_the_pushes_of_each_bake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
