/* SPDX-License-Identifier: Apache-2.0 */
/* What an upstream should not do, and what is said of it to those who ask. */
#include "tests/registry/mirror_bench.h"

#include <sched.h>

static void ask_tag(struct mirror_bench *bench, struct mirror_got *got)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = BENCH_TAG};

	mirror_bench_ask(bench, &want, got);
}

static void check_gets_manifest(struct mirror_bench *bench)
{
	struct mirror_got got;

	ask_tag(bench, &got);
	check_is_manifest(bench, &got);
	mirror_got_done(&got);
}

/* The answer is an error of this status and code, and says when to come again, or does not. */
static void check_refused(struct mirror_bench *bench, unsigned status, const char *code,
			  const char *retry_after)
{
	struct mirror_got got;

	ask_tag(bench, &got);
	assert_int_equal(got.status, status);
	assert_non_null(memmem(got.body, got.len, code, strlen(code)));
	if (retry_after && !strstr(got.headers, retry_after))
		fail_msg("no %s in %s", retry_after, got.headers);
	if (!retry_after)
		assert_null(strstr(got.headers, "Retry-After"));
	mirror_got_done(&got);
}

static void answers(void *ctx, const struct standin_request *request)
{
	static const char *const statuses[] = {"404 Not Found", "401 Unauthorized", "403 Forbidden",
					       "500 Oops", "503 Service Unavailable"};
	struct mirror_bench *bench = ctx;

	standin_answer(request, statuses[atomic_load(&bench->step)], "",
		       STR("<html>maintenance</html>"));
}

static void a_status_is_passed_on_as_what_it_means(void **state)
{
	static const struct {
		unsigned status;
		const char *code;
		const char *retry_after;
	} means[] = {
		{404, "MANIFEST_UNKNOWN", NULL},
		{403, "DENIED", NULL},
		{403, "DENIED", NULL},
		{503, "UNAVAILABLE", "Retry-After: 1\n"},
		{503, "UNAVAILABLE", "Retry-After: 1\n"},
	};
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, answers, NULL);
	for (int i = 0; i < 5; i++) {
		atomic_store(&bench->step, i);
		check_refused(bench, means[i].status, means[i].code, means[i].retry_after);
	}
}

/* Who may push a name hears that it is free, where only a default upstream keeps it. */
static void a_name_that_the_default_denies_is_free_for_who_may_push(void **state)
{
	struct mirror_bench *bench = *state;

	bench->options.default_host = STR(BENCH_UP);
	mirror_bench_open(bench, answers, NULL);
	atomic_store(&bench->step, 1);
	assert_int_equal(mirror_bench_status(bench, "/v2/new/manifests/1.0"), 403);
	bench->may_push = true;
	assert_int_equal(mirror_bench_status(bench, "/v2/new/manifests/1.0"), 404);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 403);
}

static void says_too_many(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (!atomic_load(&bench->flag))
		upstream_serves(bench, request);
	else
		standin_answer(request, "429 Too Many Requests", "Retry-After: 40\r\n",
			       STR("Too Many Requests (HAP429)."));
}

static void who_is_asked_too_much_is_left_alone_by_all(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, says_too_many, NULL);
	check_gets_manifest(bench);
	atomic_store(&bench->flag, true);
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/other/manifests/1"),
			 429);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
	/* Nobody asks now, about nothing; what is here is served, and said to be older. */
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/third/manifests/1"),
			 429);
	ask_tag(bench, &got);
	check_is_manifest(bench, &got);
	assert_non_null(strstr(got.headers, "Warning: 110 "));
	mirror_got_done(&got);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void its_own_time_is_passed_on(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;
	const char *said;
	struct str number;
	uint64_t seconds;

	mirror_bench_open(bench, says_too_many, NULL);
	atomic_store(&bench->flag, true);
	ask_tag(bench, &got);
	assert_int_equal(got.status, 429);
	assert_non_null(memmem(got.body, got.len, "TOOMANYREQUESTS", 15));
	said = strstr(got.headers, "Retry-After: ");
	assert_non_null(said);
	number = str_of(said + strlen("Retry-After: "));
	assert_true(str_take_number(&number, &seconds));
	assert_in_range(seconds, 1, 40);
	mirror_got_done(&got);
}

static void an_upstream_that_is_gone_changes_nothing_for_what_is_here(void **state)
{
	struct mirror_bench *bench = *state;
	char manifest[512];
	char blob[512];

	mirror_bench_open(bench, upstream_serves, NULL);
	check_gets_manifest(bench);
	(void)mirror_bench_path("manifests", bench->manifest_name, manifest);
	(void)mirror_bench_path("blobs", bench->blob_name, blob);
	assert_int_equal(mirror_bench_status(bench, blob), 200);
	standin_stop(&bench->server);
	bench->spec.tag_ttl_ms = 0;
	mirror_bench_reopen(bench); /* it starts without it, too */
	for (int i = 0; i < 5; i++) {
		check_gets_manifest(bench);
		assert_int_equal(mirror_bench_status(bench, manifest), 200);
		assert_int_equal(mirror_bench_status(bench, blob), 200);
	}
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/2.0"),
			 503);
}

