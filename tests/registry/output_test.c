/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/output.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

/* A directory that holds "old", with "old" in it. */
struct place {
	char dir[32];
	char file[40];
};

static void write_old(const struct place *place)
{
	auto_close int fd = open(place->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
}

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.dir, sizeof(place.dir), "/tmp/output_test.XXXXXX");
	if (!mkdtemp(place.dir))
		return -1;
	(void)snprintf(place.file, sizeof(place.file), "%s/old", place.dir);
	write_old(&place);
	*state = &place;
	return 0;
}

static int teardown(void **state)
{
	const struct place *place = *state;

	(void)unlink(place->file);
	return rmdir(place->dir); /* which fails where something was left */
}

static void check_file(const struct place *place, const char *content)
{
	auto_close int fd = open(place->file, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(100);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_read_all(fd, &text, &err), &err);
	assert_string_equal(text.ptr, content);
}

static size_t count_names(const struct place *place)
{
	auto_dir DIR *dir = opendir(place->dir);
	const struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += !fd_is_dots(entry->d_name);
	return count;
}

static void the_file_changes_when_all_is_written(void **state)
{
	const struct place *place = *state;
	auto_output struct output output = OUTPUT_INIT;
	struct err err = {0};

	check_ok(output_open(str_of(place->file), -1, NULL, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	check_file(place, "old");
	assert_int_equal(count_names(place), 1); /* no name until it is whole */
	check_ok(output_commit(&output, &err), &err);
	check_file(place, "new");
	assert_int_equal(count_names(place), 1);
}

static void without_a_commit_nothing_was_written(void **state)
{
	const struct place *place = *state;
	struct output output = OUTPUT_INIT;
	struct cancel cancel;
	struct err err = {0};

	check_ok(cancel_init(&cancel, &err), &err);
	check_ok(output_open(str_of(place->file), -1, &cancel, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	cancel_raise(&cancel);
	check_err(output.sink.write(&output.sink, STR("er"), &err), &err, ERR_CANCELLED);
	check_err(output_commit(&output, &err), &err, ERR_CANCELLED);
	output_close(&output);
	cancel_done(&cancel);
	check_file(place, "old");
	assert_int_equal(count_names(place), 1);
}

/* Renamed over by root, /dev/null would be a file from then on. */
static void what_is_no_file_is_written_and_not_replaced(void **state)
{
	auto_output struct output output = OUTPUT_INIT;
	struct stat st;
	struct err err = {0};

	(void)state;
	check_ok(output_open(STR("/dev/null"), -1, NULL, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	check_ok(output_commit(&output, &err), &err);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

/* As /dev/stdout, which is not to become a file. */
static void a_link_stays_one_and_its_file_changes(void **state)
{
	const struct place *place = *state;
	auto_output struct output output = OUTPUT_INIT;
	char link[48];
	struct stat st;
	struct err err = {0};

	(void)snprintf(link, sizeof(link), "%s/link", place->dir);
	assert_int_equal(symlink("old", link), 0);
	check_ok(output_open(str_of(link), 0, NULL, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	check_file(place, "old");
	check_ok(output_commit(&output, &err), &err);
	check_file(place, "new");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(link), 0);
}

/* A redirection whose file was removed meanwhile. */
static void a_file_without_a_name_is_written_as_it_comes(void **state)
{
	const struct place *place = *state;
	auto_output struct output output = OUTPUT_INIT;
	auto_close int fd = open(place->file, O_RDWR | O_CLOEXEC);
	char link[32];
	char text[4] = "";
	struct err err = {0};

	assert_int_equal(unlink(place->file), 0);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	check_ok(output_open(str_of(link), 0, NULL, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	check_ok(output_commit(&output, &err), &err);
	assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), 3);
	assert_string_equal(text, "new");
	assert_int_equal(count_names(place), 0);
}

static void a_stream_is_written_as_it_comes(void **state)
{
	auto_output struct output output = OUTPUT_INIT;
	char got[3];
	int ends[2];
	struct err err = {0};

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	check_ok(output_open(STR("-"), ends[1], NULL, &output, &err), &err);
	check_ok(output.sink.write(&output.sink, STR("new"), &err), &err);
	check_ok(output_commit(&output, &err), &err);
	assert_int_equal(read(ends[0], got, sizeof(got)), 3);
	assert_memory_equal(got, "new", 3);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void what_cannot_be_a_file_is_told(void **state)
{
	const struct place *place = *state;
	struct output output = OUTPUT_INIT;
	char path[64];
	struct err err = {0};

	check_err(output_open(STR("/nowhere/at/all"), -1, NULL, &output, &err), &err,
		  ERR_NOT_FOUND);
	check_err(output_open(str_of(place->dir), -1, NULL, &output, &err), &err, ERR_INVALID);
	(void)snprintf(path, sizeof(path), "%s/new/", place->dir);
	check_err(output_open(str_of(path), -1, NULL, &output, &err), &err, ERR_INVALID);
	(void)snprintf(path, sizeof(path), "%s/x", place->file);
	check_err(output_open(str_of(path), -1, NULL, &output, &err), &err, ERR_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_changes_when_all_is_written),
		TEST(without_a_commit_nothing_was_written),
		TEST(what_is_no_file_is_written_and_not_replaced),
		TEST(a_link_stays_one_and_its_file_changes),
		TEST(a_file_without_a_name_is_written_as_it_comes),
		TEST(a_stream_is_written_as_it_comes),
		TEST(what_cannot_be_a_file_is_told),
	};

	return cmocka_run_group_tests_name("registry/output", tests, NULL, NULL);
}
