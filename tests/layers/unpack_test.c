/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/unpacking.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>

static void every_kind_of_file_comes_out_as_it_went_in(void **state)
{
	struct fixture *fixture = *state;
	static const char cap[20] = "\1\0\0\2\0\40\0\0";
	static const char cap3[24] = "\1\0\0\3\0\40\0\0";
	struct tarball *tar = &fixture->tar;

	tarball_entry(tar, .name = "./", .type = '5', .mode = 0711, .uid = 3, .mtime = 99);
	tarball_entry(tar, .name = "./a/", .type = '5', .mode = 02775, .gid = 7, .mtime = 10);
	tarball_pax(tar, "mtime", STR("20.000000123"));
	tarball_entry(tar, .name = "./a/su", .mode = 04755, .uid = 1, .gid = 2, .data = STR("hi"));
	tarball_entry(tar, .name = "./a/hard", .type = '1', .link = "./a/su");
	tarball_entry(tar, .name = "b", .type = '2', .link = "/no/where", .uid = 5, .mtime = 30);
	tarball_entry(tar, .name = "c", .type = '3', .mode = 0620, .major = 1, .minor = 3);
	tarball_entry(tar, .name = "d", .type = '4', .mode = 0660, .major = 7, .minor = 9);
	tarball_entry(tar, .name = "e", .type = '6', .mode = 0600);
	tarball_pax(tar, "SCHILY.xattr.security.capability", (struct str){cap, sizeof(cap)});
	tarball_pax(tar, "SCHILY.xattr.user.note", STR("x"));
	tarball_pax(tar, "SCHILY.xattr.trusted.overlay.opaque", STR("y"));
	tarball_pax(tar, "SCHILY.xattr.user.overlay.opaque", STR("y"));
	tarball_pax(tar, "SCHILY.xattr.trusted.x", STR("y"));
	tarball_entry(tar, .name = "f", .mode = 0755);
	tarball_pax(tar, "SCHILY.xattr.security.capability", (struct str){cap3, sizeof(cap3)});
	tarball_entry(tar, .name = "g", .mtime = 40);
	tarball_entry(tar, .name = "tmp/", .type = '5', .mode = 01777, .mtime = 50);
	unpack(fixture);
	check_tree(fixture, "a 042775 0:7 @10.000000000\n"
			    "a/hard 104755 1:2 @20.000000123 2 " HI "\n"
			    "a/su 104755 1:2 @20.000000123 2 " HI " linked to a/hard\n"
			    "b 120777 5:0 @30.000000000 -> /no/where\n"
			    "c 020620 0:0 @0.000000000 1:3\n"
			    "d 060660 0:0 @0.000000000 7:9\n"
			    "e 010600 0:0 @0.000000000 0:0\n"
			    "f 100755 0:0 @0.000000000 0 " EMPTY
			    " {security.capability=0100000200200000000000000000000000000000}"
			    " {user.note=78}\n"
			    "g 100644 0:0 @40.000000000 0 " EMPTY
			    " {security.capability=0100000200200000000000000000000000000000}\n"
			    "tmp 041777 0:0 @50.000000000\n");
	assert_int_equal(stat_of(fixture, ".").st_mode, S_IFDIR | 0711);
	assert_int_equal(stat_of(fixture, ".").st_uid, 3);
	assert_int_equal(stat_of(fixture, ".").st_mtime, 99);
}

static void names_come_through_byte_for_byte(void **state)
{
	static const char *const names[] = {"n\xc3\xa4me", "nfd-a\xcc\x88", "bad\xff\xfe", "a\nb",
					    "ascii"};
	locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
	struct fixture *fixture = *state;
	char shadow[8];

	assert_true(locale != (locale_t)0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(shadow, sizeof(shadow), "s%zu", i);
		tarball_entry(&fixture->tar, .name = names[i]); /* as ustar */
		tarball_pax(&fixture->tar, "path", str_of(names[i]));
		tarball_pax(&fixture->tar, "linkpath", str_of(names[i]));
		tarball_entry(&fixture->tar, .name = "x", .type = '2');
		tarball_pax(&fixture->tar, "linkpath", str_of(names[i]));
		tarball_entry(&fixture->tar, .name = shadow, .type = '1');
	}
	(void)uselocale(locale);
	unpack(fixture);
	(void)uselocale(LC_GLOBAL_LOCALE);
	freelocale(locale);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char target[16] = "";

		(void)snprintf(shadow, sizeof(shadow), "s%zu", i);
		assert_true(readlinkat(fixture->tree, names[i], target, sizeof(target) - 1) > 0);
		assert_string_equal(target, names[i]);
		assert_int_equal(stat_of(fixture, shadow).st_ino,
				 stat_of(fixture, names[i]).st_ino);
	}
}

