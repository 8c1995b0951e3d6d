/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_index_priv.h"

#include "layers/base/fd.h"
#include "tests/layers/store_fixture.h"
#include "tests/layers/tarball.h"

#include <dirent.h>
#include <fcntl.h>
#include <zstd.h>

/* A tar in the making, and where it is written. */
struct tars {
	struct store_fixture *fixture;
	struct tarball tar;
	char path[64];
};

static int setup(void **state)
{
	static struct tars tars;
	void *fixture = NULL;

	if (store_fixture_open(&fixture) != 0)
		return -1;
	tars.fixture = fixture;
	tarball_init(&tars.tar);
	(void)snprintf(tars.path, sizeof(tars.path), "%s/a.tar", tars.fixture->parent);
	*state = &tars;
	return 0;
}

static int teardown(void **state)
{
	struct tars *tars = *state;
	void *fixture = tars->fixture;

	tarball_done(&tars->tar);
	return store_fixture_close(&fixture);
}

static void write_bytes(const struct tars *tars, struct str bytes)
{
	auto_close int fd = open(tars->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, bytes.ptr, bytes.len, &err), &err);
}

static int open_index(const struct tars *tars, struct tar_index **out, struct err *err)
{
	const struct tar_source source = {.store = tars->fixture->store,
					  .path = str_of(tars->path)};

	return tar_index_open(&source, out, err);
}

static int open_tar(struct tars *tars, struct tar_index **out, struct err *err)
{
	tarball_end(&tars->tar);
	write_bytes(tars, buf_str(&tars->tar.bytes));
	return open_index(tars, out, err);
}

static void check_content(const struct tar_index *index, const char *name, const char *content)
{
	auto_buf struct buf text = BUF_INIT(1000);
	struct err err = {0};

	check_ok(tar_index_read(index, str_of(name), &text, &err), &err);
	assert_string_equal(text.ptr ? text.ptr : "", content);
}

static void check_missing(const struct tar_index *index, const char *name)
{
	struct tar_file file;
	struct err err = {0};

	assert_int_equal(tar_index_find(index, str_of(name), &file, &err), 0);
}

static void files_are_found_by_name_wherever_they_lie(void **state)
{
	struct tars *tars = *state;
	AUTO(tar_index) struct tar_index *index = NULL;
	char long_name[300];
	struct err err = {0};

	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	tarball_entry(&tars->tar, .name = "z/last", .data = STR("z"));
	tarball_entry(&tars->tar, .name = "./dot//doubled", .data = STR("d"));
	tarball_pax(&tars->tar, "path", str_of(long_name));
	tarball_entry(&tars->tar, .name = "short", .data = STR("l"));
	tarball_entry(&tars->tar, .name = "dir", .type = '5');
	tarball_entry(&tars->tar, .name = "empty");
	tarball_entry(&tars->tar, .name = "/a", .data = STR("a"));
	check_ok(open_tar(tars, &index, &err), &err);
	check_content(index, "z/last", "z");
	check_content(index, "dot/doubled", "d");
	check_content(index, "./dot//doubled", "d"); /* as a manifest.json may spell it */
	check_missing(index, "z/../a");
	check_content(index, long_name, "l");
	check_content(index, "empty", "");
	check_content(index, "a", "a");
	check_missing(index, "dir");
	check_missing(index, "short");
	check_missing(index, "");
}

/* As docker save wrote layers that two images share. */
static void links_lead_to_files_of_the_archive_alone(void **state)
{
	struct tars *tars = *state;
	AUTO(tar_index) struct tar_index *index = NULL;
	struct tar_file file;
	struct err err = {0};

	tarball_entry(&tars->tar, .name = "b/layer.tar", .type = '2', .link = "../a/layer.tar");
	tarball_entry(&tars->tar, .name = "a/layer.tar", .data = STR("layer"));
	tarball_entry(&tars->tar, .name = "hard", .type = '1', .link = "b/layer.tar");
	tarball_entry(&tars->tar, .name = "out", .type = '2', .link = "../../etc/passwd");
	tarball_entry(&tars->tar, .name = "root", .type = '2', .link = "/etc/passwd");
	tarball_entry(&tars->tar, .name = "nowhere", .type = '2', .link = "missing");
	tarball_entry(&tars->tar, .name = "x", .type = '2', .link = "y");
	tarball_entry(&tars->tar, .name = "y", .type = '2', .link = "x");
	tarball_entry(&tars->tar, .name = "c/../climbs", .data = STR("c"));
	tarball_entry(&tars->tar, .name = "fifo", .type = '6');
	check_ok(open_tar(tars, &index, &err), &err);
	check_content(index, "b/layer.tar", "layer");
	check_content(index, "hard", "layer");
	check_missing(index, "out");
	check_missing(index, "root");
	check_missing(index, "nowhere");
	check_missing(index, "climbs");
	check_missing(index, "fifo");
	check_err(tar_index_find(index, STR("x"), &file, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "link without end"));
}

