/* SPDX-License-Identifier: Apache-2.0 */
#include "api/listen.h"
#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void a_free_port_is_found_and_told(void **state)
{
	char where[LISTEN_TEXT_MAX];
	char again[LISTEN_TEXT_MAX];
	struct err err = {0};
	auto_close int fd = listen_tcp("127.0.0.1:0", where, &err);

	(void)state;
	check_ok(fd, &err);
	assert_true(str_starts(str_of(where), STR("127.0.0.1:")));
	assert_string_not_equal(where, "127.0.0.1:0");
	check_err(listen_tcp(where, again, &err), &err, ERR_CONFLICT);
}

static void what_is_no_address_is_said(void **state)
{
	static const char *const wrong[] = {"",           "7460",        "localhost",
					    "localhost:", "127.0.0.1:x", "127.0.0.1:99999999"};
	char where[LISTEN_TEXT_MAX];
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_err(listen_tcp(wrong[i], where, &err), &err, ERR_INVALID);
}

static void a_socket_is_its_owners_and_replaces_an_old_one(void **state)
{
	char dir[] = "/tmp/hearth-test-XXXXXX";
	auto_close int dirfd = -1;
	struct stat first;
	struct stat second;
	struct err err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		auto_close int fd = listen_unix(dirfd, "sock", &err);

		check_ok(fd, &err);
		assert_int_equal(fstatat(dirfd, "sock", i ? &second : &first, 0), 0);
	}
	assert_true(S_ISSOCK(first.st_mode));
	assert_int_equal(first.st_mode & 07777, 0600);
	assert_int_equal(second.st_mode & 07777, 0600);
	assert_int_equal(unlinkat(dirfd, "sock", 0), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_port_is_found_and_told),
		cmocka_unit_test(what_is_no_address_is_said),
		cmocka_unit_test(a_socket_is_its_owners_and_replaces_an_old_one),
	};

	return cmocka_run_group_tests_name("api/listen", tests, NULL, NULL);
}
