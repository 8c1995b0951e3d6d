/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/credentials.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* me:secret */
#define ENTRY "{\"auth\":\"bWU6c2VjcmV0\"}"

static void a_password_is_found_by_its_host(void **state)
{
	static const struct {
		const char *text;
		const char *host;
	} cases[] = {
		{"{\"auths\":{\"reg.acme.com\":" ENTRY "}}", "reg.acme.com"},
		{"{\"auths\":{\"127.0.0.1:5000\":" ENTRY "}}", "127.0.0.1:5000"},
		{"{\"auths\":{\"reg.acme.com\":{\"username\":\"me\",\"password\":\"secret\"}}}",
		 "reg.acme.com"},
		{"{\"auths\":{\"https://index.docker.io/v1/\":" ENTRY "}}", "docker.io"},
		{"{\"auths\":{\"reg.acme.com\":" ENTRY "},\"credsStore\":\"pass\"}",
		 "reg.acme.com"},
		{"{\"auths\":{\"reg.acme.com\":" ENTRY "},\"credHelpers\":{\"other.com\":\"x\"}}",
		 "reg.acme.com"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};
		int rc = credentials_find(str_of(cases[i].text), str_of(cases[i].host),
					  STR("acme/tool"), &found, &err);

		if (rc != 1)
			fail_msg("%s: %d %s", cases[i].text, rc, err.text);
		assert_string_equal(found.user, "me");
		assert_string_equal(secret_reveal(&found.password), "secret");
	}
}

static void a_host_that_nobody_knows_is_anonymous(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"auths\":{}}",
		("{\"auths\":{\"other.com\":" ENTRY "}}"),
		"{\"auths\":{\"reg.acme.com\":{}}}",
		"{\"credHelpers\":{\"other.com\":\"gcloud\"}}",
		"{\"credHelpers\":{\"reg.acme.com\":\"\"}}",
		"{\"credHelpers\":null}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};
		int rc = credentials_find(str_of(texts[i]), STR("reg.acme.com"), STR("acme/tool"),
					  &found, &err);

		if (rc != 0)
			fail_msg("%s: %d %s", texts[i], rc, err.text);
	}
}

static void a_helper_is_named_and_not_passed_over(void **state)
{
	static const struct {
		const char *text;
		const char *host;
	} cases[] = {
		{"{\"credHelpers\":{\"reg.acme.com\":\"gcloud\"}}", "reg.acme.com"},
		{"{\"auths\":{},\"credHelpers\":{\"reg.acme.com\":\"gcloud\"}}", "reg.acme.com"},
		{"{\"auths\":{\"reg.acme.com\":{}},\"credHelpers\":{\"reg.acme.com\":\"gcloud\"}}",
		 "reg.acme.com"},
		{"{\"auths\":{\"reg.acme.com\":" ENTRY
		 "},\"credHelpers\":{\"reg.acme.com\":\"gcloud\"}}",
		 "reg.acme.com"},
		{"{\"credHelpers\":{\"https://index.docker.io/v1/\":\"gcloud\"}}", "docker.io"},
		{"{\"credHelpers\":{\"reg.acme.com\":\"gcloud\"},\"credsStore\":\"pass\"}",
		 "reg.acme.com"},
		{"{\"auths\":{\"reg.acme.com\":{}},\"credsStore\":\"gcloud\"}", "reg.acme.com"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};

		check_ok(credentials_find(str_of(cases[i].text), str_of(cases[i].host),
					  STR("acme/tool"), &found, &err),
			 &err);
		assert_string_equal(found.helper, "gcloud");
		assert_true(secret_is_empty(&found.password));
	}
}