static void long_names_and_long_paths_come_through(void **state)
{
	struct fixture *fixture = *state;
	auto_buf struct buf path = BUF_INIT((size_t)64 * 1024);
	char name[256];
	struct err err;
	auto_close int at = -1;

	memset(name, 'n', 255);
	name[255] = '\0';
	for (int i = 0; i < 40; i++) /* 10 KiB, more than the kernel takes at once */
		check_ok(buf_addf(&path, &err, "%s%s", i ? "/" : "", name), &err);
	tarball_pax(&fixture->tar, "path", buf_str(&path));
	tarball_entry(&fixture->tar, .name = "x", .data = STR("hi"));
	unpack(fixture);
	at = fcntl(fixture->tree, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < 39; i++) {
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	assert_int_equal(faccessat(at, name, R_OK, 0), 0);
}

static void the_umask_does_not_matter(void **state)
{
	struct fixture *fixture = *state;
	mode_t before = umask(0777);

	tarball_entry(&fixture->tar, .name = "a/", .type = '5', .mode = 0777);
	tarball_entry(&fixture->tar, .name = "a/f", .mode = 0666);
	tarball_entry(&fixture->tar, .name = "a/p", .type = '6', .mode = 0666);
	tarball_entry(&fixture->tar, .name = "implied/.wh.w");
	unpack(fixture);
	(void)umask(before);
	check_tree(fixture, "a 040777 0:0 @0.000000000\n"
			    "a/f 100666 0:0 @0.000000000 0 " EMPTY "\n"
			    "a/p 010666 0:0 @0.000000000 0:0\n"
			    "implied 040755 0:0 @0.000000000 {trusted.overlay.origin=}\n"
			    "implied/w 020000 0:0 @0.000000000 0:0\n");
}

static void gnu_long_names_are_read(void **state)
{
	struct fixture *fixture = *state;
	char name[201];

	memset(name, 'g', 200);
	name[200] = '\0';
	tarball_entry(&fixture->tar, .name = "././@LongLink", .type = 'L',
		      .data = {name, sizeof(name)});
	tarball_entry(&fixture->tar, .name = "short");
	tarball_entry(&fixture->tar, .name = "././@LongLink", .type = 'K',
		      .data = {name, sizeof(name)});
	tarball_entry(&fixture->tar, .name = "link", .type = '1', .link = "short");
	unpack(fixture);
	assert_int_equal(stat_of(fixture, name).st_nlink, 2);
}

static void directories_keep_their_times_in_any_order(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "a/b/", .type = '5', .mtime = 2);
	tarball_entry(&fixture->tar, .name = "a/", .type = '5', .mtime = 1);
	tarball_entry(&fixture->tar, .name = "z");
	tarball_entry(&fixture->tar, .name = "a/b/f1");
	tarball_entry(&fixture->tar, .name = "a/f2");
	tarball_entry(&fixture->tar, .name = "a/b/f1", .type = '2', .link = "x");
	tarball_entry(&fixture->tar, .name = "a/b/.wh.w");
	tarball_entry(&fixture->tar, .name = "implied/f");
	unpack(fixture);
	assert_int_equal(stat_of(fixture, "a").st_mtime, 1);
	assert_int_equal(stat_of(fixture, "a/b").st_mtime, 2);
	assert_int_equal(stat_of(fixture, "implied").st_mtime, 0);
	assert_int_equal(stat_of(fixture, "implied").st_mode, S_IFDIR | 0755);
	assert_int_equal(stat_of(fixture, ".").st_mtime, 0);
}

