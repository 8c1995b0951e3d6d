/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/secrets.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The one variable that there is. */
static bool has_token(const char *name)
{
	return strcmp(name, "TOKEN") == 0;
}

static void a_secret_comes_from_a_file_or_a_variable(void **state)
{
	static const struct {
		const char *text;
		const char *id;
		const char *file;
		const char *env;
	} cases[] = {
		{"id=a,src=/f", "a", "/f", NULL},
		{"id=a,source=f", "a", "f", NULL},
		{"type=file,src=f,id=a", "a", "f", NULL},
		{"id=a,env=E", "a", NULL, "E"},
		{"type=env,id=a,env=E", "a", NULL, "E"},
		{"type=env,id=a,src=E", "a", NULL, "E"},
		{"id=TOKEN", "TOKEN", NULL, "TOKEN"},
		{"id=token", "token", "token", NULL},
		{"type=file,id=TOKEN", "TOKEN", "TOKEN", NULL},
		{"id=a,\"src=/f,1\"", "a", "/f,1", NULL},
		{"id=a,src=b=c", "a", "b=c", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_secret_source struct secret_source source = {0};
		struct err err = {0};

		check_ok(secret_source_parse(str_of(cases[i].text), has_token, &source, &err),
			 &err);
		assert_string_equal(source.id, cases[i].id);
		assert_string_equal(source.file ? source.file : "-",
				    cases[i].file ? cases[i].file : "-");
		assert_string_equal(source.env ? source.env : "-",
				    cases[i].env ? cases[i].env : "-");
	}
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"", "expected id=ID,src=FILE"},
		{"a", "expected id=ID,src=FILE"},
		{"id=", "expected id=ID,src=FILE"},
		{"src=/f", "expected id=ID"},
		{"id=a,src=/f,env=E", "both src and env"},
		{"id=a,id=b", "id is given twice"},
		{"id=a,file=/f", "unknown key file"},
		{"id=a,scr=/f", "did you mean src?"},
		{"id=a,type=x", "type: expected file or env"},
		{"id=a,\"src=/f", "the quote"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct secret_source source = {0};
		struct err err = {0};

		check_err(secret_source_parse(str_of(cases[i].text), has_token, &source, &err),
			  &err, ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_null(source.id);
	}
}

static void secrets_are_found_by_id(void **state)
{
	auto_secrets struct secrets secrets = {0};
	struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);
	struct err err = {0};

	(void)state;
	assert_null(secrets_find(NULL, STR("a")));
	assert_null(secrets_find(&secrets, STR("a")));
	check_ok(buf_add(&bytes, STR("x"), &err), &err);
	check_ok(secrets_add(&secrets, "a", &bytes, &err), &err);
	check_ok(secrets_add(&secrets, "empty", &bytes, &err), &err);
	assert_string_equal(secret_reveal(secrets_find(&secrets, STR("a"))), "x");
	assert_non_null(secrets_find(&secrets, STR("empty")));
	assert_null(secrets_find(&secrets, STR("aa")));
	check_err(secrets_add(&secrets, "a", &bytes, &err), &err, ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_comes_from_a_file_or_a_variable),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(secrets_are_found_by_id),
	};

	return cmocka_run_group_tests_name("bake/secrets", tests, NULL, NULL);
}
