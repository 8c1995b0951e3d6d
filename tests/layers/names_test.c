/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/names.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>

struct place {
	char path[32];
	int fd;
};

static const char *const made[] = {"b", "a", "\xff", "B", "..a", "ab"};
static const char *const sorted[] = {"..a", "B", "a", "ab", "b", "\xff"};
#define MADE (sizeof(made) / sizeof(made[0]))
#define MADE_BYTES ((size_t)15) /* of the names, each with its NUL */

static int open_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->path, sizeof(place->path), "/tmp/hearth-test-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = place;
	return 0;
}

static void fill(const struct place *place)
{
	for (size_t i = 0; i < MADE; i++) {
		auto_close int fd =
			openat(place->fd, made[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
	}
}

static int close_place(void **state)
{
	struct place *place = *state;

	for (size_t i = 0; i < MADE; i++)
		(void)unlinkat(place->fd, made[i], 0);
	assert_int_equal(rmdir(place->path), 0);
	assert_int_equal(close(place->fd), 0);
	free(place);
	return 0;
}

static void names_come_by_their_bytes_and_as_often_as_asked(void **state)
{
	const struct place *place = *state;
	struct err err = {0};

	fill(place);
	for (int again = 0; again < 2; again++) {
		auto_names struct names names = {0};

		check_ok(names_read(place->fd, MADE_BYTES, &names, &err), &err);
		assert_int_equal(names.count, MADE);
		for (size_t i = 0; i < MADE; i++)
			assert_string_equal(names.at[i], sorted[i]);
	}
}

static void more_bytes_than_are_allowed_are_refused(void **state)
{
	const struct place *place = *state;
	auto_names struct names names = {0};
	struct err err = {0};

	fill(place);
	check_err(names_read(place->fd, MADE_BYTES - 1, &names, &err), &err, ERR_LIMIT);
	check_err(names_read(place->fd, 0, &names, &err), &err, ERR_LIMIT);
	assert_null(names.at);
}

static void an_empty_directory_has_no_names(void **state)
{
	const struct place *place = *state;
	auto_names struct names names = {0};
	struct err err = {0};

	check_ok(names_read(place->fd, 0, &names, &err), &err);
	assert_int_equal(names.count, 0);
}

#define NAMES_TEST(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(names_come_by_their_bytes_and_as_often_as_asked),
		NAMES_TEST(more_bytes_than_are_allowed_are_refused),
		NAMES_TEST(an_empty_directory_has_no_names),
	};

	return cmocka_run_group_tests_name("layers/names", tests, NULL, NULL);
}
