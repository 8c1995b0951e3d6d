/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/pushes.h"
#include "bake/queue.h"
#include "tests/layers/store_fixture.h"

static struct digest named(const char *text)
{
	struct digest digest;

	digest_of(str_of(text), &digest);
	return digest;
}

static struct meta *begin(const struct store_fixture *fixture)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	return meta;
}

static void end(struct meta *meta)
{
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
}

static void put(struct meta *meta, const char *reference, const char *image, const char *bake_id)
{
	const struct digest digest = named(image);
	struct err err = {0};

	check_ok(pushes_put(meta, str_of(reference), &digest, str_of(bake_id), &err), &err);
}

/* How the next one went; its kind is ERR_NONE where it is done. */
static void settle(struct meta *meta, enum err_kind kind, int64_t now_ms)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct err why = {0};
	struct err err = {0};

	assert_int_equal(pushes_next(meta, &record, &err), 1);
	if (kind != ERR_NONE)
		(void)err_set(&why, kind, "it is so");
	check_ok(pushes_settle(meta, &record, kind == ERR_NONE ? NULL : &why, now_ms, &err), &err);
}

static void the_next_is_the_one_that_waits_least(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	const struct digest image = named("b");
	struct meta *meta = begin(*state);
	struct err err = {0};

	assert_int_equal(pushes_next(meta, &record, &err), 0);
	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_REMOTE, 1000);
	put(meta, "r.test/b:1", "b", "bak_2");
	assert_int_equal(pushes_next(meta, &record, &err), 1);
	assert_string_equal(record.reference, "r.test/b:1");
	assert_string_equal(record.bake_id, "bak_2");
	assert_true(digest_equal(&record.image, &image));
	assert_int_equal(record.retry_ms, 0);
	end(meta);
}

static void one_that_is_done_is_gone(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin(*state);
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_NONE, 1000);
	assert_int_equal(pushes_next(meta, &record, &err), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 0);
	end(meta);
}

static void what_fails_in_passing_is_tried_five_times_more(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin(*state);
	int64_t wait_ms = QUEUE_RETRY_MS;
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	for (int i = 0; i < QUEUE_RETRIES; i++, wait_ms *= 2) {
		settle(meta, ERR_REMOTE, 1000);
		assert_int_equal(pushes_next(meta, &record, &err), 1);
		assert_int_equal(record.retry_ms, 1000 + wait_ms);
		assert_int_equal(record.attempt, i + 1);
	}
	settle(meta, ERR_REMOTE, 1000);
	assert_int_equal(pushes_next(meta, &record, &err), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 1);
	assert_true(record.failed);
	assert_string_equal(json_string_value(json_object_get(record.error, "code")),
			    "UpstreamFailed");
	end(meta);
}

static void what_would_fail_again_is_not_tried_again(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct meta *meta = begin(*state);
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	settle(meta, ERR_DENIED, 1000);
	assert_int_equal(pushes_next(meta, &record, &err), 0);
	assert_int_equal(pushes_find(meta, STR("r.test/a:1"), &record, &err), 1);
	assert_true(record.failed);

	/* The next image has its own chance. */
	put(meta, "r.test/a:1", "b", "bak_2");
	assert_int_equal(pushes_next(meta, &record, &err), 1);
	assert_int_equal(record.attempt, 0);
	end(meta);
}

static void a_later_image_takes_the_place_of_one_that_is_under_way(void **state)
{
	auto_pushes_record struct pushes_record first = {.error = NULL};
	auto_pushes_record struct pushes_record record = {.error = NULL};
	const struct digest later = named("b");
	struct meta *meta = begin(*state);
	struct err why = {0};
	struct err err = {0};

	put(meta, "r.test/a:1", "a", "bak_1");
	assert_int_equal(pushes_next(meta, &first, &err), 1);
	put(meta, "r.test/a:1", "b", "bak_2");
	check_ok(pushes_settle(meta, &first, NULL, 1000, &err), &err);
	assert_int_equal(pushes_next(meta, &record, &err), 1);
	assert_true(digest_equal(&record.image, &later));
	(void)err_set(&why, ERR_DENIED, "no");
	check_ok(pushes_settle(meta, &first, &why, 1000, &err), &err);
	assert_int_equal(pushes_next(meta, &record, &err), 1);
	assert_int_equal(record.attempt, 0);
	end(meta);
}

#define fixture_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(the_next_is_the_one_that_waits_least),
		fixture_test(one_that_is_done_is_gone),
		fixture_test(what_fails_in_passing_is_tried_five_times_more),
		fixture_test(what_would_fail_again_is_not_tried_again),
		fixture_test(a_later_image_takes_the_place_of_one_that_is_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
