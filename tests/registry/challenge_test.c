/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/challenge_priv.h"
#include "tests/check.h"

#include <string.h>

struct expected {
	enum challenge_scheme scheme;
	const char *realm;
	const char *service;
	const char *scope;
};

static const struct {
	const char *field;
	struct expected challenges[3];
	size_t count;
} cases[] = {
	{"", {{0}}, 0},
	{" , ,", {{0}}, 0},
	{"Basic realm=\"x\"", {{CHALLENGE_BASIC, "x", "", ""}}, 1},
	{"bAsIc", {{CHALLENGE_BASIC, "", "", ""}}, 1},
	{"Bearer realm=\"https://a/t\",service=\"a\",scope=\"repository:b:pull\"",
	 {{CHALLENGE_BEARER, "https://a/t", "a", "repository:b:pull"}},
	 1},
	/* any number of blanks, around the equals sign too */
	{"Bearer   realm = \"r\" ,  service=\"s\"", {{CHALLENGE_BEARER, "r", "s", ""}}, 1},
	/* blanks and commas inside quotes */
	{"Bearer realm=\"r\",service=\"SUSE Linux Docker "
	 "Registry\",scope=\"repository:a:pull,push\"",
	 {{CHALLENGE_BEARER, "r", "SUSE Linux Docker Registry", "repository:a:pull,push"}},
	 1},
	/* an empty value stops nothing */
	{"Bearer empty=\"\",realm=\"r\",error=,service=\"s\"",
	 {{CHALLENGE_BEARER, "r", "s", ""}},
	 1},
	/* unquoted, with what a token may not have */
	{"Bearer realm=/,service=a.b", {{CHALLENGE_BEARER, "/", "a.b", ""}}, 1},
	{"Bearer realm=https://a:5/t?x=y", {{CHALLENGE_BEARER, "https://a:5/t?x=y", "", ""}}, 1},
	/* several in one field, in any order */
	{"Basic realm=\"b\", Bearer realm=\"r\",service=\"s\"",
	 {{CHALLENGE_BASIC, "b", "", ""}, {CHALLENGE_BEARER, "r", "s", ""}},
	 2},
	{"Negotiate, Basic realm=\"b\", NTLM",
	 {{CHALLENGE_OTHER, "", "", ""},
	  {CHALLENGE_BASIC, "b", "", ""},
	  {CHALLENGE_OTHER, "", "", ""}},
	 3},
	{"Negotiate YWJj==, Bearer realm=\"r\"",
	 {{CHALLENGE_OTHER, "", "", ""}, {CHALLENGE_BEARER, "r", "", ""}},
	 2},
	{"Negotiate YWJjZA, Bearer realm=\"r\"",
	 {{CHALLENGE_OTHER, "", "", ""}, {CHALLENGE_BEARER, "r", "", ""}},
	 2},
	/* escapes, and a quote that never ends */
	{"Basic realm=\"a\\\"b\\\\c\"", {{CHALLENGE_BASIC, "a\"b\\c", "", ""}}, 1},
	{"Basic realm=\"a, b", {{CHALLENGE_BASIC, "a, b", "", ""}}, 1},
	{"Basic realm=\"a\\", {{CHALLENGE_BASIC, "a\\", "", ""}}, 1},
	/* litter */
	{"\"x\", Basic realm=b", {{CHALLENGE_BASIC, "b", "", ""}}, 1},
	{"=, Basic", {{CHALLENGE_BASIC, "", "", ""}}, 1},
};

static void check_value(struct str value, const char *expected, const char *field)
{
	if (!str_equal(value, str_of(expected)))
		fail_msg("%s: \"" STR_FMT "\" for \"%s\"", field, STR_ARG(value), expected);
}

static void fields_are_read_as_servers_write_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str field = str_of(cases[i].field);
		struct challenge challenge;
		size_t count = 0;

		while (challenge_next(&field, &challenge)) {
			const struct expected *expected = &cases[i].challenges[count++];

			if (count > cases[i].count || challenge.scheme != expected->scheme)
				fail_msg("%s: challenge %zu", cases[i].field, count);
			check_value(challenge.realm, expected->realm, cases[i].field);
			check_value(challenge.service, expected->service, cases[i].field);
			check_value(challenge.scope, expected->scope, cases[i].field);
		}
		assert_int_equal(count, cases[i].count);
	}
}

static void values_beyond_the_ceiling_are_cut(void **state)
{
	auto_buf struct buf text = BUF_INIT(CHALLENGE_TEXT_MAX * 2);
	struct challenge challenge;
	struct err err = {0};
	struct str field;

	(void)state;
	check_ok(buf_addf(&text, &err, "Bearer realm=\"%0*d\",service=\"s\"",
			  (int)CHALLENGE_TEXT_MAX + 10, 0),
		 &err);
	field = buf_str(&text);
	assert_true(challenge_next(&field, &challenge));
	assert_int_equal(challenge.realm.len, CHALLENGE_TEXT_MAX);
	assert_int_equal(challenge.service.len, 0);
	assert_false(challenge_next(&field, &challenge));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read_as_servers_write_them),
		cmocka_unit_test(values_beyond_the_ceiling_are_cut),
	};

	return cmocka_run_group_tests_name("registry/challenge", tests, NULL, NULL);
}
