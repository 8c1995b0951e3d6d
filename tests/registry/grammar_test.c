/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/grammar.h"
#include "tests/check.h"

static void names_are_words_between_single_separators(void **state)
{
	static const char *const right[] = {"a", "0", "a/b/c", "a-b__c.d---e_f/0", "tags/list"};
	static const char *const wrong[] = {"",    "A",   "/",     "a/",   "/a",      "a//b",
					    "a.",  "-a",  "a/_b",  "a..b", "a._b",    "a b",
					    "a:b", "a@b", "a___b", "a_-b", "\xc3\xa4"};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_true(grammar_is_name(str_of(right[i])));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(grammar_is_name(str_of(wrong[i])));
	assert_false(grammar_is_name((struct str){NULL, 0}));
	assert_false(grammar_is_name((struct str){"a\0b", 3}));
}

static void tags_begin_with_a_word(void **state)
{
	static const char *const right[] = {"1", "latest", "_A.b-c", "a..b", "v1.0--x_"};
	static const char *const wrong[] = {"", ".a", "-a", "a+b", "a/b", "a:b", "a ", "\xc3\xa4"};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_true(grammar_is_tag(str_of(right[i])));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(grammar_is_tag(str_of(wrong[i])));
}

static void both_have_a_length(void **state)
{
	char text[GRAMMAR_NAME_MAX + 1];

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_true(grammar_is_name((struct str){text, GRAMMAR_NAME_MAX}));
	assert_false(grammar_is_name((struct str){text, GRAMMAR_NAME_MAX + 1}));
	assert_true(grammar_is_tag((struct str){text, GRAMMAR_TAG_MAX}));
	assert_false(grammar_is_tag((struct str){text, GRAMMAR_TAG_MAX + 1}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_words_between_single_separators),
		cmocka_unit_test(tags_begin_with_a_word),
		cmocka_unit_test(both_have_a_length),
	};

	return cmocka_run_group_tests_name("registry/grammar", tests, NULL, NULL);
}
