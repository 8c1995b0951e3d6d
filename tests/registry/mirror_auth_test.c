/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream that wants to know who asks. */
#include "tests/registry/mirror_bench.h"

#include <stdatomic.h>

/* Of the test: who logs in, and what the token service saw. */
struct door {
	struct mirror_bench *bench;
	const char *password; /* of "me"; NULL for nobody */
	atomic_int logins;
	atomic_int tokens; /* that were asked for */
};

static struct door door; /* the handlers have no other way to it */

static int log_in(void *ctx, struct str reference, const struct cancel *cancel,
		  struct credentials *out, struct err *err)
{
	(void)ctx, (void)cancel;
	atomic_fetch_add(&door.logins, 1);
	assert_non_null(memmem(reference.ptr, reference.len, "/acme/", 6));
	if (!door.password)
		return 0;
	(void)snprintf(out->user, sizeof(out->user), "me");
	return secret_put(&out->password, str_of(door.password), err);
}

/* Where bench->step is set, each token is good for one request, whatever it says of its time. */
static void wants_a_token(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	char challenge[256];
	char bearer[64];

	(void)snprintf(bearer, sizeof(bearer), "Authorization: Bearer t%d\r\n",
		       atomic_load(&door.tokens));
	if (standin_asked(request, bearer)) {
		upstream_serves(bench, request);
		atomic_fetch_add(&door.tokens, atomic_load(&bench->step));
		return;
	}
	(void)snprintf(challenge, sizeof(challenge),
		       "WWW-Authenticate: Bearer realm=\"http://127.0.0.1:%u/token\",service=\"s\","
		       "scope=\"repository:acme/tool:pull\"\r\n",
		       bench->other.port);
	standin_answer(request, "401 Unauthorized", challenge, STR("{}"));
}

static void gives_tokens(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	char text[128];

	if (atomic_load(&bench->flag))
		return; /* it is down */
	if (door.password && !standin_asked(request, "Authorization: Basic bWU6c2VjcmV0\r\n")) {
		standin_answer(request, "401 Unauthorized", "", STR("{}"));
		return;
	}
	(void)snprintf(text, sizeof(text), "{\"token\": \"t%d\", \"expires_in\": 300}",
		       atomic_fetch_add(&door.tokens, 1) + 1);
	standin_answer(request, "200 OK", "", str_of(text));
}

static void open_door(struct mirror_bench *bench, const char *password, int once)
{
	door = (struct door){.bench = bench, .password = password};
	atomic_store(&bench->step, once);
	bench->options.login = log_in;
	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, wants_a_token, gives_tokens);
}

static void a_token_is_got_once_and_used_by_all(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	open_door(bench, "secret", 0);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(
		mirror_bench_status(bench, mirror_bench_path("blobs", bench->blob_name, path)),
		200);
	assert_int_equal(atomic_load(&door.tokens), 1);
	assert_int_equal(atomic_load(&door.logins), 1);
}

static void a_token_that_is_used_up_is_got_anew(void **state)
{
	struct mirror_bench *bench = *state;

	open_door(bench, NULL, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(atomic_load(&door.tokens), 6); /* got and used up */
}

static void credentials_that_are_refused_are_looked_up_anew(void **state)
{
	struct mirror_bench *bench = *state;

	open_door(bench, "wrong", 0);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 403);
	door.password = "secret";
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(atomic_load(&door.logins), 2);
}

static void without_its_token_service_what_is_here_is_served(void **state)
{
	const struct mirror_want want = {.path = BENCH_TAG, .method = HTTP_GET};
	struct mirror_bench *bench = *state;
	struct mirror_got got;
	char path[512];

	open_door(bench, NULL, 1);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(
		mirror_bench_status(bench, mirror_bench_path("blobs", bench->blob_name, path)),
		200);
	atomic_store(&bench->flag, true);
	mirror_bench_ask(bench, &want, &got);
	check_is_manifest(bench, &got);
	assert_non_null(strstr(got.headers, "Warning: 110 "));
	mirror_got_done(&got);
	assert_int_equal(mirror_bench_status(bench, path), 200);
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/2.0"),
			 503);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_token_is_got_once_and_used_by_all),
		TEST(a_token_that_is_used_up_is_got_anew),
		TEST(credentials_that_are_refused_are_looked_up_anew),
		TEST(without_its_token_service_what_is_here_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