static void the_helper_of_all_hosts_may_know_nothing(void **state)
{
	static const struct {
		const char *text;
		bool guessed;
	} cases[] = {
		{"{\"credsStore\":\"ecr-login\"}", true},
		{"{\"auths\":{\"other.com\":{}},\"credsStore\":\"ecr-login\"}", true},
		{"{\"auths\":{\"reg.acme.com\":{}},\"credsStore\":\"ecr-login\"}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};

		assert_int_equal(credentials_find(str_of(cases[i].text), STR("reg.acme.com"),
						  STR("acme/tool"), &found, &err),
				 1);
		assert_string_equal(found.helper, "ecr-login");
		assert_int_equal(found.guessed, cases[i].guessed);
	}
}

static void the_name_of_a_helper_leads_nowhere_else(void **state)
{
	static const char *const names[] = {
		"../x", "a/b",
		"a b",  "a;b",
		"$(x)", "a123456789b123456789c123456789d123456789e123456789f123456789g123456789"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};
		char text[256];

		(void)snprintf(text, sizeof(text), "{\"credHelpers\":{\"reg.acme.com\":\"%s\"}}",
			       names[i]);
		check_err(credentials_find(str_of(text), STR("reg.acme.com"), STR("acme/tool"),
					   &found, &err),
			  &err, ERR_INVALID);
	}
}

/* The same host more than once: what is said of the longest path counts. */
static void the_longest_path_wins(void **state)
{
#define OTHER "{\"auth\":\"eW91OnNlY3JldA==\"}" /* you:secret */
	static const struct {
		const char *text;
		const char *user;
	} cases[] = {
		{"{\"auths\":{\"r.com\":" OTHER ",\"r.com/acme\":" ENTRY "}}", "me"},
		{"{\"auths\":{\"r.com/acme\":" ENTRY ",\"r.com\":" OTHER "}}", "me"},
		{"{\"auths\":{\"r.com/acme\":" OTHER ",\"r.com/acme/tool\":" ENTRY "}}", "me"},
		{"{\"auths\":{\"r.com/acme/to\":" OTHER ",\"r.com\":" ENTRY "}}", "me"},
		{"{\"auths\":{\"r.com/acme/tool/x\":" OTHER ",\"https://r.com/v2/\":" ENTRY "}}",
		 "me"},
		{"{\"auths\":{\"r.com/acme\":{},\"r.com\":" ENTRY "}}", "me"},
		{"{\"auths\":{\"r.com/acme\":" ENTRY ",\"r.com/acme/tool\":{}}}", "me"},
		{"{\"auths\":{\"r.com\":{\"identitytoken\":\"secret\",\"auth\":\"PHRva2VuPjo=\"}}}",
		 CREDENTIALS_IDENTITY},
		{"{\"auths\":{\"r.com\":{\"registrytoken\":\"secret\"}}}", CREDENTIALS_BEARER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};

		assert_int_equal(credentials_find(str_of(cases[i].text), STR("r.com"),
						  STR("acme/tool"), &found, &err),
				 1);
		if (strcmp(found.user, cases[i].user) != 0)
			fail_msg("%s: %s", cases[i].text, found.user);
		assert_string_equal(secret_reveal(&found.password), "secret");
	}
}

static void a_file_that_is_no_json_is_not_cited(void **state)
{
	static const char *const texts[] = {
		"{\"auths\":{\"reg.acme.com\":{\"auth\":\"bWU6c2VjcmV0\" \"x\"}}}",
		"{\"auths\":{\"reg.acme.com\":{\"auth\":bWU6c2VjcmV0}}}",
		"{\"auths\":{\"reg.acme.com\":{\"auth\":\"bWU6c2VjcmV0",
		"{\"auths\":{\"reg.acme.com\":{\"auth\":\"!bWU6c2VjcmV0\"}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		auto_credentials struct credentials found = {0};
		struct err err = {0};

		check_err(credentials_find(str_of(texts[i]), STR("reg.acme.com"), STR("acme/tool"),
					   &found, &err),
			  &err, ERR_INVALID);
		if (strstr(err.text, "bWU"))
			fail_msg("%s: %s", texts[i], err.text);
		assert_true(secret_is_empty(&found.password));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_password_is_found_by_its_host),
		cmocka_unit_test(a_host_that_nobody_knows_is_anonymous),
		cmocka_unit_test(a_helper_is_named_and_not_passed_over),
		cmocka_unit_test(the_helper_of_all_hosts_may_know_nothing),
		cmocka_unit_test(the_name_of_a_helper_leads_nowhere_else),
		cmocka_unit_test(the_longest_path_wins),
		cmocka_unit_test(a_file_that_is_no_json_is_not_cited),
	};

	return cmocka_run_group_tests_name("registry/credentials", tests, NULL, NULL);
}
