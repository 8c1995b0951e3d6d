/* SPDX-License-Identifier: Apache-2.0 */
/* stack_test.c - overlays as this kernel takes them and as older ones do. */
#include "sandbox/stack_priv.h"

#include "sandbox/userns_priv.h"
#include "tests/check.h"
#include "tests/sandbox/stack_place.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

static void assert_top_is(int dirfd, const char *path, const char *expected)
{
	char text[16] = "";
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, expected);
	assert_int_equal(close(fd), 0);
}

static void try_stack(struct place *place, size_t count, const char *expected)
{
	struct err err = {0};
	struct stat st;
	int view;

	place->stack.diff_id_count = count;
	check_ok(stack_mount(&place->stack, &err), &err);
	assert_top_is(place->stack.scratchfd, "root/top", expected);
	assert_int_equal(fstatat(place->stack.scratchfd, "root/top", &st, 0), 0);
	assert_int_equal(st.st_uid, USERNS_FIRST);
	assert_int_equal(unlinkat(place->stack.scratchfd, "root/top", 0), 0); /* it is writable */
	check_ok(stack_view(&place->stack, &view, &err), &err);
	assert_top_is(view, "top", expected);
	assert_int_equal(fstatat(view, "top", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(close(view), 0);
}

static void a_mapped_view_has_the_machines_owners(void **state)
{
	struct place *place = *state;
	struct err err = {0};
	struct stat st;
	auto_close int view = -1;

	place->stack.diff_id_count = 3;
	check_ok(stack_view_mapped(&place->stack, &view, &err), &err);
	assert_top_is(view, "top", "2");
	assert_int_equal(fstatat(view, "top", &st, 0), 0);
	assert_int_equal(st.st_uid, USERNS_FIRST);
	assert_int_equal(unlinkat(view, "top", 0), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(faccessat(place->stack.scratchfd, "view/top", F_OK, 0), -1);
	assert_int_equal(faccessat(place->stack.scratchfd, "trees/x", F_OK, 0), -1);
}

static bool kernel_is_before(uint64_t major, uint64_t minor)
{
	struct utsname name;
	struct str rest;
	struct str dot;
	uint64_t v[2];

	assert_int_equal(uname(&name), 0);
	rest = str_of(name.release);
	assert_true(str_take_number(&rest, &v[0]) && str_cut(&rest, '.', &dot) &&
		    str_take_number(&rest, &v[1]));
	return v[0] < major || (v[0] == major && v[1] < minor);
}

static void layers_are_taken_by_descriptor(void **state)
{
	if (kernel_is_before(6, 13))
		skip();
	try_stack(*state, TREES, "229");
}

static void layers_are_taken_by_name(void **state)
{
	struct place *place = *state;

	place->stack.by_name = true;
	try_stack(place, 150, "149");
}

static void too_many_names_are_said_to_be_that(void **state)
{
	struct place *place = *state;
	struct err err = {0};

	place->stack.by_name = true;
	place->stack.diff_id_count = TREES;
	check_err(stack_mount(&place->stack, &err), &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "6.13"));
}

/* Tree i has the file "only<i>" as well. */
static void add_file_of_its_own(const struct place *place, size_t i)
{
	char name[DIGEST_HEX_MAX];
	char path[DIGEST_HEX_MAX + 16];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/only%zu", digest_hex(&place->ids[i], name), i);
	fd = openat(place->stack.treesfd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void hide_all_below(const struct place *place, size_t i)
{
	char name[DIGEST_HEX_MAX];
	int fd = openat(place->stack.treesfd, digest_hex(&place->ids[i], name),
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(close(fd), 0);
}

static void a_stack_ends_at_a_tree_that_hides_all_below_it(void **state)
{
	struct place *place = *state;
	struct err err = {0};
	int view;

	for (size_t i = 0; i < 4; i++)
		add_file_of_its_own(place, i);
	hide_all_below(place, 0);
	hide_all_below(place, 2);
	place->stack.diff_id_count = 4;
	check_ok(stack_mount(&place->stack, &err), &err);
	assert_top_is(place->stack.scratchfd, "root/top", "3");
	assert_int_equal(faccessat(place->stack.scratchfd, "root/only3", F_OK, 0), 0);
	assert_int_equal(faccessat(place->stack.scratchfd, "root/only2", F_OK, 0), 0);
	assert_int_equal(faccessat(place->stack.scratchfd, "root/only1", F_OK, 0), -1);
	assert_int_equal(faccessat(place->stack.scratchfd, "root/only0", F_OK, 0), -1);
	check_ok(stack_view(&place->stack, &view, &err), &err);
	assert_int_equal(faccessat(view, "only2", F_OK, 0), 0);
	assert_int_equal(faccessat(view, "only1", F_OK, 0), -1);
	assert_int_equal(close(view), 0);
}

static bool set_immutable(int fd, bool immutable)
{
	int flags = immutable ? FS_IMMUTABLE_FL : 0;

	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

/* Overlayfs makes a directory in `work`, and does without where it cannot. */
static void what_can_only_be_mounted_read_only_is_not_mounted(void **state)
{
	struct place *place = *state;
	auto_close int workfd = openat(place->stack.ownfd, "work", O_RDONLY | O_CLOEXEC);
	struct err err = {0};

	if (!set_immutable(workfd, true))
		skip();
	place->stack.diff_id_count = 1;
	for (int by_name = 0; by_name < 2; by_name++) {
		place->stack.by_name = by_name;
		check_err(stack_mount(&place->stack, &err), &err, ERR_UNAVAILABLE);
		assert_int_equal(faccessat(place->stack.scratchfd, "root/top", F_OK, 0), -1);
	}
	assert_true(set_immutable(workfd, false));
	check_ok(stack_mount(&place->stack, &err), &err);
}

static void assert_busy_while_mounted(struct place *place)
{
	struct err err = {0};

	place->stack.diff_id_count = 1;
	check_ok(stack_mount(&place->stack, &err), &err);
	check_err(stack_wait_idle(&place->stack, 20, &err), &err, ERR_BUSY);
	place_unmount(place, "root");
	check_ok(stack_wait_idle(&place->stack, 5000, &err), &err);
}

static void an_upper_directory_in_use_is_no_tree_yet(void **state)
{
	assert_busy_while_mounted(*state);
}

static void it_is_so_where_layers_are_taken_by_name(void **state)
{
	struct place *place = *state;

	place->stack.by_name = true;
	assert_busy_while_mounted(place);
}

/* The same directories for a second machine, with descriptors of its own. */
static struct stack second_of(const struct place *place)
{
	struct stack second = place->stack;

	second.ownfd = openat(place->stack.ownfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	second.scratchfd = place_open_new(place->stack.scratchfd, "second");
	assert_true(second.ownfd >= 0);
	return second;
}

/* By descriptor and by name, since the kernel itself only warns of either. */
static void assert_second_is_refused(struct stack *second)
{
	struct err err = {0};

	for (int by_name = 0; by_name < 2; by_name++) {
		second->by_name = by_name;
		check_err(stack_mount(second, &err), &err, ERR_BUSY);
		assert_int_equal(faccessat(second->scratchfd, "root/top", F_OK, 0), -1);
	}
}

static void two_owners_never_mount_one_upper_directory(void **state)
{
	struct place *place = *state;
	struct err err = {0};
	struct stack second;

	place->stack.diff_id_count = 1;
	check_ok(stack_mount(&place->stack, &err), &err);
	second = second_of(place);
	assert_second_is_refused(&second);
	place_unmount(place, "root");
	assert_second_is_refused(&second); /* its owner lives */
	assert_int_equal(close(second.ownfd) + close(second.scratchfd), 0);
}

static void a_mount_that_outlives_its_owner_keeps_others_off(void **state)
{
	struct place *place = *state;
	struct err err = {0};
	struct stack second;
	int rootfd;

	place->stack.diff_id_count = 1;
	check_ok(stack_mount(&place->stack, &err), &err);
	second = second_of(place);
	rootfd = openat(place->stack.scratchfd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(rootfd >= 0);
	place_unmount(place, "root");
	assert_int_equal(flock(place->stack.ownfd, LOCK_UN), 0); /* as its end would */
	assert_second_is_refused(&second);
	assert_int_equal(close(rootfd), 0);
	check_ok(stack_wait_idle(&second, 5000, &err), &err);
	/* what was mounted as volatile is not mounted again with its work directory */
	assert_int_equal(renameat(second.ownfd, "work", second.ownfd, "spent"), 0);
	assert_int_equal(mkdirat(second.ownfd, "work", 0700), 0);
	check_ok(stack_mount(&second, &err), &err);
	assert_top_is(second.scratchfd, "root/top", "0");
	place_unmount(place, "second/root");
	assert_int_equal(close(second.ownfd) + close(second.scratchfd), 0);
}

#define STACK_TEST(test) cmocka_unit_test_setup_teardown(test, place_make, place_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STACK_TEST(a_mapped_view_has_the_machines_owners),
		STACK_TEST(layers_are_taken_by_descriptor),
		STACK_TEST(layers_are_taken_by_name),
		STACK_TEST(too_many_names_are_said_to_be_that),
		STACK_TEST(a_stack_ends_at_a_tree_that_hides_all_below_it),
		STACK_TEST(what_can_only_be_mounted_read_only_is_not_mounted),
		STACK_TEST(an_upper_directory_in_use_is_no_tree_yet),
		STACK_TEST(it_is_so_where_layers_are_taken_by_name),
		STACK_TEST(two_owners_never_mount_one_upper_directory),
		STACK_TEST(a_mount_that_outlives_its_owner_keeps_others_off),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125;
	return cmocka_run_group_tests_name("sandbox/stack", tests, NULL, NULL);
}