static void two_files_of_one_name_are_refused(void **state)
{
	struct tars *tars = *state;
	AUTO(tar_index) struct tar_index *index = NULL;
	struct err err = {0};

	tarball_entry(&tars->tar, .name = "index.json", .data = STR("{}"));
	tarball_entry(&tars->tar, .name = "./index.json", .data = STR("[]"));
	check_err(open_tar(tars, &index, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "index.json twice"));
}

static void damaged_archives_are_corrupt(void **state)
{
	struct tars *tars = *state;
	AUTO(tar_index) struct tar_index *index = NULL;
	struct err err = {0};

	write_bytes(tars, STR("this is no tar but a letter to somebody"));
	check_err(open_index(tars, &index, &err), &err, ERR_CORRUPT);
	tarball_entry(&tars->tar, .name = "big", .data = STR("few"), .raw_size = "77777777777 ");
	check_err(open_tar(tars, &index, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "ends early"));
	tarball_done(&tars->tar);
	tarball_init(&tars->tar);
	tarball_entry(&tars->tar, .name = "minus", .data = STR("few"),
		      .raw_size = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf0");
	check_err(open_tar(tars, &index, &err), &err, ERR_CORRUPT);
	write_bytes(tars, STR("\x1f\x8b\x08 and no gzip stream behind it"));
	check_err(open_index(tars, &index, &err), &err, ERR_CORRUPT);
	write_bytes(tars, STR(""));
	check_ok(open_index(tars, &index, &err), &err);
	check_missing(index, "index.json");
}

static void what_only_others_inflate_is_told(void **state)
{
	struct tars *tars = *state;
	AUTO(tar_index) struct tar_index *index = NULL;
	struct err err = {0};

	write_bytes(tars, STR("BZh91AY&SY"));
	check_err(open_index(tars, &index, &err), &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "bzip2 -dc"));
	write_bytes(tars, STR("\xfd\x37zXZ\0\0\4"));
	check_err(open_index(tars, &index, &err), &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "xz -dc"));
}

static void what_is_no_file_is_told(void **state)
{
	struct tars *tars = *state;
	struct tar_source source = {.store = tars->fixture->store};
	AUTO(tar_index) struct tar_index *index = NULL;
	struct err err = {0};

	source.path = STR("/nowhere/a.tar");
	check_err(tar_index_open(&source, &index, &err), &err, ERR_NOT_FOUND);
	source.path = str_of(tars->fixture->parent);
	check_err(tar_index_open(&source, &index, &err), &err, ERR_INVALID);
	source.path = STR("-");
	check_err(tar_index_open(&source, &index, &err), &err, ERR_INVALID);
}

/* tmp/ of the store, in which nothing may stay. */
static size_t count_staged(const struct tars *tars)
{
	auto_dir DIR *dir = NULL;
	struct err err = {0};
	size_t count = 0;
	const struct dirent *entry;

	check_ok(fd_open_dir(store_dirfd(tars->fixture->store, STORE_TMP), ".", &dir, &err), &err);
	while ((entry = readdir(dir)))
		count += !fd_is_dots(entry->d_name);
	return count;
}

/* Skippable frame first, two frames behind it, and a tail that is no stream. */
static void compressed_streams_are_staged_without_a_name(void **state)
{
	struct tars *tars = *state;
	struct tar_source source = {.store = tars->fixture->store, .path = STR("-")};
	AUTO(tar_index) struct tar_index *index = NULL;
	char frames[4096] = "\x50\x2a\x4d\x18\x04\x00\x00\x00skip";
	size_t len = 12;
	int ends[2];
	struct err err = {0};

	tarball_entry(&tars->tar, .name = "a", .data = STR("content"));
	tarball_end(&tars->tar);
	for (size_t half = 0; half < 2; half++) {
		size_t n = tars->tar.bytes.len / 2;

		len += ZSTD_compress(frames + len, sizeof(frames) - len,
				     tars->tar.bytes.ptr + half * n, n, 3);
	}
	len += 512; /* zeros: padding that a tool put behind */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	check_ok(fd_write_all(ends[1], frames, len, &err), &err);
	assert_int_equal(close(ends[1]), 0);
	source.streamfd = ends[0];
	check_ok(tar_index_open(&source, &index, &err), &err);
	assert_int_equal(close(ends[0]), 0);
	check_content(index, "a", "content");
	assert_int_equal(count_staged(tars), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_found_by_name_wherever_they_lie, setup,
						teardown),
		cmocka_unit_test_setup_teardown(links_lead_to_files_of_the_archive_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(two_files_of_one_name_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_archives_are_corrupt, setup, teardown),
		cmocka_unit_test_setup_teardown(what_only_others_inflate_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(compressed_streams_are_staged_without_a_name, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("registry/tar_index", tests, NULL, NULL);
}
