/* SPDX-License-Identifier: Apache-2.0 */
/* The clock stands still until it is moved, and what is pushed waits to be let go. */
#include "bake/pusher.h"
#include "bake/queue.h"
#include "layers/base/embed.h"
#include "layers/base/lock.h"
#include "tests/layers/store_fixture.h"

#include <poll.h>

struct scene {
	struct clock clock;
	struct store_fixture *fixture;
	struct pusher *pusher;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	int64_t now_ms;
	size_t pushed;
	enum err_kind kind; /* how it ends; ERR_CANCELLED waits for that */
	const char *slow;   /* the registry whose pushes wait for that, or NULL */
	char last[64];      /* reference */
	int64_t timeout_ms;
};

static int64_t scene_now_ms(const struct clock *clock)
{
	struct scene *scene = container_of(drop_const(clock), struct scene, clock);
	int64_t now_ms;

	lock_take(&scene->lock);
	now_ms = scene->now_ms;
	lock_drop(&scene->lock);
	return now_ms;
}

static int scene_push(void *ctx, struct str reference, const struct digest *image,
		      const struct cancel *cancel, struct err *err)
{
	struct scene *scene = ctx;
	struct pollfd wake = {.fd = cancel_fd(cancel), .events = POLLIN};
	enum err_kind kind;

	(void)image;
	lock_take(&scene->lock);
	scene->pushed++;
	kind = scene->kind;
	if (scene->slow && str_starts(reference, str_of(scene->slow)))
		kind = ERR_CANCELLED;
	(void)snprintf(scene->last, sizeof(scene->last), STR_FMT, STR_ARG(reference));
	pthread_cond_broadcast(&scene->changed);
	lock_drop(&scene->lock);
	if (kind == ERR_CANCELLED)
		(void)poll(&wake, 1, -1);
	return kind == ERR_NONE ? 0 : err_set(err, kind, "it is so");
}

static void scene_start(struct scene *scene)
{
	const struct pusher_options options = {.store = scene->fixture->store,
					       .push = scene_push,
					       .push_ctx = scene,
					       .clock = &scene->clock,
					       .timeout_ms = scene->timeout_ms};
	struct err err = {0};

	check_ok(pusher_start(&options, &scene->pusher, &err), &err);
}

static void scene_open(struct scene *scene, struct store_fixture *fixture, enum err_kind kind)
{
	*scene = (struct scene){.clock = {scene_now_ms},
				.fixture = fixture,
				.lock = LOCK_INIT,
				.changed = PTHREAD_COND_INITIALIZER,
				.now_ms = 1000,
				.kind = kind};
}

static void scene_put(struct scene *scene, const char *reference)
{
	struct digest image;
	struct meta *meta;
	struct err err = {0};

	digest_of(STR("image"), &image);
	check_ok(meta_begin(scene->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(pushes_put(meta, str_of(reference), &image, STR("bak_1"), 1000, &err), &err);
	if (scene->pusher)
		meta_on_commit(meta, pusher_wake, scene->pusher);
	check_ok(meta_commit(meta, &err), &err);
}

static void scene_await(struct scene *scene, size_t pushed)
{
	lock_take(&scene->lock);
	while (scene->pushed < pushed)
		pthread_cond_wait(&scene->changed, &scene->lock.os);
	lock_drop(&scene->lock);
}

static void scene_pass_ms(struct scene *scene, int64_t ms, enum err_kind kind)
{
	lock_take(&scene->lock);
	scene->now_ms += ms;
	scene->kind = kind;
	lock_drop(&scene->lock);
	pusher_wake(scene->pusher);
}

static int scene_find(struct scene *scene, const char *reference, struct pushes_record *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(scene->fixture->store, META_READ, &meta, &err), &err);
	return pushes_find(meta, str_of(reference), out, &err);
}

/* Until it is written how the first attempt went: by the clock of then. */
static void scene_await_written(struct scene *scene, const char *reference)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};

	while (scene_find(scene, reference, &record) == 1 && record.attempt == 0)
		(void)poll(NULL, 0, 1);
}