static void of_duplicates_the_later_wins(void **state)
{
	struct fixture *fixture = *state;

	tarball_entry(&fixture->tar, .name = "a", .data = STR("old"));
	tarball_entry(&fixture->tar, .name = "a", .data = STR("hi"));
	tarball_entry(&fixture->tar, .name = "b/", .type = '5');
	tarball_entry(&fixture->tar, .name = "b/deep/", .type = '5');
	tarball_entry(&fixture->tar, .name = "b/deep/f");
	tarball_entry(&fixture->tar, .name = "b", .data = STR("hi"));
	tarball_entry(&fixture->tar, .name = "c");
	tarball_entry(&fixture->tar, .name = "c/", .type = '5');
	tarball_entry(&fixture->tar, .name = "d/", .type = '5', .mode = 0700);
	tarball_entry(&fixture->tar, .name = "d/keep");
	tarball_entry(&fixture->tar, .name = "d/", .type = '5', .mode = 0750, .mtime = 3);
	tarball_entry(&fixture->tar, .name = "e", .type = '2', .link = "d");
	tarball_entry(&fixture->tar, .name = "e/", .type = '5');
	tarball_entry(&fixture->tar, .name = "f");
	tarball_entry(&fixture->tar, .name = "f", .type = '6');
	tarball_entry(&fixture->tar, .name = "g", .type = '1', .link = "f");
	tarball_entry(&fixture->tar, .name = "g", .type = '1', .link = "g");
	unpack(fixture);
	check_tree(fixture, "a 100644 0:0 @0.000000000 2 " HI "\n"
			    "b 100644 0:0 @0.000000000 2 " HI "\n"
			    "c 040755 0:0 @0.000000000 {trusted.overlay.opaque=79}\n"
			    "d 040750 0:0 @3.000000000\n"
			    "d/keep 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "e 040755 0:0 @0.000000000 {trusted.overlay.opaque=79}\n"
			    "f 010644 0:0 @0.000000000 0:0\n"
			    "g 010644 0:0 @0.000000000 0:0 linked to f\n");
}

static void check_whiteouts(struct fixture *fixture, bool backwards)
{
	static const struct tar_entry entries[] = {
		{.name = ".wh.gone"},
		{.name = ".wh.dir"},
		{.name = "dir/", .type = '5'},
		{.name = ".wh.file"},
		{.name = "file"},
		{.name = ".wh.void"},
		{.name = "void/.wh.x"},
		{.name = "opq/.wh..wh..opq"},
		{.name = "opq/", .type = '5'},
		{.name = "opq/new"},
		{.name = "only/.wh..wh..opq"},
		{.name = "link/.wh.y"},
		{.name = "link", .type = '2', .link = "opq"},
		{.name = "file/.wh.z"},
		{.name = "deep/er/.wh.w"},
	};
	const size_t count = sizeof(entries) / sizeof(entries[0]);

	for (size_t i = 0; i < count; i++)
		tarball_add(&fixture->tar, &entries[backwards ? count - 1 - i : i]);
	unpack(fixture);
	check_tree(fixture, "deep 040755 0:0 @0.000000000\n"
			    "deep/er 040755 0:0 @0.000000000 {trusted.overlay.origin=}\n"
			    "deep/er/w 020000 0:0 @0.000000000 0:0\n"
			    "dir 040755 0:0 @0.000000000 {trusted.overlay.opaque=79}\n"
			    "file 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "gone 020000 0:0 @0.000000000 0:0\n"
			    "link 120777 0:0 @0.000000000 -> opq\n"
			    "only 040755 0:0 @0.000000000 {trusted.overlay.opaque=79}\n"
			    "opq 040755 0:0 @0.000000000 {trusted.overlay.opaque=79}\n"
			    "opq/new 100644 0:0 @0.000000000 0 " EMPTY "\n"
			    "void 020000 0:0 @0.000000000 0:0\n");
}

static void whiteouts_hide_what_is_below(void **state)
{
	check_whiteouts(*state, false);
}

/* A tar that is no layer: its names are names, and its owners are root's. */
static void files_have_no_whiteouts_and_no_owners(void **state)
{
	struct fixture *fixture = *state;
	struct memory_source source;
	struct err err;

	tarball_entry(&fixture->tar, .name = "./", .type = '5', .mode = 0700, .uid = 5);
	tarball_entry(&fixture->tar, .name = "./d", .type = '5', .uid = 70000);
	tarball_entry(&fixture->tar, .name = "./d/a", .data = STR("hi"), .uid = 1, .gid = 2);
	tarball_entry(&fixture->tar, .name = "./d/.wh.a", .data = STR("hi"));
	tarball_entry(&fixture->tar, .name = "./d/.wh..wh..opq");
	tarball_entry(&fixture->tar, .name = "./.wh.x/b", .mode = 0600);
	tarball_end(&fixture->tar);
	memory_source_init(&source, buf_str(&fixture->tar.bytes), 7);
	check_ok(unpack_files(fixture->tree, &source.source, NULL, &err), &err);
	assert_int_equal(stat_of(fixture, "d/a").st_size, 2);
	assert_int_equal(stat_of(fixture, "d/a").st_uid, 0);
	assert_int_equal(stat_of(fixture, "d/a").st_gid, 0);
	assert_int_equal(stat_of(fixture, "d").st_uid, 0);
	assert_int_equal(stat_of(fixture, "d/.wh.a").st_size, 2);
	assert_int_equal(stat_of(fixture, "d/.wh..wh..opq").st_mode, S_IFREG | 0644);
	assert_int_equal(stat_of(fixture, ".wh.x/b").st_mode, S_IFREG | 0600);
}

