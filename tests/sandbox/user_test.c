/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/user.h"

#include "tests/check.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "app:x:1000:1001:App,,,:/home/app:/bin/sh\n"
			     "nohome:x:1002:1002\n"
			     "broken\n"
			     "huge:x:4294967296:0::/:\n";
static const char group[] = "root:x:0:\n"
			    "app:x:1001:\n"
			    "staff:x:50:other,app\n"
			    "video:x:44:app,root\n"
			    "appendix:x:45:app2\n";

static struct user find(const char *text)
{
	struct user user;
	struct err err = {0};

	check_ok(user_find(str_of(passwd), str_of(group), str_of(text), &user, &err), &err);
	return user;
}

static void nobody_in_particular_is_root(void **state)
{
	struct user user = find("");

	(void)state;
	assert_int_equal(user.uid, 0);
	assert_int_equal(user.gid, 0);
	assert_string_equal(user.home, "/root");
	assert_int_equal(user.group_count, 1); /* video lists root */
	assert_int_equal(user.groups[0], 44);
}

static void a_name_brings_its_groups_and_home(void **state)
{
	struct user user = find("app");

	(void)state;
	assert_int_equal(user.uid, 1000);
	assert_int_equal(user.gid, 1001);
	assert_string_equal(user.home, "/home/app");
	assert_int_equal(user.group_count, 2);
	assert_int_equal(user.groups[0], 50);
	assert_int_equal(user.groups[1], 44);
}

static void a_number_finds_its_entry_and_needs_none(void **state)
{
	struct user known = find("1000");
	struct user unknown = find("4242");

	(void)state;
	assert_int_equal(known.gid, 1001);
	assert_int_equal(known.group_count, 2);
	assert_int_equal(unknown.uid, 4242);
	assert_int_equal(unknown.gid, 0);
	assert_int_equal(unknown.group_count, 0);
	assert_string_equal(unknown.home, "/");
}

static void a_group_replaces_the_users_own(void **state)
{
	struct user named = find("app:staff");
	struct user numbers = find("1000:7777");

	(void)state;
	assert_int_equal(named.gid, 50);
	assert_int_equal(named.group_count, 0);
	assert_int_equal(numbers.uid, 1000);
	assert_int_equal(numbers.gid, 7777);
}

static void short_lines_lose_only_what_they_lack(void **state)
{
	struct user user = find("nohome");

	(void)state;
	assert_int_equal(user.gid, 1002);
	assert_string_equal(user.home, "/");
}

static void wrong_users_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum err_kind kind;
	} wrong[] = {
		{"nobody", ERR_NOT_FOUND},
		{"app:nogroup", ERR_NOT_FOUND},
		{"broken", ERR_NOT_FOUND},
		{"huge", ERR_LIMIT},
		{"65536", ERR_LIMIT},
		{"0:65536", ERR_LIMIT},
		{"99999999999999", ERR_LIMIT},
		{"-1", ERR_NOT_FOUND},
		{" 0", ERR_NOT_FOUND},
		{":staff", ERR_NOT_FOUND},
		{"18446744073709551616", ERR_LIMIT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct user user = {.uid = 42};
		struct err err = {0};

		check_err(user_find(str_of(passwd), str_of(group), str_of(wrong[i].text), &user,
				    &err),
			  &err, wrong[i].kind);
		assert_int_equal(user.uid, 42);
	}
}

static void a_user_without_a_name_is_seen(void **state)
{
	struct user user;
	struct err err = {0};

	(void)state;
	check_err(user_find(str_of(passwd), str_of(group), STR(":staff"), &user, &err), &err,
		  ERR_NOT_FOUND);
	assert_string_equal(err.text, "no user \"\" in the image");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_in_particular_is_root),
		cmocka_unit_test(a_name_brings_its_groups_and_home),
		cmocka_unit_test(a_number_finds_its_entry_and_needs_none),
		cmocka_unit_test(a_group_replaces_the_users_own),
		cmocka_unit_test(short_lines_lose_only_what_they_lack),
		cmocka_unit_test(wrong_users_are_refused),
		cmocka_unit_test(a_user_without_a_name_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
