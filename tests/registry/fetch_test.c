/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry should not do, done by a stand-in: see standin.h. */
#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "registry/fetch_priv.h"
#include "tests/check.h"
#include "tests/registry/standin.h"

#include <stdio.h>
#include <string.h>

#define BLOB_SIZE ((size_t)100000)
#define BLOB_HALF ((size_t)40000)
#define BLOB_MAX ((size_t)1000000)

struct bench {
	struct standin server;
	struct standin other; /* another host, as ports go */
	struct cancel cancel;
	struct fetch *fetch;
	struct http *http;
	struct buf got;
	struct buf_sink sink;
	struct descriptor blob;
	char bytes[BLOB_SIZE];
	struct fetch_spec spec;
	char host[64];
	/* by the handlers: */
	int step;
	bool leaked; /* a credential was seen where it must not be */
	bool flag;
};

static void bench_open(struct bench *bench, standin_fn *fn, standin_fn *other)
{
	struct err err = {0};

	bench->got = BUF_INIT(BLOB_MAX);
	bench->sink = BUF_SINK(&bench->got);
	for (size_t i = 0; i < BLOB_SIZE; i++)
		bench->bytes[i] = (char)(i * 7 + i / 251);
	digest_of((struct str){bench->bytes, BLOB_SIZE}, &bench->blob.digest);
	bench->blob.size = BLOB_SIZE;
	check_ok(cancel_init(&bench->cancel, &err), &err);
	standin_start(&bench->server, fn, bench);
	standin_start(&bench->other, other ? other : fn, bench);
	(void)snprintf(bench->host, sizeof(bench->host), "127.0.0.1:%u", bench->server.port);
	bench->spec.host = str_of(bench->host);
	bench->spec.path = STR("acme/tool");
	bench->spec.tries = 4;
	bench->spec.retry_base_ms = 1;
	bench->spec.cancel = &bench->cancel;
	check_ok(fetch_open(&bench->spec, &bench->fetch, &err), &err);
	check_ok(fetch_connect(bench->fetch, &bench->http, &err), &err);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	http_close(bench->http);
	fetch_close(bench->fetch);
	standin_stop(&bench->server);
	standin_stop(&bench->other);
	cancel_done(&bench->cancel);
	buf_done(&bench->got);
	free(bench);
	return 0;
}

static int bench_blob(struct bench *bench, struct err *err)
{
	return fetch_blob(bench->fetch, bench->http, &bench->blob, &bench->sink.sink, err);
}

static void check_whole(const struct bench *bench)
{
	assert_int_equal(bench->got.len, BLOB_SIZE);
	assert_memory_equal(bench->got.ptr, bench->bytes, BLOB_SIZE);
}

static void say_bytes(const struct bench *bench, const struct standin_request *request, size_t from,
		      size_t to)
{
	struct err err;

	if (fd_write_all(request->fd, bench->bytes + from, to - from, &err) < 0)
		fail_msg("%s", err.text);
}

static void say_whole(const struct bench *bench, const struct standin_request *request)
{
	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		    BLOB_SIZE);
	say_bytes(bench, request, 0, BLOB_SIZE);
}

/* --- blobs ----------------------------------------------------------------- */

static void breaks_then_continues(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (request->number == 1) {
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
		say_bytes(bench, request, 0, BLOB_HALF);
		return;
	}
	bench->flag = standin_asked(request, "\r\nRange: bytes=40000-99999\r\n");
	standin_say(request,
		    "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
		    "Content-Range: bytes 40000-99999/100000\r\nContent-Length: %zu\r\n\r\n",
		    BLOB_SIZE - BLOB_HALF);
	say_bytes(bench, request, BLOB_HALF, BLOB_SIZE);
}

static void a_broken_stream_is_continued_by_a_closed_range(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, breaks_then_continues, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(bench->flag);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
	check_whole(bench);
}

/* A blob that was cut once, and then this answer to its range, and then the whole. */
static void breaks_then_answers(struct bench *bench, const struct standin_request *request,
				const char *answer)
{
	if (request->number == 1) {
		standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BLOB_SIZE);
		say_bytes(bench, request, 0, BLOB_HALF);
	} else if (answer && request->number == 2) {
		standin_say(request, "%s", answer);
	} else {
		say_whole(bench, request);
	}
}

static void breaks_then_ignores_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request, NULL);
}

