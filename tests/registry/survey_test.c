/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a registry, from a stand-in that pages as it is told. */
#include "registry/survey.h"
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <string.h>

struct list {
	struct bench *bench;
	struct buf text; /* each name and a blank */
	size_t most;     /* after so many the caller has had enough; 0 for never */
	size_t count;
};

static int list_hear(void *ctx, struct str name, struct err *err)
{
	struct list *list = ctx;

	if (++list->count == list->most)
		return err_set(err, ERR_CANCELLED, "enough");
	return buf_addf(&list->text, err, STR_FMT " ", STR_ARG(name));
}

static void auto_list_release(struct list *list)
{
	buf_done(&list->text);
}
#define LIST_INIT(bench) ((struct list){(bench), BUF_INIT(BLOB_MAX), 0, 0})

static int list_tags_after(struct list *list, size_t limit, struct str after, struct err *err)
{
	const struct survey_spec spec = {.host = str_of(list->bench->host),
					 .path = STR("acme/tool"),
					 .after = after,
					 .limit = limit,
					 .user = list->bench->spec.user,
					 .password = list->bench->spec.password,
					 .cancel = &list->bench->cancel};

	return survey_names(&spec, list_hear, list, err);
}

static int list_tags(struct list *list, size_t limit, struct err *err)
{
	return list_tags_after(list, limit, STR(""), err);
}

/* Three pages: by a path, by a query alone, and one without tags. */
static void pages(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (strstr(request->target, "last=b&"))
		standin_answer(request, "200 OK", "Link: <?last=c>; rel=\"next\"\r\n",
			       STR("{\"tags\":[\"c\"]}"));
	else if (strcmp(request->target, "/v2/acme/tool/tags/list?last=c") == 0)
		standin_answer(request, "200 OK", "", STR("{\"name\":\"x\",\"tags\":null}"));
	else if (strcmp(request->target, "/v2/acme/tool/tags/list?n=1000") == 0)
		standin_answer(request, "200 OK",
			       "Link: </v2/acme/tool/tags/list?last=b&n=2>; rel=\"next\"\r\n",
			       STR("{\"name\":\"acme/tool\",\"tags\":[\"a\",\"b\"]}"));
	else
		standin_answer(request, "200 OK", "", STR("{\"tags\":[\"a\"]}"));
}

static void pages_follow_their_links(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	bench_open(bench, pages, NULL);
	check_ok(list_tags(&list, 0, &err), &err);
	assert_string_equal(list.text.ptr, "a b c ");
	buf_clear(&list.text);
	check_ok(list_tags(&list, 1, &err), &err); /* which is asked for, too */
	assert_string_equal(list.text.ptr, "a ");
	assert_int_equal(bench->server.requests, 4);
}

static void behind(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	(void)snprintf(bench->seen, sizeof(bench->seen), "%s", request->target);
	standin_answer(request, "200 OK", "", STR("{\"tags\":[\"d\"]}"));
}

static void a_list_may_begin_behind_a_name(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	bench_open(bench, behind, NULL);
	check_ok(list_tags_after(&list, 0, STR("c&n"), &err), &err);
	assert_string_equal(bench->seen, "/v2/acme/tool/tags/list?n=1000&last=c%26n");
}

/* Each page of three leads to the next, and so again. */
static void circle(void *ctx, const struct standin_request *request)
{
	const char *last = strstr(request->target, "last=");
	char header[64];

	(void)ctx;
	(void)snprintf(header, sizeof(header), "Link: <?last=%d>; rel=next\r\n",
		       last ? (last[5] - '0' + 1) % 3 : 0);
	standin_answer(request, "200 OK", header, STR("{\"tags\":[\"a\"]}"));
}

static void pages_that_lead_in_a_circle_have_an_end(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	bench_open(bench, circle, NULL);
	check_err(list_tags(&list, 0, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "no end"));
	assert_true(bench->server.requests < 10);
}

static void another_host(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;
	char header[128];

	(void)snprintf(header, sizeof(header),
		       "Link: <http://127.0.0.1:%u/v2/acme/tool/tags/list?last=a>; rel=next\r\n",
		       bench->other.port);
	if (standin_asked(request, "Authorization: Basic"))
		standin_answer(request, "200 OK", header, STR("{\"tags\":[\"a\"]}"));
	else
		standin_answer(request, "401 No", "WWW-Authenticate: Basic realm=\"x\"\r\n",
			       STR(""));
}

static void the_last_page(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->leaked = standin_asked(request, "Authorization");
	standin_answer(request, "200 OK", "", STR("{\"tags\":[\"b\"]}"));
}

static void a_page_of_another_host_gets_no_password(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	bench_identify(bench, "me", "secret");
	bench_open(bench, another_host, the_last_page);
	check_ok(list_tags(&list, 0, &err), &err);
	assert_string_equal(list.text.ptr, "a b ");
	assert_false(bench->leaked);
}

static void breaks_once(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	if (request->number == 1)
		standin_say(request,
			    "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"tags\":[\"a\"");
	else
		standin_answer(request, "200 OK", "", STR("{\"tags\":[\"a\",\"b\"]}"));
}

static void a_page_that_broke_is_asked_for_anew(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	bench_open(bench, breaks_once, NULL);
	check_ok(list_tags(&list, 0, &err), &err);
	assert_string_equal(list.text.ptr, "a b ");
}

