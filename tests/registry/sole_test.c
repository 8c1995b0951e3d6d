/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/sole_priv.h"

#include "layers/base/thread.h"
#include "tests/registry/pulling.h"

#include <stdatomic.h>

static struct sole take(struct store *store, const struct digest *blob)
{
	struct sole sole = SOLE_INIT;
	struct err err = {0};

	check_ok(sole_take(store, blob, NULL, NULL, &sole, &err), &err);
	assert_true(sole.fd >= 0);
	return sole;
}

static struct digest named(const char *text)
{
	struct digest digest;

	digest_of(str_of(text), &digest);
	return digest;
}

/* Who comes second, and whether the first had gone when he got it. */
struct second {
	struct store *store;
	struct digest blob;
	atomic_bool gone;
	bool was_gone;
};

static void *second_run(void *ctx)
{
	struct second *second = ctx;
	struct sole sole = take(second->store, &second->blob);

	second->was_gone = atomic_load(&second->gone);
	sole_drop(&sole);
	return NULL;
}

static void one_holds_a_blob_and_others_wait(void **state)
{
	struct pulling *pulling = *state;
	struct second second = {.store = pulling->store, .blob = named("a")};
	struct digest other = named("b");
	struct sole first = take(pulling->store, &second.blob);
	struct sole beside = take(pulling->store, &other);
	pthread_t thread;
	struct err err = {0};

	check_ok(thread_start(&thread, second_run, &second, &err), &err);
	sole_drop(&beside);
	atomic_store(&second.gone, true);
	sole_drop(&first);
	(void)pthread_join(thread, NULL);
	assert_true(second.was_gone);
	first = take(pulling->store, &second.blob); /* nobody has it any more */
	sole_drop(&first);
}

static void who_is_cancelled_does_not_wait(void **state)
{
	struct pulling *pulling = *state;
	struct digest blob = named("a");
	struct sole first = take(pulling->store, &blob);
	struct sole second = SOLE_INIT;
	struct cancel cancel;
	struct err err = {0};

	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(sole_take(pulling->store, &blob, &cancel, NULL, &second, &err), &err,
		  ERR_CANCELLED);
	check_err(sole_take(pulling->store, &blob, NULL, &cancel, &second, &err), &err,
		  ERR_CANCELLED);
	assert_int_equal(second.fd, -1);
	cancel_done(&cancel);
	sole_drop(&first);
}

/* One pull of several at once. */
struct puller {
	struct store *store;
	struct pull_spec spec;
	struct tag tag;
	int fetched;
	struct err err;
	int result;
};

static void puller_hear(void *ctx, const struct pull_event *event)
{
	struct puller *puller = ctx;

	puller->fetched += event->kind == PULL_LAYER_DONE;
}

static void *puller_run(void *ctx)
{
	struct puller *puller = ctx;

	puller->result = pull_image(puller->store, &puller->spec, &puller->tag, &puller->err);
	return NULL;
}

static void pulls_at_once_fetch_each_layer_once(void **state)
{
	struct pulling *pulling = *state;
	struct puller pullers[3];
	pthread_t threads[3];
	struct sole held;
	struct err err = {0};
	int fetched = 0;

	pulling_make(pulling, SAMPLE_FINE);
	held = take(pulling->store, &pulling->image.layers[0]);
	for (size_t i = 0; i < 3; i++) {
		pullers[i] = (struct puller){.store = pulling->store, .spec = pulling->spec};
		pullers[i].spec.event = puller_hear;
		pullers[i].spec.event_ctx = &pullers[i];
		check_ok(thread_start(&threads[i], puller_run, &pullers[i], &err), &err);
	}
	sole_drop(&held);
	for (size_t i = 0; i < 3; i++) {
		(void)pthread_join(threads[i], NULL);
		check_ok(pullers[i].result, &pullers[i].err);
		fetched += pullers[i].fetched;
	}
	assert_int_equal(fetched, SAMPLE_LAYERS);
	pulling->tag = pullers[0].tag;
	pulling_check_whole(pulling);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pulling_new, pulling_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_holds_a_blob_and_others_wait),
		TEST(who_is_cancelled_does_not_wait),
		TEST(pulls_at_once_fetch_each_layer_once),
	};

	return cmocka_run_group_tests_name("registry/sole", tests, NULL, NULL);
}
