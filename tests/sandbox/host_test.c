/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/host.h"

#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void runtimes_are_found_by_name_and_path(void **state)
{
	char path[256] = "";
	struct err err = {0};

	(void)state;
	check_ok(host_find_runtime("sh", path, &err), &err);
	assert_non_null(strstr(path, "/sh"));
	check_ok(host_find_runtime("/bin/sh", path, &err), &err);
	assert_string_equal(path, "/bin/sh");
	check_err(host_find_runtime("no-such-runtime", path, &err), &err, ERR_UNSUPPORTED);
	check_err(host_find_runtime("/etc/passwd", path, &err), &err, ERR_UNSUPPORTED);
	check_err(host_find_runtime("./crun", path, &err), &err, ERR_UNSUPPORTED);
}

static void an_examination_says_something_about_everything(void **state)
{
	struct host_check checks[HOST_CHECKS_MAX];
	size_t count = host_examine("/tmp/hearth-host-test/not/there", checks);

	(void)state;
	assert_true(count >= 10);
	for (size_t i = 0; i < count; i++) {
		print_message("%s: %s (%d) %s\n", checks[i].name, checks[i].found,
			      (int)checks[i].verdict, checks[i].advice);
		assert_true(checks[i].found[0] != '\0');
		assert_int_equal(checks[i].verdict == HOST_OK, checks[i].advice[0] == '\0');
	}
}

static void a_trial_leaves_nothing_in_the_data_directory(void **state)
{
	struct host_check checks[HOST_CHECKS_MAX];
	char dir[64];
	DIR *entries;
	size_t found = 0;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/hearth-host-test-%d", (int)getpid());
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_true(host_examine(dir, checks) > 0);
	entries = opendir(dir);
	assert_non_null(entries);
	while (readdir(entries))
		found++;
	assert_int_equal(closedir(entries), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(found, 2); /* the dots */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtimes_are_found_by_name_and_path),
		cmocka_unit_test(an_examination_says_something_about_everything),
		cmocka_unit_test(a_trial_leaves_nothing_in_the_data_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