static void what_is_put_is_pushed_at_once(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct scene scene;

	scene_open(&scene, *state, ERR_NONE);
	scene_start(&scene);
	scene_put(&scene, "r.test/a:1");
	scene_await(&scene, 1);
	assert_string_equal(scene.last, "r.test/a:1");
	pusher_stop(scene.pusher);
	assert_int_equal(scene_find(&scene, "r.test/a:1", &record), 0);
}

static void what_was_put_before_the_start_is_pushed(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, ERR_NONE);
	scene_put(&scene, "r.test/a:1");
	scene_put(&scene, "r.test/b:1");
	scene_start(&scene);
	scene_await(&scene, 2);
	pusher_stop(scene.pusher);
}

static void what_failed_in_passing_is_pushed_when_its_time_comes(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct scene scene;

	scene_open(&scene, *state, ERR_REMOTE);
	scene_start(&scene);
	scene_put(&scene, "r.test/a:1");
	scene_await(&scene, 1);
	scene_await_written(&scene, "r.test/a:1");
	scene_pass_ms(&scene, QUEUE_RETRY_MS, ERR_NONE);
	scene_await(&scene, 2);
	pusher_stop(scene.pusher);
	assert_int_equal(scene_find(&scene, "r.test/a:1", &record), 0);
}

static void what_is_under_way_when_it_stops_stays_to_be_done(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct scene scene;

	scene_open(&scene, *state, ERR_CANCELLED);
	scene_start(&scene);
	scene_put(&scene, "r.test/a:1");
	scene_await(&scene, 1);
	pusher_stop(scene.pusher);
	assert_int_equal(scene_find(&scene, "r.test/a:1", &record), 1);
	assert_false(record.failed);
	assert_int_equal(record.attempt, 0);
}

static void a_registry_that_hangs_holds_up_no_other(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct scene scene;
	char name[32];

	scene_open(&scene, *state, ERR_NONE);
	scene.slow = "slow.test/";
	for (int i = 0; i < 2 * PUSHER_PARALLEL; i++) {
		(void)snprintf(name, sizeof(name), "slow.test/a:%d", i);
		scene_put(&scene, name);
	}
	scene_start(&scene);
	scene_await(&scene, PUSHER_HOST_MAX);
	scene_put(&scene, "r.test/b:1");
	scene_await(&scene, PUSHER_HOST_MAX + 1);
	assert_string_equal(scene.last, "r.test/b:1");
	pusher_stop(scene.pusher);
	assert_int_equal(scene.pushed, PUSHER_HOST_MAX + 1);
	assert_int_equal(scene_find(&scene, "r.test/b:1", &record), 0);
}

static void what_takes_too_long_has_failed_in_passing(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	struct scene scene;

	scene_open(&scene, *state, ERR_CANCELLED);
	scene.timeout_ms = 1;
	scene_start(&scene);
	scene_put(&scene, "r.test/a:1");
	scene_await_written(&scene, "r.test/a:1");
	pusher_stop(scene.pusher);
	assert_int_equal(scene_find(&scene, "r.test/a:1", &record), 1);
	assert_int_equal(record.attempt, 1);
	assert_false(record.failed);
	assert_string_equal(json_string_value(json_object_get(record.error, "code")), "TimedOut");
}

static void a_reference_has_one_push_at_a_time(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, ERR_CANCELLED);
	scene_start(&scene);
	scene_put(&scene, "r.test/a:1");
	scene_await(&scene, 1);
	scene_put(&scene, "r.test/a:1");
	scene_put(&scene, "r.test/b:1");
	scene_await(&scene, 2);
	assert_string_equal(scene.last, "r.test/b:1");
	pusher_stop(scene.pusher);
	assert_int_equal(scene.pushed, 2);
}

#define fixture_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(what_is_put_is_pushed_at_once),
		fixture_test(what_was_put_before_the_start_is_pushed),
		fixture_test(what_failed_in_passing_is_pushed_when_its_time_comes),
		fixture_test(what_is_under_way_when_it_stops_stays_to_be_done),
		fixture_test(a_registry_that_hangs_holds_up_no_other),
		fixture_test(what_takes_too_long_has_failed_in_passing),
		fixture_test(a_reference_has_one_push_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
