/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/http.h"
#include "tests/check.h"

static void an_entity_tag_is_known_in_all_its_spellings(void **state)
{
	static const struct {
		const char *field;
		bool known;
	} cases[] = {
		{"\"abc\"", true},
		{"W/\"abc\"", true},
		{"\"x\", \"abc\"", true},
		{"\"x\",W/\"abc\"", true},
		{"*", true},
		{" \t\"abc\" ", true},
		{"", false},
		{"abc", false},
		{"\"abcd\"", false},
		{"\"x\", \"y\",, ", false},
		{NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(http_etag_matches(cases[i].field, STR("\"abc\"")), cases[i].known);
}

static const char *find_etag(const struct http_request *request, const char *name)
{
	return strcmp(name, "If-None-Match") == 0 ? request->state : NULL;
}

static void what_is_known_already_is_not_sent_again(void **state)
{
	static char known[] = "\"abc\"";
	static char other[] = "\"x\"";
	char *const fields[] = {known, other, NULL};
	char etag[HTTP_ETAG_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
		const struct http_request request = {.state = fields[i], .find_header = find_etag};

		assert_int_equal(http_add_etag(&request, &response, http_etag(STR("abc"), etag)),
				 i == 0);
		assert_int_equal(response.status, i == 0 ? 304 : 200);
		assert_string_equal(response.headers[0].name, "ETag");
		assert_string_equal(response.headers[0].value, "\"abc\"");
	}
}

static void all_but_plain_text_is_escaped(void **state)
{
	const struct str text = {"a-Z.0_~/: %\0\xff", 13};
	auto_buf struct buf out = BUF_INIT(100);
	struct err err = {0};

	(void)state;
	check_ok(http_add_escaped(&out, text, "", &err), &err);
	assert_string_equal(out.ptr, "a-Z.0_~%2F%3A%20%25%00%FF");
	buf_clear(&out);
	check_ok(http_add_escaped(&out, text, "/:", &err), &err);
	assert_string_equal(out.ptr, "a-Z.0_~/:%20%25%00%FF");
	assert_true(http_unescape(out.ptr, &out.len, false) == false); /* %00 */
}

static void escapes_are_decoded_where_they_are_sound(void **state)
{
	static const struct {
		const char *raw;
		const char *decoded; /* NULL: refused, and left as it was */
	} cases[] = {
		{"plain", "plain"},
		{"a%2Fb%2fc", "a/b/c"},
		{"%41%7e", "A~"},
		{"a+b", "a b"},
		{"%", NULL},
		{"%4", NULL},
		{"%4g", NULL},
		{"a%00b", NULL},
		{"%C3%A9", "\xc3\xa9"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].raw);

		memcpy(text, cases[i].raw, len + 1);
		assert_int_equal(http_unescape(text, &len, true), cases[i].decoded != NULL);
		assert_memory_equal(text, cases[i].decoded ? cases[i].decoded : cases[i].raw, len);
		if (cases[i].decoded)
			assert_int_equal(len, strlen(cases[i].decoded));
	}
}

static void a_path_keeps_an_escaped_slash(void **state)
{
	static const struct {
		const char *raw;
		const char *decoded; /* NULL: left as it was */
	} cases[] = {
		{"/v1/%61gents%2Elist", "/v1/agents.list"},
		{"/a+b", "/a+b"},
		{"/%2e%2e/x", "/../x"},
		{"/a%252fb", "/a%2fb"},   /* decoded once */
		{"/%c0%af", "/\xc0\xaf"}, /* no other spelling of a / */
		{"/a%2fb", NULL},
		{"/%61%2Fb", NULL},
		{"/a%00", NULL},
		{"/%61%", NULL},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *wanted = cases[i].decoded ? cases[i].decoded : cases[i].raw;
		size_t len = strlen(cases[i].raw);

		memcpy(text, cases[i].raw, len + 1);
		assert_int_equal(http_unescape_path(text, &len), cases[i].decoded != NULL);
		assert_int_equal(len, strlen(wanted));
		assert_memory_equal(text, wanted, len);
	}
}

static void a_header_is_one_line(void **state)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	(void)state;
	http_add_header(&response, "Location", STR("/a\r\nSet-Cookie: x"));
	assert_string_equal(response.headers[0].value, "/a");
}

static void a_response_is_made_anew(void **state)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	(void)state;
	response.status = 404;
	http_set_body(&response, "text/plain", STR("gone"));
	assert_string_equal(response.headers[0].name, "Content-Type");
	http_response_clear(&response);
	assert_int_equal(response.status, 200);
	assert_int_equal(response.header_count, 0);
	assert_int_equal(response.body.len, 0);
}

static void verbs_and_topics_have_one_name(void **state)
{
	(void)state;
	assert_int_equal(http_method_parse("DELETE"), HTTP_DELETE);
	assert_int_equal(http_method_parse("OPTIONS"), HTTP_OPTIONS);
	assert_int_equal(http_method_parse("get"), HTTP_OTHER);
	assert_string_equal(http_method_name(HTTP_PATCH), "PATCH");
	assert_true(http_topic(STR("agt_1")) == http_topic(STR("agt_1")));
	assert_true(http_topic(STR("agt_1")) != http_topic(STR("agt_2")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entity_tag_is_known_in_all_its_spellings),
		cmocka_unit_test(what_is_known_already_is_not_sent_again),
		cmocka_unit_test(all_but_plain_text_is_escaped),
		cmocka_unit_test(escapes_are_decoded_where_they_are_sound),
		cmocka_unit_test(a_path_keeps_an_escaped_slash),
		cmocka_unit_test(a_header_is_one_line),
		cmocka_unit_test(a_response_is_made_anew),
		cmocka_unit_test(verbs_and_topics_have_one_name),
	};

	return cmocka_run_group_tests_name("layers/http", tests, NULL, NULL);
}
