/* SPDX-License-Identifier: Apache-2.0 */
/* Tars that were made to do harm. */
#include "tests/layers/unpacking.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static void absolute_names_start_at_the_trees_root(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "/", .type = '5', .mode = 0750);
	tarball_entry(&fixture->tar, .name = "/d/", .type = '5', .mtime = 4);
	tarball_entry(&fixture->tar, .name = "//d/x");
	tarball_entry(&fixture->tar, .name = "/d/y", .type = '1', .link = "/d/x");
	tarball_entry(&fixture->tar, .name = "/.wh.gone");
	unpack(fixture);
	check_tree(fixture, "d 040755 0:0 @4.000000000\n"
			    "d/x 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "d/y 100644 0:0 @0.000000000 0 " EMPTY " linked to d/x\n"
			    "gone 020000 0:0 @0.000000000 0:0\n");
	assert_int_equal(stat_of(fixture, ".").st_mode & 07777, 0750);
}

static void names_that_climb_are_refused(void **state)
{
	static const char *const names[] = {"a/../../x\033[2J", "/../x", "a/..", ".."};
	static const char *const said[] = {"entry a/../../x?[2J: a name with \"..\" in it",
					   "entry /../x: a name", "entry a/..: a name",
					   "entry ..: a name"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		buf_clear(&fixture->tar.bytes);
		tarball_entry(&fixture->tar, .name = names[i]);
		check_refused(fixture, ERR_CORRUPT, said[i]);
	}
}

static void a_pax_path_is_judged_like_any_name(void **state)
{
	struct fixture *fixture = *state;

	tarball_pax(&fixture->tar, "path", STR("../x"));
	tarball_entry(&fixture->tar, .name = "innocent");
	check_refused(fixture, ERR_CORRUPT, "entry ../x");
}

static void a_gnu_long_name_is_judged_like_any_name(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "././@LongLink", .type = 'L', .data = STR("../x\0"));
	tarball_entry(&fixture->tar, .name = "innocent");
	check_refused(fixture, ERR_CORRUPT, "entry ../x");
}

static void a_parent_that_climbs_is_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "evil", .type = '2', .link = "../../..");
	tarball_entry(&fixture->tar, .name = "evil/x");
	check_refused(fixture, ERR_CORRUPT, "entry evil/x: it leads outside the tree");
}

static void a_chain_that_climbs_is_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "d/", .type = '5');
	tarball_entry(&fixture->tar, .name = "d/up", .type = '2', .link = "..");
	tarball_entry(&fixture->tar, .name = "two", .type = '2', .link = "d/up/..");
	tarball_entry(&fixture->tar, .name = "two/x");
	check_refused(fixture, ERR_CORRUPT, "entry two/x: it leads outside the tree");
}

static void a_symlink_that_climbs_may_be_there(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "l", .type = '2', .link = "../../../../../etc");
	unpack(fixture);
	assert_true(S_ISLNK(stat_of(fixture, "l").st_mode));
}

static void an_absolute_parent_is_followed_inside(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "run/", .type = '5', .mtime = 4);
	tarball_entry(&fixture->tar, .name = "var/run", .type = '2', .link = "/run");
	tarball_entry(&fixture->tar, .name = "var/run/lock/", .type = '5', .mtime = 5);
	tarball_entry(&fixture->tar, .name = "var/run/lock/x");
	tarball_entry(&fixture->tar, .name = "etc", .type = '2', .link = "/var/../run/lock");
	tarball_entry(&fixture->tar, .name = "etc/passwd");
	tarball_entry(&fixture->tar, .name = "y", .type = '1', .link = "etc/passwd");
	unpack(fixture);
	check_tree(fixture, "etc 120777 0:0 @0.000000000 -> /var/../run/lock\n"
			    "run 040755 0:0 @4.000000000\n"
			    "run/lock 040755 0:0 @5.000000000\n"
			    "run/lock/passwd 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "run/lock/x 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "var 040755 0:0 @0.000000000\n"
			    "var/run 120777 0:0 @0.000000000 -> /run\n"
			    "y 100644 0:0 @0.000000000 0 " EMPTY " linked to run/lock/passwd\n");
}

