/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_test.c - overlays as this kernel takes them and as older ones do.
 *
 * Everything lies in a directory of /tmp, mounted in a namespace of the test's own.
 */
#include "sandbox/stack_priv.h"

#include "layers/unpack.h"
#include "sandbox/etc_priv.h"
#include "sandbox/userns_priv.h"
#include "tests/check.h"
#include "tests/layers/listing.h"
#include "tests/layers/tarball.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

#define TREES 230 /* more than one page of options names */

struct place {
	char dir[64];
	struct digest ids[TREES];
	struct stack stack;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_new(int dirfd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dirfd, name, 0755), 0);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void make_tree(struct place *place, unsigned i)
{
	char name[DIGEST_HEX_MAX];
	int fd;
	int file;

	digest_of((struct str){(const char *)&i, sizeof(i)}, &place->ids[i]);
	fd = open_new(place->stack.treesfd, digest_hex(&place->ids[i], name));
	file = openat(fd, "top", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(dprintf(file, "%u", i) > 0);
	assert_int_equal(close(file) + close(fd), 0);
}

static int make_place(void **state)
{
	static struct place place;
	struct err err = {0};
	int dirfd;

	(void)snprintf(place.dir, sizeof(place.dir), "/tmp/hearth-stack-test-%d", (int)getpid());
	dirfd = open_new(AT_FDCWD, place.dir);
	place.stack = (struct stack){.treesfd = open_new(dirfd, "trees"),
				     .ownfd = open_new(dirfd, "own"),
				     .scratchfd = open_new(dirfd, "scratch"),
				     .diff_ids = place.ids,
				     .first_id = USERNS_FIRST};
	place.stack.basefd = etc_open_base(dirfd, &err);
	assert_true(place.stack.basefd >= 0);
	assert_int_equal(close(dirfd), 0);
	assert_int_equal(mkdirat(place.stack.ownfd, "up", 0755), 0);
	assert_int_equal(mkdirat(place.stack.ownfd, "work", 0700), 0);
	for (unsigned i = 0; i < TREES; i++)
		make_tree(&place, i);
	*state = &place;
	return 0;
}

static void unmount(const struct place *place, const char *name)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/scratch/%s", place->dir, name);
	(void)umount2(path, MNT_DETACH);
}

static void unmount_root(const struct place *place)
{
	unmount(place, "root");
}

static int end_place(void **state)
{
	struct place *place = *state;

	unmount_root(place);
	(void)close(place->stack.treesfd);
	(void)close(place->stack.ownfd);
	(void)close(place->stack.basefd);
	(void)close(place->stack.scratchfd);
	return nftw(place->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

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
	unmount_root(place);
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
	second.scratchfd = open_new(place->stack.scratchfd, "second");
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
	unmount_root(place);
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
	unmount_root(place);
	assert_int_equal(flock(place->stack.ownfd, LOCK_UN), 0); /* as its end would */
	assert_second_is_refused(&second);
	assert_int_equal(close(rootfd), 0);
	check_ok(stack_wait_idle(&second, 5000, &err), &err);
	/* what was mounted as volatile is not mounted again with its work directory */
	assert_int_equal(renameat(second.ownfd, "work", second.ownfd, "spent"), 0);
	assert_int_equal(mkdirat(second.ownfd, "work", 0700), 0);
	check_ok(stack_mount(&second, &err), &err);
	assert_top_is(second.scratchfd, "root/top", "0");
	unmount(place, "second/root");
	assert_int_equal(close(second.ownfd) + close(second.scratchfd), 0);
}

#define REPEAT_KINDS 3
#define REPEAT_TREES 6
#define REPEAT_ROUNDS 20
#define REPEAT_DEPTH 3
#define REPEAT_PATH_MAX ((size_t)32)

static unsigned draw(uint32_t *seed, unsigned below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 16) % below;
}

static void add_name(struct tarball *tar, const char *dir, const char *name, char type,
		     uint32_t *seed)
{
	static const mode_t modes[] = {0700, 0755, 01777};
	char path[REPEAT_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", dir, name);
	tarball_entry(tar, .name = path, .type = type, .mode = modes[draw(seed, 3)],
		      .data = type == '0' ? STR("hi") : STR(""));
}

/* Files, whiteouts, directories with and without an entry of their own, opaque ones. */
static void add_names(struct tarball *tar, const char *dir, uint32_t *seed, int depth)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const whiteouts[] = {".wh.a", ".wh.b", ".wh.c"};
	char path[REPEAT_PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned kind = draw(seed, 7);

		(void)snprintf(path, sizeof(path), "%s%s/", dir, names[i]);
		if (kind == 0)
			add_name(tar, dir, names[i], '0', seed);
		if (kind == 1)
			add_name(tar, dir, whiteouts[i], '0', seed);
		if (kind == 2 || kind == 3)
			add_name(tar, path, "", '5', seed);
		if (kind == 3)
			add_name(tar, path, ".wh..wh..opq", '0', seed);
		if (kind >= 2 && kind <= 4 && depth < REPEAT_DEPTH)
			add_names(tar, path, seed, depth + 1);
	}
}