static void odd_list(void *ctx, const struct standin_request *request)
{
	const char *const *text = ((struct bench *)ctx)->spec.warn_ctx;

	standin_answer(request, "200 OK", "", str_of(*text));
}

static void what_is_no_list_is_the_registrys_fault(void **state)
{
	static const char *const texts[] = {
		"", "<html>", "[]", "{\"tags\":{}}", "{\"tags\":[1]}", "{\"tags\":[\"a\",null]}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bench *bench = bench_again(state);
		AUTO(list) struct list list = LIST_INIT(bench);
		const char *text = texts[i];
		struct err err = {0};

		bench->spec.warn_ctx = &text;
		bench_open(bench, odd_list, NULL);
		check_err(list_tags(&list, 0, &err), &err, ERR_REMOTE);
	}
}

static void a_caller_that_has_enough_ends_the_list(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct err err = {0};

	list.most = 2;
	bench_open(bench, pages, NULL);
	check_err(list_tags(&list, 0, &err), &err, ERR_CANCELLED);
	assert_int_equal(bench->server.requests, 1);
}

/* A registry that knows me:secret by a token, and says of no repository what it wants. */
static void token_service(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (str_starts(str_of(request->target), STR("/token"))) {
		bench->flag = strcmp(request->target, "/token?service=here") == 0;
		if (standin_asked(request, "Authorization: Basic bWU6c2VjcmV0"))
			standin_answer(request, "200 OK", "", STR("{\"token\":\"t\"}"));
		else
			standin_answer(request, "401 No", "", STR(""));
	} else if (standin_asked(request, "Authorization: Bearer t")) {
		standin_answer(request, "200 OK", "", STR("{}"));
	} else {
		standin_answer(request, "401 No",
			       "WWW-Authenticate: Bearer realm=\"/token\",service=\"here\"\r\n",
			       STR(""));
	}
}

static void knows_basic(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request,
		       standin_asked(request, "Authorization: Basic bWU6c2VjcmV0") ? "200 OK"
										   : "401 No",
		       "WWW-Authenticate: Basic realm=\"x\"\r\n", STR(""));
}

static void needs_nothing(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "", STR("{}"));
}

static int check_login(const struct bench *bench, struct err *err)
{
	const struct survey_spec spec = {.host = str_of(bench->host),
					 .user = bench->spec.user,
					 .password = bench->spec.password,
					 .cancel = &bench->cancel};

	return survey_login(&spec, err);
}

/* Its list is for everybody, and longer for those who are known. */
static void lists_to_nobody(void *ctx, const struct standin_request *request)
{
	bool known = standin_asked(request, "Authorization: Basic bWU6c2VjcmV0");

	(void)ctx;
	if (!known && strcmp(request->target, "/v2/") == 0)
		standin_answer(request, "401 No", "WWW-Authenticate: Basic realm=\"x\"\r\n",
			       STR(""));
	else
		standin_answer(request, "200 OK", "",
			       known ? STR("{\"repositories\":[\"mine\",\"open\"]}")
				     : STR("{\"repositories\":[\"open\"]}"));
}

static void a_registry_is_told_who_asks_for_its_repositories(void **state)
{
	struct bench *bench = *state;
	AUTO(list) struct list list = LIST_INIT(bench);
	struct survey_spec spec = {.cancel = &bench->cancel};
	struct err err = {0};

	bench_identify(bench, "me", "secret");
	bench_open(bench, lists_to_nobody, NULL);
	spec.host = str_of(bench->host);
	check_ok(survey_names(&spec, list_hear, &list, &err), &err);
	assert_string_equal(list.text.ptr, "open ");
	buf_clear(&list.text);
	spec.user = bench->spec.user;
	spec.password = bench->spec.password;
	check_ok(survey_names(&spec, list_hear, &list, &err), &err);
	assert_string_equal(list.text.ptr, "mine open ");
}

static void no_registry(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "404 No", "", STR("<html>"));
}

static void credentials_are_checked_by_the_challenge(void **state)
{
	static const struct {
		standin_fn *fn;
		const char *password;
		int found;
		enum err_kind kind;
	} cases[] = {
		{token_service, "secret", 1, ERR_NONE},
		{token_service, "wrong", -1, ERR_UNAUTHORIZED},
		{knows_basic, "secret", 1, ERR_NONE},
		{knows_basic, "wrong", -1, ERR_UNAUTHORIZED},
		{needs_nothing, "secret", 0, ERR_NONE},
		{no_registry, "secret", -1, ERR_NOT_FOUND},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench = bench_again(state);
		struct err err = {0};

		bench_identify(bench, "me", cases[i].password);
		bench_open(bench, cases[i].fn, NULL);
		assert_int_equal(check_login(bench, &err), cases[i].found);
		assert_int_equal(err.kind, cases[i].kind);
		if (cases[i].fn == token_service)
			assert_true(bench->flag); /* no repository was named */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_follow_their_links),
		TEST(a_list_may_begin_behind_a_name),
		TEST(pages_that_lead_in_a_circle_have_an_end),
		TEST(a_page_of_another_host_gets_no_password),
		TEST(a_registry_is_told_who_asks_for_its_repositories),
		TEST(a_page_that_broke_is_asked_for_anew),
		TEST(what_is_no_list_is_the_registrys_fault),
		TEST(a_caller_that_has_enough_ends_the_list),
		TEST(credentials_are_checked_by_the_challenge),
	};

	return cmocka_run_group_tests_name("registry/survey", tests, NULL, NULL);
}