static void a_range_that_is_ignored_is_skipped(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, breaks_then_ignores_range, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void breaks_then_416(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 416 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

static void breaks_then_wrong_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 206 Partial\r\nConnection: close\r\nContent-Length: 5\r\n"
			    "Content-Range: bytes 0-4/100000\r\n\r\nhello");
}

static void breaks_then_no_content_range(void *ctx, const struct standin_request *request)
{
	breaks_then_answers(ctx, request,
			    "HTTP/1.1 206 Partial\r\nConnection: close\r\nContent-Length: 5\r\n"
			    "\r\nhello");
}

static void a_range_that_cannot_be_had_is_got_whole(void **state)
{
	static standin_fn *const ways[] = {breaks_then_416, breaks_then_wrong_range,
					   breaks_then_no_content_range};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err err = {0};

		if (i > 0) {
			assert_int_equal(teardown(state), 0);
			assert_int_equal(setup(state), 0);
			bench = *state;
		}
		bench_open(bench, ways[i], NULL);
		check_ok(bench_blob(bench, &err), &err);
		assert_int_equal(atomic_load(&bench->server.requests), 3);
		check_whole(bench);
	}
}

static void closes_at_once_twice(void *ctx, const struct standin_request *request)
{
	if (request->number > 2)
		say_whole(ctx, request);
}

static void a_connection_that_closes_is_tried_again(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, closes_at_once_twice, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

static void busy_once(void *ctx, const struct standin_request *request)
{
	if (request->number == 1)
		standin_answer(request, "429 Too Many Requests", "Retry-After: 1\r\n",
			       STR("Too Many Requests (HAP429)."));
	else
		say_whole(ctx, request);
}

static void retry_after_is_kept(void **state)
{
	struct bench *bench = *state;
	int64_t before = clock_monotonic_ms();
	struct err err = {0};

	bench_open(bench, busy_once, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(clock_monotonic_ms() - before >= 1000);
	check_whole(bench);
}

static void always_503(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "503 Service Unavailable", "", STR("<html>maintenance</html>"));
}

static void tries_come_to_an_end(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, always_503, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "503"));
	assert_null(strstr(err.text, "html"));
	assert_int_equal(atomic_load(&bench->server.requests), 4);
}

static void of_another_size(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "", STR(""));
}

static void shorter(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "", STR("short"));
}

static void longer_without_a_length(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	say_bytes(bench, request, 0, BLOB_SIZE);
	standin_say(request, "x");
}

static void a_blob_of_another_size_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, shorter, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "blob of 5 bytes, the manifest says 100000"));
	assert_int_equal(atomic_load(&bench->server.requests), 1);
	assert_int_equal(bench->got.len, 0);
}

static void an_empty_answer_is_no_blob(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, of_another_size, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
}

static void a_blob_without_end_is_cut_off(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, longer_without_a_length, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CORRUPT);
	assert_true(bench->got.len <= BLOB_SIZE);
}

static void claims_an_encoding(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = standin_asked(request, "\r\nAccept-Encoding: identity\r\n");
	standin_say(request,
		    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
		    "Content-Length: %zu\r\n\r\n",
		    BLOB_SIZE);
	say_bytes(bench, request, 0, BLOB_SIZE);
}

static void bytes_are_taken_as_they_come(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, claims_an_encoding, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_true(bench->flag);
	check_whole(bench);
}

static void says_nothing(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (bench->flag)
		cancel_raise(&bench->cancel);
	standin_await_goodbye(request);
}

static void a_silent_server_is_given_up(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.stall_ms = 100;
	bench_open(bench, says_nothing, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_TIMEOUT);
	assert_int_equal(atomic_load(&bench->server.requests), 4);
}

static void drips(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nfew bytes");
	standin_await_goodbye(request);
}

static void a_body_that_stalls_is_given_up(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.stall_ms = 100;
	bench->spec.tries = 1;
	bench_open(bench, drips, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_TIMEOUT);
}