static void a_symlink_is_replaced_and_not_written_through(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "f", .type = '2', .link = "../neighbour");
	tarball_entry(&fixture->tar, .name = "f", .data = STR("harm"));
	tarball_entry(&fixture->tar, .name = "d", .type = '2', .link = "..");
	tarball_entry(&fixture->tar, .name = "d/", .type = '5', .mode = 0777);
	tarball_entry(&fixture->tar, .name = "d/neighbour", .data = STR("harm"));
	tarball_entry(&fixture->tar, .name = "last/..");
	check_refused(fixture, ERR_CORRUPT, "entry last/..");
	assert_true(S_ISREG(stat_of(fixture, "f").st_mode));
	assert_true(S_ISREG(stat_of(fixture, "d/neighbour").st_mode));
}

static void loops_of_symlinks_end(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "a", .type = '2', .link = "b");
	tarball_entry(&fixture->tar, .name = "b", .type = '2', .link = "a");
	tarball_entry(&fixture->tar, .name = "a/x");
	check_refused(fixture, ERR_CORRUPT, "entry a/x: too many symlinks on its way");
}

static void hard_links_to_the_outside_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "h", .type = '1', .link = "../neighbour");
	check_refused(fixture, ERR_CORRUPT, "entry h: hard link: a name with \"..\" in it");
}

static void hard_links_through_a_symlink_to_the_outside_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "up", .type = '2', .link = "..");
	tarball_entry(&fixture->tar, .name = "h", .type = '1', .link = "up/neighbour");
	check_refused(fixture, ERR_CORRUPT, "entry h: hard link: it leads outside the tree");
}

static void a_hard_link_to_a_symlink_is_the_symlink(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "s", .type = '2', .link = "../neighbour");
	tarball_entry(&fixture->tar, .name = "h", .type = '1', .link = "/s");
	tarball_entry(&fixture->tar, .name = "h", .data = STR("harm"));
	tarball_entry(&fixture->tar, .name = "i", .type = '1', .link = "s");
	unpack(fixture);
	assert_true(S_ISREG(stat_of(fixture, "h").st_mode));
	assert_true(S_ISLNK(stat_of(fixture, "i").st_mode));
}

static void hard_links_to_nothing_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "h", .type = '1', .link = "etc/shadow");
	check_refused(fixture, ERR_CORRUPT, "entry h: a hard link to what the layer does not have");
}

static void hard_links_to_directories_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "d/", .type = '5');
	tarball_entry(&fixture->tar, .name = "h", .type = '1', .link = "d");
	check_refused(fixture, ERR_CORRUPT, "entry h: a hard link to a directory");
}

static void a_hard_link_cannot_eat_its_target(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "d/x");
	tarball_entry(&fixture->tar, .name = "d", .type = '1', .link = "d/x");
	check_refused(fixture, ERR_CORRUPT, "entry d: a hard link to what the layer does not have");
}

static void whiteouts_that_climb_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "../.wh.neighbour");
	check_refused(fixture, ERR_CORRUPT, "entry ../.wh.neighbour");
}

static void whiteouts_through_a_symlink_to_the_outside_are_refused(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "up/.wh.neighbour");
	tarball_entry(&fixture->tar, .name = "up", .type = '2', .link = "..");
	check_refused(fixture, ERR_CORRUPT, "whiteouts in up: it leads outside the tree");
}

static void whiteouts_of_dots_are_refused(void **state)
{
	static const char *const names[] = {".wh.", ".wh..", ".wh...", "a/.wh..."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fixture *fixture = *state;

		buf_clear(&fixture->tar.bytes);
		tarball_entry(&fixture->tar, .name = names[i]);
		check_refused(fixture, ERR_CORRUPT, "a whiteout of nothing");
	}
}

static void nothing_lies_below_a_whiteout(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = ".wh.a/b");
	check_refused(fixture, ERR_CORRUPT, "entry .wh.a/b: it lies below a whiteout");
}

static void the_private_files_of_aufs_are_ignored(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = ".wh..wh.aufs");
	tarball_entry(&fixture->tar, .name = ".wh..wh.plnk/", .type = '5');
	tarball_entry(&fixture->tar, .name = ".wh..wh.plnk/12.34");
	tarball_entry(&fixture->tar, .name = "a/.wh..wh.orph/", .type = '5');
	unpack(fixture);
	check_tree(fixture, "");
}