static void whiteouts_mean_the_same_in_any_order(void **state)
{
	check_whiteouts(*state, true);
}

static void what_follows_the_end_is_read_and_ignored(void **state)
{
	struct fixture *fixture = *state;
	struct memory_source source;
	struct err err;

	tarball_entry(&fixture->tar, .name = "a");
	tarball_end(&fixture->tar);
	tarball_entry(&fixture->tar, .name = "b");
	memory_source_init(&source, buf_str(&fixture->tar.bytes), 100);
	check_ok(unpack_tar(fixture->tree, &source.source, NULL, &err), &err);
	assert_int_equal(source.rest.len, 0);
	check_tree(fixture, "a 100644 0:0 @0.000000000 0 " EMPTY "\n");
}

static void an_empty_tar_is_an_empty_tree(void **state)
{
	struct fixture *fixture = *state;
	struct memory_source source;
	struct err err;

	memory_source_init(&source, STR(""), 0);
	check_ok(unpack_tar(fixture->tree, &source.source, NULL, &err), &err);
	unpack(fixture);
	check_tree(fixture, "");
}

static void holes_stay_holes(void **state)
{
	char data[512 + 2] = "2\n1048576\n2\n300000000000\n0\n";
	struct fixture *fixture = *state;
	struct stat stat;

	tarball_pax(&fixture->tar, "GNU.sparse.major", STR("1"));
	tarball_pax(&fixture->tar, "GNU.sparse.minor", STR("0"));
	tarball_pax(&fixture->tar, "GNU.sparse.name", STR("log"));
	tarball_pax(&fixture->tar, "GNU.sparse.realsize", STR("300000000000"));
	data[512] = 'h';
	data[513] = 'i';
	tarball_entry(&fixture->tar, .name = "x", .data = {data, sizeof(data)});
	unpack(fixture);
	stat = stat_of(fixture, "log");
	assert_int_equal(stat.st_size, 300000000000);
	assert_true(stat.st_blocks < 64);
}

/* What is made below a directory with a default ACL is as the tar has it. */
static void default_acls_are_not_inherited(void **state)
{
	static const char acl[] = "\2\0\0\0\1\0\7\0\377\377\377\377\2\0\7\0\5\0\0\0"
				  "\4\0\5\0\377\377\377\377\20\0\7\0\377\377\377\377"
				  "\40\0\5\0\377\377\377\377";
	struct str value = {acl, sizeof(acl) - 1};
	struct fixture *fixture = *state;
	auto_buf struct buf list = BUF_INIT(LISTING_MAX);

	tarball_pax(&fixture->tar, "SCHILY.xattr.system.posix_acl_default", value);
	tarball_entry(&fixture->tar, .name = "a/", .type = '5');
	tarball_entry(&fixture->tar, .name = "a/b/", .type = '5');
	tarball_entry(&fixture->tar, .name = "a/b/f");
	tarball_pax(&fixture->tar, "SCHILY.xattr.system.posix_acl_access", value);
	tarball_entry(&fixture->tar, .name = "a/g", .mode = 0775);
	unpack(fixture);
	listing_add(fixture->tree, LISTING_NO_ROOT, &list);
	assert_non_null(strstr(list.ptr, "a 040755 0:0 @0.000000000 {system.posix_acl_default="));
	assert_non_null(strstr(list.ptr, "a/b 040755 0:0 @0.000000000\n"));
	assert_non_null(strstr(list.ptr, "a/b/f 100644 0:0 @0.000000000 0 " EMPTY "\n"));
	assert_non_null(strstr(list.ptr, "a/g 100775 0:0 @0.000000000 0 " EMPTY
					 " {system.posix_acl_access="));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unpack_test(every_kind_of_file_comes_out_as_it_went_in),
		unpack_test(names_come_through_byte_for_byte),
		unpack_test(long_names_and_long_paths_come_through),
		unpack_test(the_umask_does_not_matter),
		unpack_test(gnu_long_names_are_read),
		unpack_test(directories_keep_their_times_in_any_order),
		unpack_test(of_duplicates_the_later_wins),
		unpack_test(whiteouts_hide_what_is_below),
		unpack_test(whiteouts_mean_the_same_in_any_order),
		unpack_test(files_have_no_whiteouts_and_no_owners),
		unpack_test(what_follows_the_end_is_read_and_ignored),
		unpack_test(an_empty_tar_is_an_empty_tree),
		unpack_test(holes_stay_holes),
		unpack_test(default_acls_are_not_inherited),
	};

	if (geteuid() != 0)
		return 125; /* owners and devices are root's to make */
	return cmocka_run_group_tests_name("layers/unpack", tests, NULL, NULL);
}