static void after_some_failures_nobody_waits_for_more(void **state)
{
	struct mirror_bench *bench = *state;

	atomic_store(&bench->down, true);
	bench->options.back_off_ms = 3600000;
	mirror_bench_open(bench, upstream_serves, NULL);
	for (int i = 0; i < 3; i++) { /* each of them tries a few times, which count once */
		int before = atomic_load(&bench->server.requests);

		assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
		assert_true(atomic_load(&bench->server.requests) > before);
	}
	atomic_store(&bench->step, atomic_load(&bench->server.requests));
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
	assert_int_equal(atomic_load(&bench->server.requests), atomic_load(&bench->step));
}

static void says_nothing(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_await_goodbye(request);
}

static void who_is_silent_once_is_left_alone(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_report report;

	bench->options.stall_ms = 200;
	bench->options.back_off_ms = 3600000;
	mirror_bench_open(bench, says_nothing, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_int_equal(report.health, MIRROR_FAILING);
	assert_true(report.retry_ms > 0);
}

static void then_it_is_found_well_again(void **state)
{
	struct mirror_bench *bench = *state;

	atomic_store(&bench->down, true);
	bench->options.back_off_ms = 1;
	mirror_bench_open(bench, upstream_serves, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
	atomic_store(&bench->down, false);
	while (mirror_bench_status(bench, BENCH_TAG) != 200)
		assert_int_equal(atomic_load(&bench->manifests), 0);
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/2.0"),
			 404);
}

/* Answers once the test says so. */
static void is_slow(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	while (atomic_load(&bench->flag))
		(void)sched_yield();
	upstream_serves(bench, request);
}

static void a_slow_upstream_is_not_waited_for_long(void **state)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = BENCH_TAG, .impatient = true};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, is_slow, NULL);
	check_gets_manifest(bench);
	atomic_store(&bench->flag, true);
	mirror_bench_ask(bench, &want, &got);
	atomic_store(&bench->flag, false);
	check_is_manifest(bench, &got);
	assert_non_null(strstr(got.headers, "Warning: 110 "));
	mirror_got_done(&got);
}

static void who_has_nothing_hears_that_it_takes_longer(void **state)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = BENCH_TAG, .impatient = true};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	atomic_store(&bench->flag, true);
	mirror_bench_open(bench, is_slow, NULL);
	mirror_bench_ask(bench, &want, &got);
	atomic_store(&bench->flag, false);
	assert_int_equal(got.status, 503);
	assert_non_null(strstr(got.headers, "Retry-After: "));
	mirror_got_done(&got);
}

static void loses_its_tags(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (atomic_load(&bench->flag))
		standin_answer(request, "404 Not Found", "", STR(""));
	else
		upstream_serves(bench, request);
}

static void what_an_upstream_deletes_is_here_by_its_digest(void **state)
{
	struct mirror_bench *bench = *state;
	char manifest[512];

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, loses_its_tags, NULL);
	check_gets_manifest(bench);
	atomic_store(&bench->flag, true);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 404);
	assert_int_equal(
		mirror_bench_status(bench,
				    mirror_bench_path("manifests", bench->manifest_name, manifest)),
		200);
	/* It does not come back when the upstream is gone. */
	standin_stop(&bench->server);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 503);
}

/* An index that says nothing of its type. */
#define BENCH_OTHER "{\"schemaVersion\": 2, \"manifests\": []}"

static void moves_its_tag(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	char headers[256];
	struct digest digest;
	char name[DIGEST_TEXT_MAX];
	static const struct str other = STR(BENCH_OTHER);

	if (!atomic_load(&bench->flag)) {
		upstream_serves(bench, request);
		return;
	}
	digest_of(other, &digest);
	(void)snprintf(headers, sizeof(headers),
		       "Content-Type: application/vnd.oci.image.index.v1+json; charset=utf-8\r\n"
		       "Docker-Content-Digest: %s\r\n",
		       digest_format(&digest, name));
	standin_answer(request, "200 OK", headers, other);
}

static void a_tag_that_moved_is_got_and_its_type_has_no_parameters(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, moves_its_tag, NULL);
	check_gets_manifest(bench);
	atomic_store(&bench->flag, true);
	ask_tag(bench, &got);
	assert_int_equal(got.status, 200);
	assert_memory_equal(got.body, BENCH_OTHER, got.len);
	assert_non_null(
		strstr(got.headers, "Content-Type: application/vnd.oci.image.index.v1+json\n"));
	mirror_got_done(&got);
}

/* What a HEAD cannot tell. */
static void head_is(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	if (strcmp(request->method, "HEAD") != 0)
		upstream_serves(bench, request);
	else if (atomic_load(&bench->step) == 0)
		standin_answer(request, "405 Method Not Allowed", "", STR(""));
	else
		standin_answer(request, "200 OK", "Content-Type: text/html\r\n", STR(""));
}

