/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/differences.h"
#include "tests/check.h"

static const char *const before = "{\"base\": \"sha256:b\", \"parent\": \"sha256:p\", "
				  "\"instruction\": \"RUN a\", \"env\": [\"A=1\", \"B=2\"],"
				  " \"workdir\": \"/\", \"user\": \"\", \"platform\": "
				  "\"linux/amd64\", \"network\": \"open\"}";

static json_t *parse(const char *text)
{
	struct err err = {0};
	json_t *value;

	check_ok(json_parse(str_of(text), 4096, &value, &err), &err);
	return value;
}

static void check_differences(const char *now, const char *expected)
{
	AUTO(json) json_t *was = parse(before);
	AUTO(json) json_t *is = parse(now);
	AUTO(json) json_t *differences = differences_of(was, is);
	AUTO(json) json_t *wanted = parse(expected);

	if (!json_equal(differences, wanted))
		fail_msg("%s", json_dumps(differences, 0));
}

static void equal_components_have_none(void **unused)
{
	(void)unused;
	check_differences(before, "[]");
}

static void variables_are_told_one_by_one(void **unused)
{
	(void)unused;
	check_differences(
		"{\"base\": \"sha256:b\", \"parent\": \"sha256:p\", \"instruction\": \"RUN a\", "
		"\"env\": [\"A=3\", \"C=\"],"
		" \"workdir\": \"/\", \"user\": \"\", \"platform\": \"linux/amd64\", \"network\": "
		"\"open\"}",
		"[{\"what\": \"environment\", \"name\": \"A\", \"was\": \"1\", \"is\": \"3\"},"
		" {\"what\": \"environment\", \"name\": \"C\", \"was\": null, \"is\": \"\"},"
		" {\"what\": \"environment\", \"name\": \"B\", \"was\": \"2\", \"is\": null}]");
}

static void the_first_cause_comes_first(void **unused)
{
	(void)unused;
	check_differences("{\"network\": \"none\", \"base\": \"sha256:c\", \"parent\": "
			  "\"sha256:q\", \"instruction\": \"RUN a\","
			  " \"env\": [\"A=1\", \"B=2\"], \"workdir\": \"/\", \"user\": \"\", "
			  "\"platform\": \"linux/amd64\"}",
			  "[{\"what\": \"base\", \"was\": \"sha256:b\", \"is\": \"sha256:c\"},"
			  " {\"what\": \"parent\", \"was\": \"sha256:p\", \"is\": \"sha256:q\"},"
			  " {\"what\": \"network\", \"was\": \"open\", \"is\": \"none\"}]");
}

static void a_component_that_is_not_known_is_told_by_its_name(void **unused)
{
	(void)unused;
	check_differences("{\"base\": \"sha256:b\", \"parent\": \"sha256:p\", \"instruction\": "
			  "\"RUN a\", \"env\": [\"A=1\", \"B=2\"],"
			  " \"workdir\": \"/\", \"user\": \"\", \"platform\": \"linux/amd64\", "
			  "\"network\": \"open\", \"moon\": \"full\"}",
			  "[{\"what\": \"moon\", \"was\": null, \"is\": \"full\"}]");
}

static void an_instruction_is_shown_as_the_spec_has_it(void **unused)
{
	AUTO(json) json_t *was = parse("{\"instruction\": \"COPY {}\", \"text\": \"COPY a b\"}");
	AUTO(json) json_t *is = parse("{\"instruction\": \"COPY {1}\", \"text\": \"COPY a c\"}");
	AUTO(json) json_t *differences = differences_of(was, is);
	const json_t *first = json_array_get(differences, 0);

	(void)unused;
	assert_int_equal(json_array_size(differences), 1);
	assert_string_equal(json_string_value(json_object_get(first, "was")), "COPY a b");
	assert_string_equal(json_string_value(json_object_get(first, "is")), "COPY a c");
}

static void the_same_words_are_nearer_than_the_same_parent(void **unused)
{
	AUTO(json) json_t *is = parse(before);
	AUTO(json) json_t *words = parse("{\"instruction\": \"RUN a\", \"parent\": \"sha256:x\"}");
	AUTO(json) json_t *parent = parse("{\"instruction\": \"RUN b\", \"parent\": \"sha256:p\"}");
	AUTO(json)
	json_t *neither = parse("{\"instruction\": \"RUN b\", \"parent\": \"sha256:x\"}");

	(void)unused;
	assert_true(differences_likeness(words, is) > differences_likeness(parent, is));
	assert_true(differences_likeness(parent, is) > differences_likeness(neither, is));
}

static size_t wording(const char *a, const char *b)
{
	AUTO(json) json_t *was = json_pack("{s:s}", "text", a);
	AUTO(json) json_t *is = json_pack("{s:s}", "text", b);

	return differences_wording(was, is);
}

static void words_are_compared_from_both_ends(void **unused)
{
	AUTO(json) json_t *none = json_object();

	(void)unused;
	assert_int_equal(wording("RUN make", "RUN make"), 8);
	assert_int_equal(wording("RUN make", "RUN --network=none make"), 8);
	assert_int_equal(wording("RUN make", "RUN make all"), 8);
	assert_int_equal(wording("aa", "aaa"), 2);
	assert_int_equal(wording("", "RUN make"), 0);
	assert_int_equal(differences_wording(none, none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_components_have_none),
		cmocka_unit_test(variables_are_told_one_by_one),
		cmocka_unit_test(the_first_cause_comes_first),
		cmocka_unit_test(a_component_that_is_not_known_is_told_by_its_name),
		cmocka_unit_test(an_instruction_is_shown_as_the_spec_has_it),
		cmocka_unit_test(the_same_words_are_nearer_than_the_same_parent),
		cmocka_unit_test(words_are_compared_from_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