static void unpack_as(const struct place *place, const struct tarball *tar, const struct digest *id)
{
	struct memory_source source;
	char name[DIGEST_HEX_MAX];
	auto_close int fd = open_new(place->stack.treesfd, digest_hex(id, name));
	struct err err;

	memory_source_init(&source, buf_str(&tar->bytes), 0);
	check_ok(unpack_tar(fd, &source.source, NULL, &err), &err);
}

static struct digest name_tree(char kind, unsigned round, size_t i)
{
	struct digest id;
	char text[32];

	(void)snprintf(text, sizeof(text), "%c %u %zu", kind, round, i);
	digest_of(str_of(text), &id);
	return id;
}

/* What is seen of a stack, with corrections of its own. */
static void list_view(const struct place *place, struct digest *ids, size_t count, const char *name,
		      struct buf *out)
{
	struct stack stack = place->stack;
	auto_close int ownfd = open_new(place->stack.ownfd, name);
	auto_close int view = -1;
	struct err err;

	stack.ownfd = ownfd;
	stack.diff_ids = ids;
	stack.diff_id_count = stack_distinct(ids, count);
	check_ok(stack_correct(&stack, &err), &err);
	check_ok(stack_view(&stack, &view, &err), &err);
	listing_add(view, LISTING_NO_DIR_TIMES, out);
}

/* Layers come again; beside them the same, each time as a tree of its own. */
static void try_repeats(const struct place *place, unsigned round)
{
	auto_buf struct buf seen = BUF_INIT(LISTING_MAX);
	auto_buf struct buf expected = BUF_INIT(LISTING_MAX);
	struct digest repeated[REPEAT_TREES];
	struct digest copies[REPEAT_TREES];
	struct tarball tars[REPEAT_KINDS];
	uint32_t seed = round;
	char name[32];

	for (size_t i = 0; i < REPEAT_KINDS; i++) {
		struct digest id = name_tree('k', round, i);

		tarball_init(&tars[i]);
		if (draw(&seed, 4) == 0)
			add_name(&tars[i], "./", "", '5', &seed);
		if (draw(&seed, 10) == 0)
			add_name(&tars[i], "", ".wh..wh..opq", '0', &seed);
		add_names(&tars[i], "", &seed, 1);
		tarball_end(&tars[i]);
		unpack_as(place, &tars[i], &id);
	}
	for (size_t i = 0; i < REPEAT_TREES; i++) {
		unsigned kind = draw(&seed, REPEAT_KINDS);

		repeated[i] = name_tree('k', round, kind);
		copies[i] = name_tree('c', round, i);
		unpack_as(place, &tars[kind], &copies[i]);
	}
	(void)snprintf(name, sizeof(name), "repeated%u", round);
	list_view(place, repeated, REPEAT_TREES, name, &seen);
	(void)snprintf(name, sizeof(name), "copies%u", round);
	list_view(place, copies, REPEAT_TREES, name, &expected);
	if (!str_equal(buf_str(&seen), buf_str(&expected)))
		fail_msg("round %u:\n%s\ninstead of\n%s", round, buf_str(&seen).ptr,
			 buf_str(&expected).ptr);
	for (size_t i = 0; i < REPEAT_KINDS; i++)
		tarball_done(&tars[i]);
}

static void a_layer_that_comes_again_is_seen_as_if_it_were_another(void **state)
{
	for (unsigned round = 0; round < REPEAT_ROUNDS; round++)
		try_repeats(*state, round);
}

static void of_equal_trees_the_highest_stays(void **state)
{
	struct digest a = name_tree('t', 0, 0);
	struct digest b = name_tree('t', 0, 1);
	struct digest ids[] = {a, a, b, a, b};

	(void)state;
	assert_int_equal(stack_distinct(ids, 5), 2);
	assert_true(digest_equal(&ids[0], &a) && digest_equal(&ids[1], &b));
	assert_int_equal(stack_distinct(ids, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(layers_are_taken_by_descriptor, make_place,
						end_place),
		cmocka_unit_test_setup_teardown(layers_are_taken_by_name, make_place, end_place),
		cmocka_unit_test_setup_teardown(too_many_names_are_said_to_be_that, make_place,
						end_place),
		cmocka_unit_test_setup_teardown(a_stack_ends_at_a_tree_that_hides_all_below_it,
						make_place, end_place),
		cmocka_unit_test_setup_teardown(what_can_only_be_mounted_read_only_is_not_mounted,
						make_place, end_place),
		cmocka_unit_test_setup_teardown(an_upper_directory_in_use_is_no_tree_yet,
						make_place, end_place),
		cmocka_unit_test_setup_teardown(it_is_so_where_layers_are_taken_by_name, make_place,
						end_place),
		cmocka_unit_test_setup_teardown(two_owners_never_mount_one_upper_directory,
						make_place, end_place),
		cmocka_unit_test_setup_teardown(a_mount_that_outlives_its_owner_keeps_others_off,
						make_place, end_place),
		cmocka_unit_test(of_equal_trees_the_highest_stays),
		cmocka_unit_test_setup_teardown(
			a_layer_that_comes_again_is_seen_as_if_it_were_another, make_place,
			end_place),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
