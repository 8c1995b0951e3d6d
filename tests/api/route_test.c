/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"
#include "tests/check.h"

static int echo(struct call *call, struct err *err)
{
	(void)err;
	call->result = json_incref(call->args);
	return 0;
}

static int fail_with_detail(struct call *call, struct err *err)
{
	route_add_detail(call, "status", json_string("baking"));
	return err_set(err, ERR_CONFLICT, "not yet");
}

static int tagged(struct call *call, struct err *err)
{
	const struct http_wait wait = {.topic = 1, .until_ms = 1000};
	bool waits = false;

	if (json_get_bool(call->args, "", "yes", &waits, err) < 0)
		return -1;
	route_answer_tagged(call, STR("{}"), STR("\"t\""), waits ? &wait : NULL);
	return 0;
}

static const struct route_param params[] = {
	{"id", ROUTE_STRING, true},    {"version", ROUTE_INT, false}, {"yes", ROUTE_BOOL, false},
	{"spec", ROUTE_OBJECT, false}, {"list", ROUTE_ARRAY, false},
};
static const struct route_param tag_params[] = {{"yes", ROUTE_BOOL, false}};

static const struct route table[] = {
	{.name = "test.echo", .kind = ROUTE_READ, .params = params, .param_count = 5, .run = echo},
	{.name = "test.fail", .kind = ROUTE_READ, .run = fail_with_detail},
	{.name = "test.tagged",
	 .kind = ROUTE_READ,
	 .params = tag_params,
	 .param_count = 1,
	 .run = tagged},
};
static const struct routes rows = {table, sizeof(table) / sizeof(table[0])};
static const struct routes *const tables[] = {&rows, NULL};

static const char *if_none_match;

static const char *find_header(const struct http_request *request, const char *name)
{
	(void)request;
	return strcmp(name, "If-None-Match") == 0 ? if_none_match : NULL;
}

/* Call a method; the response's body is JSON that the caller owns. */
static json_t *answer(const char *name, struct http_request *request, unsigned *out_status,
		      struct http_wait *out_wait)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	struct call call = {
		.route = route_find(tables, str_of(name)),
		.request = request,
		.response = &response,
	};
	json_t *value = NULL;

	assert_non_null(call.route);
	request->find_header = find_header;
	route_answer(&call);
	*out_status = response.status;
	if (out_wait)
		*out_wait = response.wait;
	value = json_loadb(buf_str(&response.body).ptr, response.body.len, JSON_DECODE_ANY, NULL);
	route_clear(&call);
	return value;
}

static json_t *post(const char *name, const char *body, unsigned *out_status)
{
	struct http_request request = {.method = HTTP_POST, .body = str_of(body)};

	return answer(name, &request, out_status, NULL);
}

static const char *error_text(const json_t *value, const char *key)
{
	return json_string_value(json_object_get(json_object_get(value, "error"), key));
}

static void a_body_is_what_the_method_gets(void **state)
{
	unsigned status;
	AUTO(json)
	json_t *value = post("test.echo", "{\"id\":\"a\",\"version\":3,\"list\":[],\"spec\":null}",
			     &status);

	(void)state;
	assert_int_equal(status, 200);
	assert_int_equal(json_integer_value(json_object_get(value, "version")), 3);
}

static void a_query_has_the_types_of_the_parameters(void **state)
{
	const struct http_field query[] = {
		{STR("id"), STR("x y")}, {STR("version"), STR("-7")}, {STR("yes"), STR("true")}};
	struct http_request request = {.method = HTTP_GET, .query = query, .query_count = 3};
	unsigned status;
	AUTO(json) json_t *value = answer("test.echo", &request, &status, NULL);

	(void)state;
	assert_int_equal(status, 200);
	assert_string_equal(json_string_value(json_object_get(value, "id")), "x y");
	assert_int_equal(json_integer_value(json_object_get(value, "version")), -7);
	assert_true(json_is_true(json_object_get(value, "yes")));
}

