/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/name_priv.h"
#include "tests/check.h"

#define LABEL63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void one_form_for_all_spellings(void **state)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{"example.com", "example.com"},
		{"gItHuB.cOm", "github.com"},
		{"example.com.", "example.com"},
		{"_http._tcp.example.com", "_http._tcp.example.com"},
		{"single", "single"},
		{"127.0.0.1.nip.io", "127.0.0.1.nip.io"},
		{"1.2.3.4e", "1.2.3.4e"},
		{"xn--jv8h.example.com", "xn--jv8h.example.com"},
		{LABEL63 ".com", LABEL63 ".com"},
	};
	char name[NAME_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(name_normalise(str_of(cases[i].text), name));
		assert_string_equal(name, cases[i].name);
	}
}

static void what_is_no_name_is_refused(void **state)
{
	static const struct str wrong[] = {
		STR(""),
		STR("."),
		STR(".."),
		STR("a..b"),
		STR(".a"),
		STR("a.."),
		STR("a b"),
		STR("a\0b"),
		STR("attacker\0.example.com"),
		STR("a/b"),
		STR("a@b"),
		STR("[a]"),
		STR("a%b"),
		STR("*.a"),
		STR("\xf0\x9f\x94\x90.example.com"),
		STR("a" LABEL63),
		STR("127.0.0.1"),
		STR("2130706433"),
		STR("0x7f000001"),
		STR("127.1"),
		STR("0x7f.1"),
		STR("0177.0.0.01"),
		STR("a.0"),
		STR("127.0.0.1."),
		STR(LABEL63 "." LABEL63 "." LABEL63 "." LABEL63),
	};
	char name[NAME_TEXT_MAX] = "untouched";

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (name_normalise(wrong[i], name))
			fail_msg("case %zu is no name: " STR_FMT, i, STR_ARG(wrong[i]));
	}
	assert_string_equal(name, "untouched");
}

static void a_name_is_below_another_at_a_dot_only(void **state)
{
	(void)state;
	assert_true(name_is_below("localhost", "localhost"));
	assert_true(name_is_below("a.b.localhost", "localhost"));
	assert_false(name_is_below("notlocalhost", "localhost"));
	assert_false(name_is_below("localhost.example", "localhost"));
	assert_false(name_is_below("host", "localhost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_form_for_all_spellings),
		cmocka_unit_test(what_is_no_name_is_refused),
		cmocka_unit_test(a_name_is_below_another_at_a_dot_only),
	};

	return cmocka_run_group_tests_name("sandbox/name", tests, NULL, NULL);
}
