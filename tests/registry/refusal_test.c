/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/refusal_priv.h"
#include "tests/check.h"

static void a_refusal_says_what_can_be_done(void **state)
{
	static const struct {
		long status;
		bool has_credentials;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{401, false, ERR_UNAUTHORIZED, "it needs credentials"},
		{401, true, ERR_UNAUTHORIZED, "these credentials give no access"},
		{403, false, ERR_DENIED, "it may need credentials"},
		{403, true, ERR_DENIED, "these credentials do not allow it"},
		{404, true, ERR_NOT_FOUND, "1.0 not found: check name and tag"},
		{413, true, ERR_REMOTE, "takes nothing as large as 1.0"},
		{429, false, ERR_BUSY, "try later, or with credentials"},
		{429, true, ERR_BUSY, "too many requests for this account"},
		{507, true, ERR_REMOTE, "the registry is full"},
		{418, true, ERR_REMOTE, "unexpected status 418 for 1.0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		check_err(refusal_explain(cases[i].status, STR(""), cases[i].has_credentials, "1.0",
					  &err),
			  &err, cases[i].kind);
		if (!strstr(err.text, cases[i].words))
			fail_msg("%ld: %s", cases[i].status, err.text);
	}
}

static void a_registrys_own_words_are_shown_where_they_are_a_list_of_errors(void **state)
{
	static const struct {
		const char *body;
		const char *text;
	} cases[] = {
		{"{\"errors\":[{\"code\":\"DENIED\",\"message\":\"not you\"}]}",
		 "access denied: it may need credentials; it says: DENIED: not you"},
		{"{\"errors\":[{\"code\":\"DENIED\"},{\"code\":\"UNKNOWN\"}]}",
		 "access denied: it may need credentials; it says: DENIED"},
		{"{\"errors\":[{\"message\":\"a\\nb\\u001b[2J\",\"detail\":{\"x\":1}}]}",
		 "access denied: it may need credentials; it says: a b [2J"},
		{"{\"errors\":[]}", "access denied: it may need credentials"},
		{"{\"errors\":[{\"code\":7}]}", "access denied: it may need credentials"},
		{"Too Many Requests (HAP429).", "access denied: it may need credentials"},
		{"<html><body>no</body></html>", "access denied: it may need credentials"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		(void)refusal_explain(403, str_of(cases[i].body), false, "1.0", &err);
		assert_string_equal(err.text, cases[i].text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_says_what_can_be_done),
		cmocka_unit_test(a_registrys_own_words_are_shown_where_they_are_a_list_of_errors),
	};

	return cmocka_run_group_tests_name("registry/refusal", tests, NULL, NULL);
}