static void where_head_tells_nothing_the_manifest_is_got(void **state)
{
	struct mirror_bench *bench = *state;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, head_is, NULL);
	check_gets_manifest(bench);
	for (int i = 0; i < 2; i++) {
		atomic_store(&bench->step, i);
		check_gets_manifest(bench);
		assert_int_equal(atomic_load(&bench->manifests), i + 2);
	}
}

/* Manifests that are none, in some way. */
static void sends_a_wrong_one(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	char other[128];

	switch (atomic_load(&bench->step)) {
	case 0: /* its header says another digest */
		(void)snprintf(other, sizeof(other), "Docker-Content-Digest: sha256:%064d\r\n", 7);
		standin_answer(request, "200 OK", other, str_of(bench->manifest));
		return;
	case 1:
		standin_answer(request, "200 OK", "", STR("<html>log in</html>"));
		return;
	case 2: /* schema 1 */
		standin_answer(request, "200 OK", "",
			       STR("{\"schemaVersion\": 1, \"fsLayers\": [], \"history\": []}"));
		return;
	case 3: /* it says that it is encoded, and it is */
		standin_answer(request, "200 OK", "Content-Encoding: gzip\r\n",
			       STR("\x1f\x8b\x08\x01\x02\x03"));
		return;
	default:
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n");
		for (int i = 0; i < 5000; i++)
			standin_say(request, "%01000d", 0);
		return;
	}
}

static void what_is_no_manifest_is_not_kept(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, sends_a_wrong_one, NULL);
	for (int i = 0; i < 5; i++) {
		atomic_store(&bench->step, i);
		check_refused(bench, 502, "UNKNOWN", NULL);
	}
}

static void a_digest_s_manifest_has_that_digest(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];
	char name[DIGEST_TEXT_MAX];

	mirror_bench_open(bench, moves_its_tag, NULL);
	(void)snprintf(name, sizeof(name), "sha256:%064d", 7);
	atomic_store(&bench->flag, true);
	assert_int_equal(mirror_bench_status(bench, mirror_bench_path("manifests", name, path)),
			 502);
}

static void says_no_more_than_needed(void *ctx, const struct standin_request *request)
{
	const struct mirror_bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", bench->manifest);
}

static void a_manifest_without_headers_is_one(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, says_no_more_than_needed, NULL);
	check_gets_manifest(bench);
}

static void closes_twice(void *ctx, const struct standin_request *request)
{
	if (request->number > 2)
		upstream_serves(ctx, request);
}

static void a_connection_that_breaks_is_made_anew(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, closes_twice, NULL);
	check_gets_manifest(bench);
}

/* Pushes */

static void nobody_pushes_to_a_mirror(void **state)
{
	static const struct mirror_want wants[] = {
		{.method = HTTP_PUT, .path = BENCH_TAG},
		{.method = HTTP_DELETE, .path = BENCH_TAG},
		{.method = HTTP_POST, .path = "/v2/" BENCH_UP "/acme/tool/blobs/uploads/"},
		{.method = HTTP_POST, .path = "/v2/acme/tool/blobs/uploads/", .ns = BENCH_UP},
	};
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, upstream_serves, NULL);
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		struct mirror_got got;

		mirror_bench_ask(bench, &wants[i], &got);
		assert_int_equal(got.status, 403);
		assert_non_null(memmem(got.body, got.len, "DENIED", 6));
		mirror_got_done(&got);
	}
	assert_int_equal(atomic_load(&bench->server.requests), 0);
}

static void the_namespace_is_said_again(void **state)
{
	const struct mirror_want want = {
		.method = HTTP_GET, .path = "/v2/acme/tool/manifests/1.0", .ns = BENCH_UP};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, upstream_serves, NULL);
	mirror_bench_ask(bench, &want, &got);
	check_is_manifest(bench, &got);
	assert_non_null(strstr(got.headers, "OCI-Namespace: " BENCH_UP "\n"));
	mirror_got_done(&got);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_status_is_passed_on_as_what_it_means),
		TEST(a_name_that_the_default_denies_is_free_for_who_may_push),
		TEST(who_is_asked_too_much_is_left_alone_by_all),
		TEST(its_own_time_is_passed_on),
		TEST(an_upstream_that_is_gone_changes_nothing_for_what_is_here),
		TEST(after_some_failures_nobody_waits_for_more),
		TEST(who_is_silent_once_is_left_alone),
		TEST(then_it_is_found_well_again),
		TEST(a_slow_upstream_is_not_waited_for_long),
		TEST(who_has_nothing_hears_that_it_takes_longer),
		TEST(what_an_upstream_deletes_is_here_by_its_digest),
		TEST(a_tag_that_moved_is_got_and_its_type_has_no_parameters),
		TEST(where_head_tells_nothing_the_manifest_is_got),
		TEST(what_is_no_manifest_is_not_kept),
		TEST(a_digest_s_manifest_has_that_digest),
		TEST(a_manifest_without_headers_is_one),
		TEST(a_connection_that_breaks_is_made_anew),
		TEST(nobody_pushes_to_a_mirror),
		TEST(the_namespace_is_said_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