static void wrong_arguments_say_where_and_what_was_expected(void **state)
{
	static const struct {
		const char *body;
		const char *path;
		const char *expected;
	} cases[] = {
		{"", "id", "a string"},
		{"{}", "id", "a string"},
		{"{\"id\":null}", "id", "a string"},
		{"{\"id\":1}", "id", "a string"},
		{"{\"id\":\"a\",\"version\":\"3\"}", "version", "an integer"},
		{"{\"id\":\"a\",\"yes\":1}", "yes", "true or false"},
		{"{\"id\":\"a\",\"spec\":[]}", "spec", "an object"},
		{"{\"id\":\"a\",\"list\":{}}", "list", "an array"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned status;
		AUTO(json) json_t *value = post("test.echo", cases[i].body, &status);

		assert_int_equal(status, 400);
		assert_string_equal(error_text(value, "code"), "InvalidArgument");
		assert_string_equal(error_text(value, "path"), cases[i].path);
		assert_string_equal(error_text(value, "expected"), cases[i].expected);
	}
}

static void an_unknown_key_names_the_nearest(void **state)
{
	const struct http_field query[] = {{STR("id"), STR("x")}, {STR("versoin"), STR("3")}};
	struct http_request request = {.method = HTTP_GET, .query = query, .query_count = 2};
	unsigned status;
	AUTO(json) json_t *got = answer("test.echo", &request, &status, NULL);
	AUTO(json) json_t *posted = NULL;

	(void)state;
	assert_int_equal(status, 400);
	assert_non_null(strstr(error_text(got, "message"), "did you mean version?"));
	posted = post("test.echo", "{\"id\":\"a\",\"versoin\":3}", &status);
	assert_int_equal(status, 400);
	assert_string_equal(error_text(posted, "path"), "versoin");
}

static void what_is_no_document_is_refused(void **state)
{
	static const char *const bodies[] = {
		"{",
		"nonsense",
		"[]",
		"\"text\"",
		"{\"id\":\"a\"}{}",
		"{\"id\":\"a\",\"id\":\"b\"}",
		"{\"id\":\"\xff\"}",
		"{\"id\":\"\\u0000\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		unsigned status;
		AUTO(json) json_t *value = post("test.echo", bodies[i], &status);

		assert_int_equal(status, 400);
		assert_string_equal(error_text(value, "code"), "InvalidArgument");
	}
}

static void a_document_may_not_be_deep(void **state)
{
	auto_buf struct buf body = BUF_INIT(ROUTE_BODY_MAX);
	struct err err;
	unsigned status;
	AUTO(json) json_t *value = NULL;

	(void)state;
	check_ok(buf_add(&body, STR("{\"id\":"), &err), &err);
	for (int i = 0; i < 100000; i++)
		check_ok(buf_add(&body, STR("["), &err), &err);
	value = post("test.echo", body.ptr, &status);
	assert_int_equal(status, 400);
	assert_non_null(strstr(error_text(value, "message"), "levels"));
}

static void a_query_is_judged_as_a_body_is(void **state)
{
	static const struct http_field cases[][2] = {
		{{STR("id"), STR("x")}, {STR("version"), STR("3x")}},
		{{STR("id"), STR("x")}, {STR("version"), STR("99999999999999999999")}},
		{{STR("id"), STR("x")}, {STR("yes"), STR("maybe")}},
		{{STR("id"), STR("x")}, {STR("id"), STR("y")}},
		{{STR("id"), STR("x")}, {STR("spec"), STR("{}")}},
		{{STR("id"), STR("\xff")}, {STR("version"), STR("1")}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_request request = {
			.method = HTTP_GET, .query = cases[i], .query_count = 2};
		unsigned status;
		AUTO(json) json_t *value = answer("test.echo", &request, &status, NULL);

		assert_non_null(value);
		assert_int_equal(status, 400);
	}
}

static void an_error_has_its_members(void **state)
{
	unsigned status;
	AUTO(json) json_t *value = post("test.fail", "{}", &status);

	(void)state;
	assert_int_equal(status, 409);
	assert_string_equal(error_text(value, "code"), "Conflict");
	assert_string_equal(error_text(value, "message"), "not yet");
	assert_string_equal(error_text(value, "status"), "baking");
}

static void a_tag_that_is_known_is_304_or_is_waited_for(void **state)
{
	const struct http_field query[] = {{STR("yes"), STR("true")}};
	struct http_request plain = {.method = HTTP_GET};
	struct http_request waiting = {.method = HTTP_GET, .query = query, .query_count = 1};
	struct http_request over = {
		.method = HTTP_GET, .query = query, .query_count = 1, .over = true};
	struct http_wait wait;
	unsigned status;

	(void)state;
	if_none_match = "\"t\"";
	json_decref(answer("test.tagged", &plain, &status, &wait));
	assert_int_equal(status, 304);
	assert_int_equal(wait.until_ms, 0);
	json_decref(answer("test.tagged", &waiting, &status, &wait));
	assert_int_equal(wait.until_ms, 1000);
	json_decref(answer("test.tagged", &over, &status, &wait));
	assert_int_equal(status, 304);
	assert_int_equal(wait.until_ms, 0);
	if_none_match = "\"other\"";
	json_decref(answer("test.tagged", &waiting, &status, &wait));
	assert_int_equal(status, 200);
	assert_int_equal(wait.until_ms, 0);
	if_none_match = NULL;
}

static void an_unknown_method_names_the_nearest(void **state)
{
	struct err err = {0};

	(void)state;
	assert_null(route_find(tables, STR("test.ech")));
	check_err(route_refuse(tables, STR("test.ech"), &err), &err, ERR_NO_METHOD);
	assert_non_null(strstr(err.text, "did you mean test.echo?"));
	assert_string_equal(err_name(err.kind), "UnknownMethod");
	assert_int_equal(err_http_status(err.kind), 404);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_is_what_the_method_gets),
		cmocka_unit_test(a_query_has_the_types_of_the_parameters),
		cmocka_unit_test(wrong_arguments_say_where_and_what_was_expected),
		cmocka_unit_test(an_unknown_key_names_the_nearest),
		cmocka_unit_test(what_is_no_document_is_refused),
		cmocka_unit_test(a_document_may_not_be_deep),
		cmocka_unit_test(a_query_is_judged_as_a_body_is),
		cmocka_unit_test(an_error_has_its_members),
		cmocka_unit_test(a_tag_that_is_known_is_304_or_is_waited_for),
		cmocka_unit_test(an_unknown_method_names_the_nearest),
	};

	return cmocka_run_group_tests_name("api/route", tests, NULL, NULL);
}
