/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/implied.h"

#include "tests/layers/unpacking.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>

#define TREES_MAX 4

/* Trees in a scratch directory, which is also where corrections are made. */
struct implying {
	char path[64];
	int dirfd;
	struct digest ids[TREES_MAX];
	size_t count;
};

static int implying_setup(void **state)
{
	struct implying *implying = test_calloc(1, sizeof(*implying));

	implying->dirfd = scratch_make(implying->path);
	*state = implying;
	return 0;
}

static int implying_teardown(void **state)
{
	struct implying *implying = *state;

	(void)close(implying->dirfd);
	scratch_remove(implying->path);
	test_free(implying);
	return 0;
}

/* The next tree up; entries end with one that has no name. */
static void add_tree(struct implying *implying, const struct tar_entry *entries)
{
	size_t i = implying->count++;
	struct memory_source source;
	char hex[DIGEST_HEX_MAX];
	struct tarball tar;
	struct err err;
	int fd;

	assert_true(i < TREES_MAX);
	tarball_init(&tar);
	for (; entries->name; entries++)
		tarball_add(&tar, entries);
	tarball_end(&tar);
	digest_of((struct str){(const char *)&i, sizeof(i)}, &implying->ids[i]);
	(void)digest_hex(&implying->ids[i], hex);
	assert_int_equal(mkdirat(implying->dirfd, hex, 0755), 0);
	fd = openat(implying->dirfd, hex, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	memory_source_init(&source, buf_str(&tar.bytes), 0);
	check_ok(unpack_tar(fd, &source.source, NULL, &err), &err);
	assert_int_equal(close(fd), 0);
	tarball_done(&tar);
}

#define add_tree_of(implying, ...) add_tree(implying, (const struct tar_entry[]){__VA_ARGS__, {0}})

/* What is stacked above the highest tree: its listing, or nothing. */
static void check_correction(struct implying *implying, size_t lowest, const char *expected)
{
	auto_implied_seen struct implied_seen seen = {0};
	const struct implied_stack stack = {implying->dirfd, implying->ids, lowest, &seen};
	auto_buf struct buf list = BUF_INIT(LISTING_MAX);
	auto_close int fd = -1;
	struct err err = {0};
	int made = implied_correct(&stack, implying->count - 1, implying->dirfd, "out", &err);

	check_ok(made, &err);
	fd = openat(implying->dirfd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(made, *expected != '\0');
	assert_int_equal(fd >= 0, *expected != '\0');
	if (!*expected)
		return;
	listing_add(fd, LISTING_MARKS, &list);
	assert_string_equal(buf_str(&list).ptr, expected);
}

static void what_a_lower_tree_says_stands(void **state)
{
	add_tree_of(*state, {.name = "tmp/", .type = '5', .mode = 01777, .mtime = 7});
	add_tree_of(*state, {.name = "tmp/x"});
	check_correction(*state, 0, ". 040755 0:0 @0.000000000\ntmp 041777 0:0 @7.000000000\n");
}

static void what_says_the_same_needs_no_correction(void **state)
{
	add_tree_of(*state, {.name = "usr/", .type = '5', .mtime = 7});
	add_tree_of(*state, {.name = "usr/x"}, {.name = "new/x"});
	check_correction(*state, 0, "");
}

static void an_entry_counts_wherever_it_stands(void **state)
{
	add_tree_of(*state, {.name = "tmp/", .type = '5', .mode = 01777});
	add_tree_of(*state, {.name = "tmp/x"}, {.name = "tmp/", .type = '5', .mode = 0700});
	check_correction(*state, 0, "");
}

static void the_root_is_one_of_them(void **state)
{
	add_tree_of(*state, {.name = "./", .type = '5', .mode = 0555, .mtime = 3});
	add_tree_of(*state, {.name = "x"});
	check_correction(*state, 0, ". 040555 0:0 @3.000000000\n");
}

static void ways_to_them_are_as_the_tree_has_them(void **state)
{
	add_tree_of(*state, {.name = "a/", .type = '5'}, {.name = "a/b/", .type = '5'},
		    {.name = "a/b/c/", .type = '5', .mode = 0700, .uid = 5, .gid = 6});
	add_tree_of(*state, {.name = "a/", .type = '5', .mode = 0711, .mtime = 9},
		    {.name = "a/b/c/x"});
	check_correction(*state, 0,
			 ". 040755 0:0 @0.000000000\n"
			 "a 040711 0:0 @9.000000000\n"
			 "a/b 040755 0:0 @0.000000000\n"
			 "a/b/c 040700 5:6 @0.000000000\n");
}

static void trees_that_imply_it_as_well_are_passed(void **state)
{
	add_tree_of(*state, {.name = "tmp/", .type = '5', .mode = 01777});
	add_tree_of(*state, {.name = "tmp/x"});
	add_tree_of(*state, {.name = "other"});
	add_tree_of(*state, {.name = "tmp/.wh.x"});
	check_correction(*state, 0, ". 040755 0:0 @0.000000000\ntmp 041777 0:0 @0.000000000\n");
}

static void only_the_highest_tree_is_corrected(void **state)
{
	struct implying *implying = *state;
	auto_implied_seen struct implied_seen seen = {0};
	const struct implied_stack stack = {implying->dirfd, implying->ids, 0, &seen};
	struct err err = {0};

	add_tree_of(implying, {.name = "./", .type = '5'},
		    {.name = "opt/", .type = '5', .mode = 0700},
		    {.name = "tmp/", .type = '5', .mode = 01777});
	add_tree_of(implying, {.name = "opt/x"}, {.name = "tmp/x"});
	add_tree_of(implying, {.name = "tmp/y"});
	add_tree_of(implying, {.name = "tmp/z"});
	assert_int_equal(implied_correct(&stack, 3, implying->dirfd, "third", &err), 1);
	assert_int_equal(implied_correct(&stack, 2, implying->dirfd, "second", &err), 0);
	assert_int_equal(implied_correct(&stack, 1, implying->dirfd, "first", &err), 1);
	assert_int_equal(faccessat(implying->dirfd, "first/opt", F_OK, 0), 0);
	assert_int_equal(faccessat(implying->dirfd, "first/tmp", F_OK, 0), -1);
}

/* tmp and opt/a were; opt was only emptied. */
static void what_was_removed_says_nothing(void **state)
{
	add_tree_of(*state, {.name = "tmp/", .type = '5', .mode = 01777},
		    {.name = "opt/", .type = '5', .mode = 0700},
		    {.name = "opt/a/", .type = '5', .mode = 0700},
		    {.name = "srv/", .type = '5', .mode = 0700});
	add_tree_of(*state, {.name = ".wh.tmp"}, {.name = "opt/.wh..wh..opq"}, {.name = "srv"});
	add_tree_of(*state, {.name = "tmp/x"}, {.name = "opt/a/x"});
	check_correction(*state, 0, ". 040755 0:0 @0.000000000\nopt 040700 0:0 @0.000000000\n");
}

static void below_what_is_opaque_nothing_is_asked(void **state)
{
	add_tree_of(*state, {.name = "a/", .type = '5'},
		    {.name = "a/b/", .type = '5', .mode = 0700});
	add_tree_of(*state, {.name = "a/", .type = '5'}, {.name = "a/.wh..wh..opq"},
		    {.name = "a/b/x"});
	check_correction(*state, 0, "");
}

static void trees_below_the_lowest_are_not_asked(void **state)
{
	add_tree_of(*state, {.name = "tmp/", .type = '5', .mode = 01777});
	add_tree_of(*state, {.name = ".wh..wh..opq"});
	add_tree_of(*state, {.name = "tmp/x"});
	check_correction(*state, 1, "");
}

static void xattrs_are_repeated(void **state)
{
	struct implying *implying = *state;
	char path[160];
	char hex[DIGEST_HEX_MAX];

	add_tree_of(*state, {.name = "d/", .type = '5'});
	(void)snprintf(path, sizeof(path), "%s/%s/d", implying->path,
		       digest_hex(&implying->ids[0], hex));
	assert_int_equal(setxattr(path, "user.note", "x", 1, 0), 0);
	add_tree_of(*state, {.name = "d/x"});
	check_correction(*state, 0,
			 ". 040755 0:0 @0.000000000\n"
			 "d 040755 0:0 @0.000000000 {user.note=78}\n");
}

#define implied_test(name) cmocka_unit_test_setup_teardown(name, implying_setup, implying_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		implied_test(what_a_lower_tree_says_stands),
		implied_test(what_says_the_same_needs_no_correction),
		implied_test(an_entry_counts_wherever_it_stands),
		implied_test(the_root_is_one_of_them),
		implied_test(ways_to_them_are_as_the_tree_has_them),
		implied_test(trees_that_imply_it_as_well_are_passed),
		implied_test(only_the_highest_tree_is_corrected),
		implied_test(what_was_removed_says_nothing),
		implied_test(below_what_is_opaque_nothing_is_asked),
		implied_test(trees_below_the_lowest_are_not_asked),
		implied_test(xattrs_are_repeated),
	};

	if (geteuid() != 0)
		return 125;
	return cmocka_run_group_tests_name("layers/implied", tests, NULL, NULL);
}