static void device_zero_is_no_way_to_a_whiteout(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "null", .type = '3');
	check_refused(fixture, ERR_UNSUPPORTED, "entry null: it is character device 0:0");
}

static void owners_beyond_the_range_are_refused(void **state)
{
	static const char *const ids[] = {
		"0200000\0",                        /* 65536 */
		"\200\0\0\0\0\1\0\0",               /* the same in base 256 */
		"\377\377\377\377\377\377\377\377", /* -1 */
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct fixture *fixture = *state;

		buf_clear(&fixture->tar.bytes);
		tarball_entry(&fixture->tar, .name = "f", .raw_uid = ids[i]);
		check_refused(fixture, ERR_UNSUPPORTED, "entry f: its owner is ");
	}
}

static void base_256_numbers_are_read(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "f", .raw_uid = "\200\0\0\0\0\0\377\377",
		      .raw_size = "\200\0\0\0\0\0\0\0\0\0\0\2", .data = STR("hi"));
	unpack(fixture);
	check_tree(fixture, "f 100644 65535:0 @0.000000000 2 " HI "\n");
}

static void negative_and_huge_sizes_are_refused(void **state)
{
	static const char *const sizes[] = {
		"\377\377\377\377\377\377\377\377\377\377\377\376",
		"\200\0\0\0\177\377\377\377\377\377\377\377",
		"77777777777\0",
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fixture *fixture = *state;

		buf_clear(&fixture->tar.bytes);
		tarball_entry(&fixture->tar, .name = "f", .raw_size = sizes[i]);
		check_refused(fixture, ERR_CORRUPT, "");
	}
}

static void a_file_is_no_parent(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "f");
	tarball_entry(&fixture->tar, .name = "f/x");
	check_refused(fixture, ERR_CORRUPT, "entry f/x: it lies below what is no directory");
}

static void the_root_is_a_directory(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = ".", .type = '2', .link = "/");
	check_refused(fixture, ERR_CORRUPT, "entry .: the root is no directory");
}

static void names_are_not_longer_than_files_have_them(void **state)
{
	struct fixture *fixture = *state;
	char name[257];

	memset(name, 'n', 256);
	name[256] = '\0';
	tarball_pax(&fixture->tar, "path", str_of(name));
	tarball_entry(&fixture->tar, .name = "x");
	check_refused(fixture, ERR_CORRUPT, "a name is longer than 255 bytes");
}

static void trees_are_not_deeper_than_we_can_walk(void **state)
{
	struct fixture *fixture = *state;
	char name[2 * 300];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '/' : 'd';
	tarball_pax(&fixture->tar, "path", (struct str){name, sizeof(name)});
	tarball_entry(&fixture->tar, .name = "x");
	check_refused(fixture, ERR_LIMIT, "nested deeper than 256");
}

static void a_name_ends_at_its_nul(void **state)
{
	struct fixture *fixture = *state;

	tarball_pax(&fixture->tar, "path", STR("a\0/../../x"));
	tarball_entry(&fixture->tar, .name = "y");
	unpack(fixture);
	check_tree(fixture, "a 100644 0:0 @0.000000000 0 " EMPTY "\n");
}

static void truncation_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	struct memory_source source;
	struct err err = {0};

	tarball_entry(&fixture->tar, .name = "f", .data = STR("hi"));
	for (size_t len = 1; len < fixture->tar.bytes.len; len += 100) {
		memory_source_init(&source, (struct str){fixture->tar.bytes.ptr, len}, 0);
		check_err(unpack_tar(fixture->tree, &source.source, NULL, &err), &err, ERR_CORRUPT);
	}
}

static void what_others_compress_is_told_from_damage(void **state)
{
	struct fixture *fixture = *state;
	struct err err = {0};

	check_ok(buf_add(&fixture->tar.bytes, STR("BZh91AY&SY"), &err), &err);
	check_refused(fixture, ERR_UNSUPPORTED, "compressed by bzip2, which is not read");
	buf_clear(&fixture->tar.bytes);
	check_ok(buf_add(&fixture->tar.bytes, STR("\xfd\x37zXZ"), &err), &err);
	check_refused(fixture, ERR_UNSUPPORTED, "compressed by xz, which is not read");
	buf_clear(&fixture->tar.bytes);
	tarball_entry(&fixture->tar, .name = "BZh9 is a name");
	unpack(fixture);
}