static void a_cancel_ends_a_wait_at_once(void **state)
{
	struct bench *bench = *state;
	int64_t before = clock_monotonic_ms();
	struct err err = {0};

	bench->flag = true;
	bench_open(bench, says_nothing, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_CANCELLED);
	assert_true(clock_monotonic_ms() - before < 1000);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void floods_headers(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_say(request, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < 2000; i++)
		standin_say(request, "X-%d: %0100d\r\n", i, i);
	standin_say(request, "Content-Length: 0\r\n\r\n");
}

static void headers_have_a_ceiling(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, floods_headers, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_LIMIT);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

/* --- redirects and credentials ---------------------------------------------- */

static void token_then_redirect(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[256];

	if (strncmp(request->target, "/token", 6) == 0) {
		bench->flag = strstr(request->target, "service=the+service") &&
			      strstr(request->target, "scope=repository%3aacme%2ftool%3apull");
		bench->step++;
		standin_answer(request, "200 OK", "", STR("{\"access_token\":\"sesame\"}"));
	} else if (!standin_asked(request, "\r\nAuthorization: Bearer sesame\r\n")) {
		(void)snprintf(text, sizeof(text),
			       "WWW-Authenticate: Basic realm=\"x\"\r\nwww-authenticate: bearer "
			       "realm=\"http://127.0.0.1:%u/token\",service=\"the service\","
			       "scope=\"repository:acme/tool:pull\"\r\n",
			       bench->server.port);
		standin_answer(request, "401 Unauthorized", text, STR("{}"));
	} else {
		(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/signed?x=y\r\n",
			       bench->other.port);
		standin_answer(request, "307 Temporary Redirect", text, STR("go"));
	}
}

static void storage(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (strstr(request->text, "uthorization"))
		bench->leaked = true;
	say_whole(bench, request);
}

static void a_token_is_got_once_and_goes_to_no_other_host(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, token_then_redirect, storage);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_true(bench->flag);
	assert_false(bench->leaked);
	buf_clear(&bench->got);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(bench->step, 1);
	assert_int_equal(atomic_load(&bench->server.requests), 4); /* 401, token, 307, 307 */
	assert_false(bench->leaked);
}

static void token_wears_out(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[128];
	char wanted[128];

	(void)snprintf(wanted, sizeof(wanted), "\r\nAuthorization: Bearer t%d\r\n", bench->step);
	if (strncmp(request->target, "/token", 6) == 0) {
		(void)snprintf(text, sizeof(text), "{\"token\":\"t%d\",\"expires_in\":300}",
			       ++bench->step);
		standin_answer(request, "200 OK", "", str_of(text));
	} else if (bench->step == 0 || request->number == 4 || !standin_asked(request, wanted)) {
		/* the fourth request carries a good token, and is refused all the same */
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=/token,error=\"invalid_token\"\r\n",
			       STR(""));
	} else {
		say_whole(bench, request);
	}
}

static void a_token_that_is_refused_is_dropped_once(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, token_wears_out, NULL);
	check_ok(bench_blob(bench, &err), &err);
	buf_clear(&bench->got);
	check_ok(bench_blob(bench, &err), &err);
	assert_int_equal(bench->step, 2);
	check_whole(bench);
}

static void token_expires(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (strncmp(request->target, "/token", 6) == 0) {
		bench->step++;
		standin_answer(request, "200 OK", "", STR("{\"token\":\"t\",\"expires_in\":1}"));
	} else if (!standin_asked(request, "\r\nAuthorization: Bearer t\r\n")) {
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=\"/token\"\r\n", STR(""));
	} else if (bench->step == 1 && !bench->flag) {
		/* longer than the token lives */
		bench->flag = true;
		standin_answer(request, "503 Busy", "Retry-After: 1\r\n", STR(""));
	} else {
		say_whole(bench, request);
	}
}

static void a_token_that_expired_is_not_sent(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, token_expires, NULL);
	check_ok(bench_blob(bench, &err), &err);
	assert_int_equal(bench->step, 2);
	assert_int_equal(atomic_load(&bench->server.requests), 5); /* 401, token, 503, token, 200 */
}

static void refuses_always(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (strncmp(request->target, "/token", 6) == 0)
		standin_answer(request, "200 OK", "", STR("{\"token\":\"t\"}"));
	else
		standin_answer(
			request, "401 Unauthorized",
			"WWW-Authenticate: Bearer realm=\"/token\"\r\n",
			STR("{\"errors\":[{\"code\":\"UNAUTHORIZED\",\"message\":\"no\"}]}"));
}

static void a_token_that_does_not_help_is_not_asked_for_again(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, refuses_always, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_UNAUTHORIZED);
	assert_non_null(strstr(err.text, "UNAUTHORIZED: no"));
	assert_int_equal(atomic_load(&bench->server.requests), 3);
}

static void answers_oddly(void *ctx, const struct standin_request *request)
{
	if (strncmp(request->target, "/token", 6) == 0)
		standin_answer(request, "200 OK", "",
			       STR("{\"token\":\"a\\r\\nX-Injected: yes\"}"));
	else
		refuses_always(ctx, request);
}

