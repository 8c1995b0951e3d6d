/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/schema.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char *const colours[] = {"red", "green", NULL};

static const struct schema inner[] = {
	{"name", SCHEMA_STRING},
	{"count", SCHEMA_COUNT, .most = 7},
	{NULL},
};

static const struct schema keys[] = {
	{"colour", SCHEMA_STRING, .choices = colours},
	{"colours", SCHEMA_STRINGS, .choices = colours, .most = 3},
	{"size", SCHEMA_AMOUNT},
	{"share", SCHEMA_NUMBER, .least = 0.5, .most = 2},
	{"flag", SCHEMA_BOOL},
	{"any", SCHEMA_OBJECT},
	{"named", SCHEMA_NAMED},
	{"inner", SCHEMA_OBJECT, .members = inner},
	{"list", SCHEMA_OBJECTS, .members = inner},
	{NULL},
};

static int check(const char *text, struct err *err)
{
	AUTO(json) json_t *value = NULL;

	check_ok(json_parse(str_of(text), 4096, &value, err), err);
	return schema_check(value, keys, "at", err);
}

static void what_fits_is_accepted(void **state)
{
	struct err err = {0};

	(void)state;
	check_ok(check("{}", &err), &err);
	check_ok(check("{\"colour\": null, \"size\": null, \"inner\": null}", &err), &err);
	check_ok(check("{\"colour\": \"red\", \"colours\": [\"green\", \"red\", \"red\"],"
		       " \"size\": 9007199254740991, \"share\": 0.5, \"flag\": false,"
		       " \"any\": {\"x\": [1]}, \"inner\": {\"name\": \"\", \"count\": 0},"
		       " \"list\": [{}, {\"count\": 7}]}",
		       &err),
		 &err);
	check_ok(check("{\"share\": 2}", &err), &err);
	check_ok(check("{\"named\": \"x\"}", &err), &err);
	check_ok(check("{\"named\": {\"x\": 1}}", &err), &err);
}

static const struct {
	const char *text;
	enum err_kind kind;
	const char *path;
	const char *expected;
	const char *says;
} wrong_cases[] = {
	{"{\"named\": 1}", ERR_INVALID, "at.named", "an object or a string", "found an integer"},
	{"{\"colour\": 1}", ERR_INVALID, "at.colour", "a string", "found an integer"},
	{"{\"colour\": \"blue\"}", ERR_INVALID, "at.colour", "one of red, green", "found \"blue\""},
	{"{\"colours\": [\"red\", \"blue\"]}", ERR_INVALID, "at.colours[1]", "one of red, green",
	 "expected one of"},
	{"{\"colours\": [\"red\", \"red\", \"red\", \"red\"]}", ERR_LIMIT, "at.colours", "",
	 "more than 3"},
	{"{\"size\": 0}", ERR_INVALID, "at.size", "at least 1", "found 0"},
	{"{\"size\": 9007199254740992}", ERR_INVALID, "at.size", "at most 9007199254740991",
	 "found 9007199254740992"},
	{"{\"size\": 1.0}", ERR_INVALID, "at.size", "an integer", "found a number"},
	{"{\"share\": 0.4}", ERR_INVALID, "at.share", "0.5 to 2", "found 0.4"},
	{"{\"share\": 3}", ERR_INVALID, "at.share", "0.5 to 2", "found 3"},
	{"{\"share\": \"1\"}", ERR_INVALID, "at.share", "a number", "found a string"},
	{"{\"flag\": 0}", ERR_INVALID, "at.flag", "true or false", "found an integer"},
	{"{\"any\": []}", ERR_INVALID, "at.any", "an object", "found an array"},
	{"{\"inner\": {\"count\": 8}}", ERR_INVALID, "at.inner.count", "at most 7", "found 8"},
	{"{\"inner\": {\"count\": -1}}", ERR_INVALID, "at.inner.count", "at least 0", "found -1"},
	{"{\"inner\": {\"nmae\": \"\"}}", ERR_INVALID, "at.inner.nmae", "one of name, count",
	 "at.inner.nmae: unknown key; did you mean name?"},
	{"{\"inner\": {\"zzz\": \"\"}}", ERR_INVALID, "at.inner.zzz", "one of name, count",
	 "unknown key; expected one of name, count"},
	{"{\"list\": [{}, 1]}", ERR_INVALID, "at.list[1]", "an object", "found an integer"},
	{"{\"list\": [{}, {\"name\": 1}]}", ERR_INVALID, "at.list[1].name", "a string", "found"},
};

static void what_is_wrong_is_named_with_what_belongs_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong_cases) / sizeof(wrong_cases[0]); i++) {
		struct err err = {0};

		check_err(check(wrong_cases[i].text, &err), &err, wrong_cases[i].kind);
		assert_string_equal(err.path, wrong_cases[i].path);
		assert_string_equal(err.expected, wrong_cases[i].expected);
		if (!strstr(err.text, wrong_cases[i].says))
			fail_msg("said \"%s\", not \"%s\"", err.text, wrong_cases[i].says);
	}
}

static void an_open_object_has_a_warning_for_each_other_key(void **state)
{
	AUTO(json) json_t *value = NULL;
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	(void)state;
	check_ok(json_parse(STR("{\"nmae\": 1, \"name\": \"x\", \"\\u00fc\": 2}"), 4096, &value,
			    &err),
		 &err);
	check_ok(schema_check_open(value, inner, "at", warnings, &err), &err);
	assert_int_equal(json_array_size(warnings), 2);
	assert_string_equal(json_string_value(json_array_get(warnings, 0)),
			    "at.nmae: unknown key, kept and not used; did you mean name?");
	assert_string_equal(json_string_value(json_array_get(warnings, 1)),
			    "at.\xc3\xbc: unknown key, kept and not used");
	check_ok(schema_check_open(value, inner, "at", NULL, &err), &err);
	check_ok(schema_check_open(NULL, inner, "at", warnings, &err), &err);
	(void)json_object_set_new(value, "count", json_integer(8));
	check_err(schema_check_open(value, inner, "at", warnings, &err), &err, ERR_INVALID);
}

static void warnings_have_an_end(void **state)
{
	AUTO(json) json_t *value = json_object();
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "k%d", i);
		(void)json_object_set_new(value, key, json_null());
	}
	check_ok(schema_check_open(value, inner, "", warnings, &err), &err);
	assert_int_equal(json_array_size(warnings), SCHEMA_WARNINGS_MAX + 1);
	assert_string_equal(json_string_value(json_array_get(warnings, SCHEMA_WARNINGS_MAX)),
			    "and more unknown keys");
}

static void a_long_path_is_cut(void **state)
{
	char key[1000] = "";
	struct schema_path at;

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	at = schema_at_item(schema_at_key("at", key).text, SIZE_MAX);
	assert_true(strlen(at.text) < SCHEMA_PATH_MAX);
	assert_non_null(strstr(at.text, "[18446744073709551615]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_accepted),
		cmocka_unit_test(what_is_wrong_is_named_with_what_belongs_there),
		cmocka_unit_test(an_open_object_has_a_warning_for_each_other_key),
		cmocka_unit_test(warnings_have_an_end),
		cmocka_unit_test(a_long_path_is_cut),
	};

	return cmocka_run_group_tests_name("layers/schema", tests, NULL, NULL);
}
