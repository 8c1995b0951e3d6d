/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs, and whom they are shown to: registries, token services, redirects. */
#include "registry/token_priv.h"
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <string.h>

static void token_then_redirect(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[256];

	if (strncmp(request->target, "/token", 6) == 0) {
		bench->flag = strcmp(request->target,
				     "/token?service=the+service&scope=repository"
				     "%3ahub%2facme%2ftool%3apull&scope=other%3ax%3a%2a") == 0;
		bench->step++;
		standin_answer(request, "200 OK", "", STR("{\"access_token\":\"sesame\"}"));
	} else if (!standin_asked(request, "\r\nAuthorization: Bearer sesame\r\n")) {
		(void)snprintf(text, sizeof(text),
			       "WWW-Authenticate: Basic realm=\"x\"\r\nwww-authenticate: bearer "
			       "realm=\"http://127.0.0.1:%u/token\",service=\"the service\","
			       "scope=\"repository:hub/acme/tool:pull other:x:*\"\r\n",
			       bench->server.port);
		standin_answer(request, "401 Unauthorized", text, STR("{}"));
	} else {
		(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/signed?x=y\r\n",
			       bench->other.port);
		standin_answer(request, "307 Temporary Redirect", text, STR("go"));
	}
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

/* Every token lives for a second, and the first good one is met with a wait as long. */
static void token_expires(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char text[64];

	if (strncmp(request->target, "/token", 6) == 0) {
		(void)snprintf(text, sizeof(text), "{\"token\":\"number%d\",\"expires_in\":1}",
			       ++bench->step);
		standin_answer(request, "200 OK", "", str_of(text));
		return;
	}
	(void)snprintf(text, sizeof(text), "\r\nAuthorization: Bearer number%d\r\n", bench->step);
	if (bench->flag && strstr(request->text, bench->seen))
		bench->leaked = true;
	if (!standin_asked(request, text)) {
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=\"/token\"\r\n", STR(""));
	} else if (!bench->flag) {
		bench->flag = true;
		memcpy(bench->seen, text, sizeof(text));
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
	assert_true(bench->flag);
	assert_false(bench->leaked);
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
	assert_null(strstr(err.text, "Injected"));
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void token_service_is_busy(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (strncmp(request->target, "/token", 6) == 0)
		standin_answer(request, "429 Too Many Requests", "", STR(""));
	else
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=\"/token\"\r\n", STR(""));
}

static void a_token_service_that_stays_busy_is_for_later(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_open(bench, token_service_is_busy, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_BUSY);
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

	bench_identify(bench, "me", "secret");
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

	bench_identify(bench, "me", "se:cret");
	bench_open(bench, wants_basic, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void wrong_credentials_are_told_apart_from_none(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_identify(bench, "me", "wrong");
	bench_open(bench, wants_basic, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_UNAUTHORIZED);
	assert_non_null(strstr(err.text, "these credentials"));
	assert_null(strstr(err.text, "wrong"));
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
	assert_int_equal(atomic_load(&bench->server.requests), REMOTE_REDIRECTS_MAX + 1);
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

/* OAuth 2: the identity token is in the form, and nowhere else. */
static void takes_identities(void *ctx, const struct standin_request *request)
{
	auto_buf struct buf form = BUF_INIT(10000);
	struct bench *bench = ctx;
	const char *length = strstr(request->text, "Content-Length: ");
	struct str number = str_of(length ? length + 16 : "0");
	uint64_t size = 0;
	struct err err = {0};

	if (strcmp(request->target, "/token") == 0 && strcmp(request->method, "POST") == 0) {
		(void)str_take_number(&number, &size);
		assert_true(standin_read_body(request, (size_t)size, &form, &err));
		bench->flag =
			strstr(form.ptr, "service=the") && strstr(form.ptr, "scope=") &&
			strstr(form.ptr, "&grant_type=refresh_token&refresh_token=se%2Fcret%3D");
		bench->leaked = bench->leaked || strstr(request->text, "uthorization");
		standin_answer(request, "200 OK", "", STR("{\"access_token\":\"sesame\"}"));
	} else if (strstr(request->text, "Authorization: Bearer sesame\r\n")) {
		say_whole(ctx, request);
	} else {
		standin_answer(
			request, "401 Unauthorized",
			"WWW-Authenticate: Basic realm=x\r\n"
			"WWW-Authenticate: Bearer realm=\"/token\",service=\"the service\"\r\n",
			STR(""));
	}
}

static void an_identity_token_becomes_another(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_identify(bench, "<token>", "se/cret=");
	bench_open(bench, takes_identities, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_true(bench->flag);
	assert_false(bench->leaked);
	assert_int_equal(atomic_load(&bench->server.requests), 3);
}

/* printf :se/cret= | base64 */
static void takes_tokens_for_passwords(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (strncmp(request->target, "/token", 6) == 0) {
		bench->step++;
		if (strcmp(request->method, "GET") == 0 &&
		    standin_asked(request, "\r\nAuthorization: Basic OnNlL2NyZXQ9\r\n"))
			standin_answer(request, "200 OK", "", STR("{\"token\":\"sesame\"}"));
		else
			standin_answer(request, bench->seen, "", STR(""));
	} else if (strstr(request->text, "Authorization: Bearer sesame\r\n")) {
		say_whole(ctx, request);
	} else {
		standin_answer(request, "401 Unauthorized",
			       "WWW-Authenticate: Bearer realm=\"/token\"\r\n", STR(""));
	}
}

static void a_service_without_oauth_takes_an_identity_token_for_a_password(void **state)
{
	static const char *const statuses[] = {"404 Not Found", "401 Unauthorized",
					       "400 Bad Request", "405 Method Not Allowed"};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		(void)snprintf(bench->seen, sizeof(bench->seen), "%s", statuses[i]);
		bench_identify(bench, "<token>", "se/cret=");
		bench_open(bench, takes_tokens_for_passwords, NULL);
		check_ok(bench_blob(bench, &err), &err);
		check_whole(bench);
		assert_int_equal(bench->step, 2);
	}
}

static void says_how_long(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_answer(request, "200 OK", "", str_of(bench->seen));
}

static void a_token_lives_as_long_as_its_service_says(void **state)
{
	static const struct {
		const char *answer;
		int64_t life_ms;
	} cases[] = {
		{"{\"token\":\"t\",\"expires_in\":300}", 300000},
		{"{\"access_token\":\"t\",\"token\":null}", 60000},
		{"{\"token\":\"t\",\"expires_in\":0}", 60000},
		{"{\"token\":\"t\",\"expires_in\":\"soon\"}", 60000},
		{"{\"token\":\"t\",\"expires_in\":9999999999}", 86400000},
	};
	struct bench *bench = *state;
	char url[64];

	bench_open(bench, says_how_long, NULL);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/token", bench->server.port);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct token_question question = {.url = url, .retry = {.tries = 1}};
		auto_secret struct secret token = {0};
		struct err err = {0};
		int64_t life_ms;

		(void)snprintf(bench->seen, sizeof(bench->seen), "%s", cases[i].answer);
		check_ok(token_ask(&question, bench->http, &token, &life_ms, &err), &err);
		assert_string_equal(secret_reveal(&token), "t");
		assert_int_equal(life_ms, cases[i].life_ms);
	}
}

static void a_token_of_the_file_is_sent_as_it_is(void **state)
{
	struct bench *bench = *state;
	struct err err = {0};

	bench_identify(bench, "<bearer>", "sesame");
	bench_open(bench, takes_identities, NULL);
	check_ok(bench_blob(bench, &err), &err);
	check_whole(bench);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
	bench = bench_again(state);
	bench_identify(bench, "<bearer>", "old");
	bench_open(bench, takes_identities, NULL);
	check_err(bench_blob(bench, &err), &err, ERR_UNAUTHORIZED);
	assert_int_equal(atomic_load(&bench->server.requests), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_is_got_once_and_goes_to_no_other_host),
		TEST(a_token_that_is_refused_is_dropped_once),
		TEST(a_token_that_expired_is_not_sent),
		TEST(a_token_that_does_not_help_is_not_asked_for_again),
		TEST(a_token_cannot_smuggle_headers),
		TEST(a_token_service_that_stays_busy_is_for_later),
		TEST(credentials_go_to_no_realm_elsewhere),
		TEST(basic_is_used_where_it_is_wanted),
		TEST(wrong_credentials_are_told_apart_from_none),
		TEST(no_credentials_are_asked_for_in_words),
		TEST(redirects_come_to_an_end),
		TEST(redirects_lead_to_http_only),
		TEST(an_expired_redirect_is_asked_for_anew),
		TEST(an_identity_token_becomes_another),
		TEST(a_service_without_oauth_takes_an_identity_token_for_a_password),
		TEST(a_token_lives_as_long_as_its_service_says),
		TEST(a_token_of_the_file_is_sent_as_it_is),
	};

	return cmocka_run_group_tests_name("registry/fetch_auth", tests, NULL, NULL);
}