static void a_token_cannot_smuggle_headers(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, answers_oddly, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void sends_credentials_away(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;
	char text[128];

	(void)snprintf(text, sizeof(text),
		       "WWW-Authenticate: Bearer realm=\"http://localhost:%u/\"\r\n",
		       bench->other.port);
	standin_answer(request, "401 Unauthorized", text, STR(""));
}

static void credentials_go_to_no_realm_elsewhere(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.user = STR("me");
	bench->spec.password = STR("secret");
	bench_open(bench, sends_credentials_away, storage);
	check_err(bench_blob(bench, &err), &err, ERR_DENIED);
	assert_int_equal(atomic_load(&bench->other.requests), 0);
}

/* printf me:se:cret | base64 */
static void wants_basic(void *ctx, const struct standin_request *request)
{
	if (standin_asked(request, "\r\nAuthorization: Basic bWU6c2U6Y3JldA==\r\n"))
		say_whole(ctx, request);
	else
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Negotiate, Basic realm=\"a, b\"\r\n", STR(""));
}

static void basic_is_used_where_it_is_wanted(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.user = STR("me");
	bench->spec.password = STR("se:cret");
	bench_open(bench, wants_basic, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void wrong_credentials_are_told_apart_from_none(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench->spec.user = STR("me");
	bench->spec.password = STR("wrong");
	bench_open(bench, wants_basic, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_UNAUTHORIZED);
	assert_non_null(strstr(err.text, "these credentials"));
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void no_credentials_are_asked_for_in_words(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, wants_basic, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_UNAUTHORIZED);
	assert_non_null(strstr(err.text, "wants credentials"));
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

static void turns_in_a_circle(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "302 Found", "Location: /v2/again\r\n", STR(""));
}

static void redirects_come_to_an_end(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, turns_in_a_circle, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(atomic_load(&bench->server.requests), FETCH_REDIRECTS_MAX + 1);
}

static void redirects_to_files(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "307 Temporary Redirect", "Location: file:///etc/passwd\r\n",
		       STR(""));
}

static void redirects_lead_to_http_only(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, redirects_to_files, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_REMOTE);
	assert_int_equal(bench->got.len, 0);
}

/* A signed URL that was used up; the registry gives another. */
static void redirects_to_expired(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;
	char text[128];

	(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/%d\r\n",
		       bench->other.port, request->number);
	standin_answer(request, "307 Temporary Redirect", text, STR(""));
}

static void only_second_url(void *ctx, const struct standin_request *request)
{
	if (strcmp(request->target, "/2") == 0)
		say_whole(ctx, request);
	else
		standin_answer(request, "403 Forbidden", "",
			       STR("<Error>Request has expired</Error>"));
}

static void an_expired_redirect_is_asked_for_anew(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, redirects_to_expired, only_second_url);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
}

/* --- manifests ---------------------------------------------------------------- */

#define MANIFEST_TEXT "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"layers\":[]}"

static int bench_manifest(struct bench *bench, struct digest *digest, struct err *err)
{
	return fetch_manifest(bench->fetch, bench->http, "1.0", &bench->got, digest, err);
}

static void gives_manifest(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = standin_asked(request, MEDIA_OCI_MANIFEST) &&
		      standin_asked(request, MEDIA_OCI_INDEX) &&
		      standin_asked(request, MEDIA_DOCKER_MANIFEST) &&
		      standin_asked(request, MEDIA_DOCKER_LIST) &&
		      standin_asked(request, "manifest.v1+prettyjws") &&
		      standin_asked(request, "*/*");
	standin_answer(request, "200 OK", "Content-Type: " MEDIA_OCI_MANIFEST "; charset=utf-8\r\n",
		       STR(MANIFEST_TEXT));
}

static void a_manifest_needs_no_digest_header(void **state)
{
	struct bench *bench = *state;
	struct digest expected;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, gives_manifest, NULL);
	check_ok(bench_manifest(bench, &digest, &err), &err);
	digest_of(STR(MANIFEST_TEXT), &expected);
	assert_true(digest_equal(&digest, &expected));
	assert_true(bench->flag);
}

static void lies_about_digest(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK",
		       "Docker-Content-Digest: sha256:"
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		       STR(MANIFEST_TEXT));
}

static void lies_about_type(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "Content-Type: " MEDIA_OCI_INDEX "\r\n",
		       STR(MANIFEST_TEXT));
}