static void a_symlinks_target_has_the_length_that_linux_takes(void **state)
{
	struct fixture *fixture = *state;
	char target[PATH_MAX + 1];

	memset(target, 't', sizeof(target) - 1);
	target[PATH_MAX] = '\0';
	tarball_pax(&fixture->tar, "linkpath", str_of(target));
	tarball_entry(&fixture->tar, .name = "l", .type = '2', .link = "t");
	check_refused(fixture, ERR_CORRUPT, "entry l: a symlink whose target is too long");
	buf_clear(&fixture->tar.bytes);
	target[PATH_MAX - 1] = '\0';
	tarball_pax(&fixture->tar, "linkpath", str_of(target));
	tarball_entry(&fixture->tar, .name = "l", .type = '2', .link = "t");
	unpack(fixture);
}

static void a_wrong_header_checksum_is_noticed(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "f");
	tarball_entry(&fixture->tar, .name = "g");
	fixture->tar.bytes.ptr[512 + 100] ^= 1;
	check_refused(fixture, ERR_CORRUPT, "tar: ");
}

static void other_archives_are_no_tars(void **state)
{
	static const char *const bytes[] = {"PK\3\4\24\0\0\0", "070701", "!<arch>\n", "hello"};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct fixture *fixture = *state;
		struct memory_source source;
		struct err err = {0};

		memory_source_init(&source, str_of(bytes[i]), 0);
		check_err(unpack_tar(fixture->tree, &source.source, NULL, &err), &err, ERR_CORRUPT);
	}
}

static void the_ceiling_of_bytes_holds(void **state)
{
	const struct unpack_limits limits = {.max_bytes = 2048};
	struct fixture *fixture = *state;
	struct err err = {0};

	tarball_entry(&fixture->tar, .name = "f", .data = STR("hi"));
	check_ok(unpack_with(fixture, &limits, 0, &err), &err);
	tarball_end(&fixture->tar); /* padding counts */
	check_err(unpack_with(fixture, &limits, 512, &err), &err, ERR_LIMIT);
}

static void the_ceiling_of_entries_holds(void **state)
{
	const struct unpack_limits limits = {.max_entries = 3};
	struct fixture *fixture = *state;
	struct err err = {0};

	tarball_entry(&fixture->tar, .name = "f", .data = STR("hi"));
	tarball_entry(&fixture->tar, .name = "f", .data = STR("hi"));
	tarball_entry(&fixture->tar, .name = "f", .data = STR("hi"));
	check_ok(unpack_with(fixture, &limits, 0, &err), &err);
	buf_clear(&fixture->tar.bytes);
	tarball_entry(&fixture->tar, .name = "many/that/are/implied");
	check_err(unpack_with(fixture, &limits, 0, &err), &err, ERR_LIMIT);
	buf_clear(&fixture->tar.bytes);
	for (int i = 0; i < 4; i++)
		tarball_entry(&fixture->tar, .name = ".wh..wh.x");
	check_err(unpack_with(fixture, &limits, 0, &err), &err, ERR_LIMIT);
}

static int failing_read(struct source *source, struct str *out, struct err *err)
{
	(void)source;
	(void)out;
	return err_set(err, ERR_REMOTE, "the peer went away");
}

static void the_sources_own_words_come_through(void **state)
{
	struct fixture *fixture = *state;
	struct source source = {failing_read};
	struct err err = {0};

	check_err(unpack_tar(fixture->tree, &source, NULL, &err), &err, ERR_REMOTE);
	assert_string_equal(err.text, "the peer went away");
}

static void any_step_of_the_source_gives_the_same_tree(void **state)
{
	struct fixture *fixture = *state;
	static char data[3000];
	struct err err;

	memset(data, 'd', sizeof(data));
	tarball_pax(&fixture->tar, "path", STR("n\xc3\xa4me"));
	tarball_entry(&fixture->tar, .name = "f", .data = {data, sizeof(data)});
	for (size_t step = 1; step < 1200; step += 333) {
		check_ok(unpack_with(fixture, NULL, step, &err), &err);
		assert_int_equal(stat_of(fixture, "n\xc3\xa4me").st_size, sizeof(data));
	}
}

