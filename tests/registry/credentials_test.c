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

/* What is put is found, and the rest of the file is as it was. */
static void a_password_is_put_beside_what_is_there(void **state)
{
	static const struct {
		const char *before;
		const char *host;
		const char *after;
	} cases[] = {
		{"", "reg.acme.com", "{\"auths\":{\"reg.acme.com\":" ENTRY "}}"},
		{"{\"auths\":null}", "127.0.0.1:5000",
		 "{\"auths\":{\"127.0.0.1:5000\":" ENTRY "}}"},
		{"{\"HttpHeaders\":{\"A\":\"b\"},\"auths\":{\"o.com\":{\"auth\":\"eDp5\"}},"
		 "\"psFormat\":1}",
		 "reg.acme.com",
		 "{\"HttpHeaders\":{\"A\":\"b\"},\"auths\":{\"o.com\":{\"auth\":\"eDp5\"},"
		 "\"reg.acme.com\":" ENTRY "},\"psFormat\":1}"},
		{"{\"auths\":{\"https://reg.acme.com/v1/\":{\"identitytoken\":\"t\"},"
		 "\"reg.acme.com\":{\"username\":\"x\",\"password\":\"y\"},"
		 "\"reg.acme.com/one\":{\"auth\":\"eDp5\"}}}",
		 "reg.acme.com",
		 "{\"auths\":{\"reg.acme.com\":" ENTRY
		 ",\"reg.acme.com/one\":{\"auth\":\"eDp5\"}}}"},
		{"{\"auths\":{\"docker.io\":{\"auth\":\"eDp5\"}}}", "docker.io",
		 "{\"auths\":{\"https://index.docker.io/v1/\":" ENTRY "}}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf out = BUF_INIT(CREDENTIALS_FILE_MAX);
		auto_buf struct buf plain = BUF_INIT(CREDENTIALS_FILE_MAX);
		auto_credentials struct credentials found = {0};
		auto_secret struct secret password = {0};
		AUTO(json) json_t *written = NULL;
		struct err err = {0};

		check_ok(secret_put(&password, STR("secret"), &err), &err);
		check_ok(credentials_put(str_of(cases[i].before), str_of(cases[i].host), STR("me"),
					 &password, &out, &err),
			 &err);
		check_ok(json_parse(buf_str(&out), CREDENTIALS_FILE_MAX, &written, &err), &err);
		check_ok(json_format(written, &plain, &err), &err);
		assert_string_equal(plain.ptr, cases[i].after);
		assert_int_equal(credentials_find(buf_str(&out), str_of(cases[i].host),
						  STR("acme/tool"), &found, &err),
				 1);
		assert_string_equal(secret_reveal(&found.password), "secret");
	}
}

static void what_could_not_be_read_again_is_not_put(void **state)
{
	static const char *const users[] = {"a:b", ""};
	auto_buf struct buf out = BUF_INIT(CREDENTIALS_FILE_MAX);
	auto_secret struct secret password = {0};
	char longest[CREDENTIALS_MAX];

	(void)state;
	memset(longest, 'p', sizeof(longest));
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		struct str text = {longest, i == 0 ? 1 : CREDENTIALS_MAX - 1};
		struct err err = {0};

		check_ok(secret_put(&password, text, &err), &err);
		check_err(credentials_put(STR(""), STR("r.com"), str_of(users[i]), &password, &out,
					  &err),
			  &err, i == 0 ? ERR_INVALID : ERR_LIMIT);
		assert_int_equal(out.len, 0);
	}
	for (size_t i = 0; i < 2; i++) {
		static const char *const files[] = {"[]", "{\"auths\": \"x\"}"};
		struct err err = {0};

		check_err(credentials_put(str_of(files[i]), STR("r.com"), STR("me"), NULL, &out,
					  &err),
			  &err, ERR_INVALID);
	}
}

static void a_host_is_forgotten_in_all_its_spellings(void **state)
{
	static const char text[] =
		"{\"auths\":{\"https://r.com/v2/\":" ENTRY ",\"r.com\":{},\"r.com/one\":" ENTRY
		",\"other.com\":" ENTRY "},\"a\":[1]}";
	auto_buf struct buf out = BUF_INIT(CREDENTIALS_FILE_MAX);
	auto_buf struct buf plain = BUF_INIT(CREDENTIALS_FILE_MAX);
	AUTO(json) json_t *written = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(credentials_del(str_of(text), STR("r.com"), &out, &err), 1);
	check_ok(json_parse(buf_str(&out), CREDENTIALS_FILE_MAX, &written, &err), &err);
	check_ok(json_format(written, &plain, &err), &err);
	assert_string_equal(plain.ptr, "{\"a\":[1],\"auths\":{\"other.com\":" ENTRY
				       ",\"r.com/one\":" ENTRY "}}");
	assert_int_equal(credentials_del(str_of(text), STR("absent.com"), &out, &err), 0);
	assert_int_equal(credentials_del(STR(""), STR("r.com"), &out, &err), 0);
}

static void the_keeper_of_a_host_is_named(void **state)
{
	static const struct {
		const char *text;
		int found;
		const char *name;
	} cases[] = {
		{"", 0, NULL},
		{"{\"auths\":{\"r.com\":{}}}", 0, NULL},
		{"{\"credsStore\":\"pass\"}", 1, "pass"},
		{"{\"credsStore\":\"pass\",\"credHelpers\":{\"r.com\":\"ecr\"}}", 1, "ecr"},
		{"{\"credHelpers\":{\"other.com\":\"ecr\"}}", 0, NULL},
		{"{\"credsStore\":\"../x\"}", -1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[CREDENTIALS_HELPER_MAX];
		struct err err = {0};

		assert_int_equal(
			credentials_keeper(str_of(cases[i].text), STR("r.com"), name, &err),
			cases[i].found);
		if (cases[i].found == 1)
			assert_string_equal(name, cases[i].name);
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
		cmocka_unit_test(a_password_is_put_beside_what_is_there),
		cmocka_unit_test(what_could_not_be_read_again_is_not_put),
		cmocka_unit_test(a_host_is_forgotten_in_all_its_spellings),
		cmocka_unit_test(the_keeper_of_a_host_is_named),
	};

	return cmocka_run_group_tests_name("registry/credentials", tests, NULL, NULL);
}
