/* SPDX-License-Identifier: Apache-2.0 */
#include "api/scopes.h"
#include "tests/check.h"

static void a_glob_matches_the_whole_name(void **state)
{
	static const struct {
		struct str glob;
		struct str text;
		bool match;
	} cases[] = {
		{STR("*"), STR("a/b"), true},
		{STR("a/*"), STR("a/b/c"), true},
		{STR("a/*"), STR("a"), false},
		{STR("a/*"), STR("ab/c"), false},
		{STR("a*c"), STR("abcc"), true},
		{STR("a*c"), STR("abcd"), false},
		{STR("*b*"), STR("abc"), true},
		{STR("*b*"), STR("acd"), false},
		{STR("a?c"), STR("abc"), true},
		{STR("a?c"), STR("ac"), false},
		{STR("abc"), STR("abc"), true},
		{STR("abc"), STR("abcd"), false},
		{STR("**"), STR(""), true},
		{STR(""), STR("a"), false},
		{STR("*a*a*a*a*a*a*b"), STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(scopes_match(cases[i].glob, cases[i].text), cases[i].match);
}

static void a_glob_may_match_what_begins_so(void **state)
{
	static const struct {
		struct str glob;
		bool match;
	} cases[] = {
		{STR("*"), true},       {STR("a.b/*"), true}, {STR("a.*"), true},
		{STR("a.b/c/*"), true}, {STR("a.b/c"), true}, {STR("?.?/x"), true},
		{STR("a.b/"), false},   {STR("a.b"), false},  {STR("a.bc/*"), false},
		{STR("team/*"), false}, {STR(""), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(scopes_match_start(cases[i].glob, STR("a.b/")), cases[i].match);
}

static void a_scope_allows_its_action_where_its_glob_matches(void **state)
{
	AUTO(json)
	json_t *list = json_pack("[s,s,s,s]", "read", "pull", "push:team/*", "delete:team/old");
	AUTO(scopes) struct scopes *scopes = scopes_new(list);

	(void)state;
	assert_true(scopes_allow(scopes, V2_PULL, STR("any/where")));
	assert_true(scopes_allow(scopes, V2_PUSH, STR("team/x")));
	assert_false(scopes_allow(scopes, V2_PUSH, STR("teams/x")));
	assert_true(scopes_allow(scopes, V2_DELETE, STR("team/old")));
	assert_false(scopes_allow(scopes, V2_DELETE, STR("team/older")));
	assert_false(scopes_allow(scopes, V2_LIST, STR("team/x")));
}

static void levels_alone_are_no_scopes(void **state)
{
	AUTO(json) json_t *list = json_pack("[s]", "operate");

	(void)state;
	assert_null(scopes_new(list));
	assert_false(scopes_allow(NULL, V2_PULL, STR("a")));
}

static void what_is_shared_goes_with_the_last(void **state)
{
	AUTO(json) json_t *list = json_pack("[s]", "pull:a");
	AUTO(scopes) struct scopes *scopes = scopes_new(list);
	struct scopes *other = scopes_ref(scopes);

	(void)state;
	scopes_unref(other);
	assert_true(scopes_allow(scopes, V2_PULL, STR("a")));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_glob_matches_the_whole_name),
		cmocka_unit_test(a_glob_may_match_what_begins_so),
		cmocka_unit_test(a_scope_allows_its_action_where_its_glob_matches),
		cmocka_unit_test(levels_alone_are_no_scopes),
		cmocka_unit_test(what_is_shared_goes_with_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