/* Whatever file system there is, it has no larger files now; 0 gives it back its own. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes ? bytes : limit.rlim_max;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_file_beyond_the_file_system_is_said_to_be_that(void **state)
{
	struct fixture *fixture = *state;
	static char data[5000];

	tarball_entry(&fixture->tar, .name = "data", .data = {data, sizeof(data)});
	limit_files(4096);
	check_refused(fixture, ERR_UNSUPPORTED, "entry data: it has 5000 bytes");
	buf_clear(&fixture->tar.bytes);
	tarball_pax(&fixture->tar, "GNU.sparse.size", STR("70000"));
	tarball_pax(&fixture->tar, "GNU.sparse.numblocks", STR("1"));
	tarball_pax(&fixture->tar, "GNU.sparse.map", STR("0,1"));
	tarball_entry(&fixture->tar, .name = "holes", .data = STR("x"));
	check_refused(fixture, ERR_UNSUPPORTED, "entry holes: it has 70000 bytes");
	limit_files(0);
}

static void an_acl_of_an_unknown_version_is_not_held(void **state)
{
	struct fixture *fixture = *state;

	tarball_pax(&fixture->tar, "SCHILY.xattr.system.posix_acl_access", STR("\001\000\000\000"));
	tarball_entry(&fixture->tar, .name = "f");
	check_refused(fixture, ERR_UNSUPPORTED, "does not hold its xattr system.posix_acl_access");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unpack_test(absolute_names_start_at_the_trees_root),
		unpack_test(names_that_climb_are_refused),
		unpack_test(a_pax_path_is_judged_like_any_name),
		unpack_test(a_gnu_long_name_is_judged_like_any_name),
		unpack_test(a_parent_that_climbs_is_refused),
		unpack_test(a_chain_that_climbs_is_refused),
		unpack_test(a_symlink_that_climbs_may_be_there),
		unpack_test(an_absolute_parent_is_followed_inside),
		unpack_test(a_symlink_is_replaced_and_not_written_through),
		unpack_test(loops_of_symlinks_end),
		unpack_test(hard_links_to_the_outside_are_refused),
		unpack_test(hard_links_through_a_symlink_to_the_outside_are_refused),
		unpack_test(a_hard_link_to_a_symlink_is_the_symlink),
		unpack_test(hard_links_to_nothing_are_refused),
		unpack_test(hard_links_to_directories_are_refused),
		unpack_test(a_hard_link_cannot_eat_its_target),
		unpack_test(whiteouts_that_climb_are_refused),
		unpack_test(whiteouts_through_a_symlink_to_the_outside_are_refused),
		unpack_test(whiteouts_of_dots_are_refused),
		unpack_test(nothing_lies_below_a_whiteout),
		unpack_test(the_private_files_of_aufs_are_ignored),
		unpack_test(device_zero_is_no_way_to_a_whiteout),
		unpack_test(owners_beyond_the_range_are_refused),
		unpack_test(base_256_numbers_are_read),
		unpack_test(negative_and_huge_sizes_are_refused),
		unpack_test(a_file_is_no_parent),
		unpack_test(the_root_is_a_directory),
		unpack_test(names_are_not_longer_than_files_have_them),
		unpack_test(trees_are_not_deeper_than_we_can_walk),
		unpack_test(a_name_ends_at_its_nul),
		unpack_test(truncation_is_noticed),
		unpack_test(what_others_compress_is_told_from_damage),
		unpack_test(a_symlinks_target_has_the_length_that_linux_takes),
		unpack_test(a_wrong_header_checksum_is_noticed),
		unpack_test(other_archives_are_no_tars),
		unpack_test(the_ceiling_of_bytes_holds),
		unpack_test(the_ceiling_of_entries_holds),
		unpack_test(a_file_beyond_the_file_system_is_said_to_be_that),
		unpack_test(an_acl_of_an_unknown_version_is_not_held),
		unpack_test(the_sources_own_words_come_through),
		unpack_test(any_step_of_the_source_gives_the_same_tree),
	};

	if (geteuid() != 0)
		return 125; /* owners and devices are root's to make */
	return cmocka_run_group_tests_name("layers/unpack_hostile", tests, NULL, NULL);
}