static void a_manifest_that_is_another_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, lies_about_digest, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_CORRUPT);
}

static void a_manifest_of_another_type_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, lies_about_type, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_CORRUPT);
}

static void a_manifest_has_a_ceiling(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, longer_without_a_length, NULL);
	bench->got.max = 1000;
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_LIMIT);
}

static void knows_nothing(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(
		request, "404 Not Found", "",
		STR("{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"manifest unknown\","
		    "\"detail\":{\"Tag\":\"1.0\"}}]}"));
}

static void what_is_not_there_is_not_found(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, knows_nothing, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text,
			    "1.0 not found: check name and tag; it says: MANIFEST_UNKNOWN: "
			    "manifest unknown");
	check_err(fetch_head(bench->fetch, bench->http, "1.0", &digest, &err), &err, ERR_NOT_FOUND);
}

static void answers_head(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = strcmp(request->method, "HEAD") == 0;
	standin_answer(request, "200 OK",
		       "docker-content-digest: sha256:"
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		       STR(MANIFEST_TEXT));
}

static void head_gives_the_digest(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, answers_head, NULL);
	assert_int_equal(fetch_head(bench->fetch, bench->http, "1.0", &digest, &err), 1);
	assert_int_equal(digest.bytes[31], 0xaa);
	assert_true(bench->flag);
}

static void knows_no_head(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "405 Method Not Allowed", "", STR(""));
}

static void forbids_everything(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "403 Forbidden", "", STR(""));
}

static void head_that_is_not_answered_is_a_miss(void **state)
{
	static const struct {
		standin_fn *fn;
		standin_fn *other;
	} ways[] = {{gives_manifest, NULL},
		    {knows_no_head, NULL},
		    {always_503, NULL},
		    {closes_at_once_twice, NULL},
		    {redirects_to_expired, forbids_everything}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct bench *bench;
		struct digest digest;
		struct err err = {0};

		if (i > 0) {
			assert_int_equal(teardown(state), 0);
			assert_int_equal(setup(state), 0);
		}
		bench = *state;
		bench_open(bench, ways[i].fn, ways[i].other);
		assert_int_equal(fetch_head(bench->fetch, bench->http, "1.0", &digest, &err), 0);
	}
}

static void nobody_listens(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, always_503, NULL);
	fetch_close(bench->fetch);
	bench->fetch = NULL;
	bench->spec.host = STR("127.0.0.1:1");
	check_ok(fetch_open(&bench->spec, &bench->fetch, &err), &err);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_REMOTE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_broken_stream_is_continued_by_a_closed_range),
		TEST(a_range_that_is_ignored_is_skipped),
		TEST(a_range_that_cannot_be_had_is_got_whole),
		TEST(a_connection_that_closes_is_tried_again),
		TEST(retry_after_is_kept),
		TEST(tries_come_to_an_end),
		TEST(a_blob_of_another_size_is_corrupt),
		TEST(an_empty_answer_is_no_blob),
		TEST(a_blob_without_end_is_cut_off),
		TEST(bytes_are_taken_as_they_come),
		TEST(a_silent_server_is_given_up),
		TEST(a_body_that_stalls_is_given_up),
		TEST(a_cancel_ends_a_wait_at_once),
		TEST(headers_have_a_ceiling),
		TEST(a_token_is_got_once_and_goes_to_no_other_host),
		TEST(a_token_that_is_refused_is_dropped_once),
		TEST(a_token_that_expired_is_not_sent),
		TEST(a_token_that_does_not_help_is_not_asked_for_again),
		TEST(a_token_cannot_smuggle_headers),
		TEST(credentials_go_to_no_realm_elsewhere),
		TEST(basic_is_used_where_it_is_wanted),
		TEST(wrong_credentials_are_told_apart_from_none),
		TEST(no_credentials_are_asked_for_in_words),
		TEST(redirects_come_to_an_end),
		TEST(redirects_lead_to_http_only),
		TEST(an_expired_redirect_is_asked_for_anew),
		TEST(a_manifest_needs_no_digest_header),
		TEST(a_manifest_that_is_another_is_corrupt),
		TEST(a_manifest_of_another_type_is_corrupt),
		TEST(a_manifest_has_a_ceiling),
		TEST(what_is_not_there_is_not_found),
		TEST(head_gives_the_digest),
		TEST(head_that_is_not_answered_is_a_miss),
		TEST(nobody_listens),
	};

	return cmocka_run_group_tests_name("registry/fetch", tests, NULL, NULL);
}
