/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/json.h"
#include "tests/check.h"

#include <string.h>

static void the_canonical_form_has_sorted_keys_and_no_blanks(void **state)
{
	AUTO(json) json_t *value = NULL;
	auto_buf struct buf text = BUF_INIT(1024);
	struct err err = {0};

	(void)state;
	check_ok(json_parse(STR(" {\"b\": [1, true, null], \"a\" : \"\\u00e9\"} "), 1024, &value,
			    &err),
		 &err);
	check_ok(json_format(value, &text, &err), &err);
	assert_string_equal(text.ptr, "{\"a\":\"\xc3\xa9\",\"b\":[1,true,null]}");
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
	static const char *const wrong[] = {
		"", "{", "{\"a\":1,\"a\":2}", "[1,]", "{} x", "\"\\u0000\"", "\"\xff\"", "nul",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *value = NULL;
		struct err err = {0};

		check_err(json_parse(str_of(wrong[i]), 1024, &value, &err), &err, ERR_INVALID);
		assert_non_null(strstr(err.text, "line 1"));
		assert_null(value);
	}
}

static void a_document_above_the_ceiling_is_not_read(void **state)
{
	json_t *value = NULL;
	struct err err = {0};

	(void)state;
	check_err(json_parse(STR("[1, 2, 3]"), 8, &value, &err), &err, ERR_LIMIT);
}

static void a_document_of_many_levels_is_not_read(void **state)
{
	static const char strings[] = "[\"[[[[\\\"[[[[\", \"{{{{\"]";
	AUTO(json) json_t *value = NULL;
	char text[2 * JSON_DEPTH_MAX + 3];
	json_t *none = NULL;
	struct err err = {0};

	(void)state;
	memset(text, '[', JSON_DEPTH_MAX + 1);
	memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	check_ok(json_parse((struct str){text + 1, sizeof(text) - 3}, sizeof(text), &value, &err),
		 &err);
	check_err(json_parse((struct str){text, sizeof(text) - 1}, sizeof(text), &none, &err), &err,
		  ERR_INVALID);
	assert_non_null(strstr(err.text, "levels"));
	json_decref(value);
	check_ok(json_parse(str_of(strings), sizeof(strings), &value, &err), &err);
}

static void getters_tell_absence_from_a_wrong_type(void **state)
{
	AUTO(json) json_t *value = NULL;
	struct err err = {0};
	struct str text;
	int64_t number;
	bool flag;

	(void)state;
	check_ok(
		json_parse(STR("{\"s\":\"x\",\"n\":3,\"z\":null,\"f\":false}"), 1024, &value, &err),
		&err);
	assert_int_equal(json_get_string(value, "top", "s", &text, &err), 1);
	assert_int_equal(json_get_string(value, "top", "absent", &text, &err), 0);
	assert_int_equal(json_get_string(value, "top", "z", &text, &err), 0);
	assert_int_equal(json_get_bool(value, "top", "f", &flag, &err), 1);
	assert_false(flag);
	check_err(json_get_string(value, "top", "n", &text, &err), &err, ERR_INVALID);
	assert_string_equal(err.text, "top.n: expected a string, found an integer");
	assert_string_equal(err.path, "top.n");
	assert_string_equal(err.expected, "a string");
	check_err(json_need_int(value, "", "absent", &number, &err), &err, ERR_INVALID);
	assert_string_equal(err.text, "absent: missing; expected an integer");
}

static void bytes_outside_utf8_become_replacements(void **state)
{
	AUTO(json) json_t *value = json_from_str(STR("a\xff\xc3\xa9\xed\xa0\x80z"));

	(void)state;
	assert_non_null(value);
	assert_string_equal(json_string_value(value),
			    "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
}

static void what_was_written_of_any_bytes_can_be_read(void **state)
{
	AUTO(json) json_t *written = json_pack("{s:o}", "a", json_from_str(STR("\0x\0")));
	AUTO(json) json_t *read = NULL;
	auto_buf struct buf text = BUF_INIT(100);
	struct err err = {0};

	(void)state;
	check_ok(json_format(written, &text, &err), &err);
	check_ok(json_parse(buf_str(&text), text.len, &read, &err), &err);
	assert_string_equal(json_string_value(json_object_get(read, "a")),
			    "\xef\xbf\xbdx\xef\xbf\xbd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_canonical_form_has_sorted_keys_and_no_blanks),
		cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
		cmocka_unit_test(what_was_written_of_any_bytes_can_be_read),
		cmocka_unit_test(a_document_above_the_ceiling_is_not_read),
		cmocka_unit_test(a_document_of_many_levels_is_not_read),
		cmocka_unit_test(getters_tell_absence_from_a_wrong_type),
		cmocka_unit_test(bytes_outside_utf8_become_replacements),
	};

	return cmocka_run_group_tests_name("layers/json", tests, NULL, NULL);
}
