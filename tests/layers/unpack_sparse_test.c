/* SPDX-License-Identifier: Apache-2.0 */
/* Files with holes, as other programs write them, and maps that were made to do harm. */
#include "tests/layers/unpacking.h"

#include <fcntl.h>
#include <unistd.h>

#define BLOCK ((size_t)512)
#define MAPS_MAX ((size_t)16 << 20)

/* GNU's format 1.0: the map is at the front of the data. */
static void add_sparse(struct fixture *fixture, const char *size, struct str map, struct str data)
{
	auto_buf struct buf body = BUF_INIT(MAPS_MAX);
	static const char zeros[BLOCK];
	struct err err;

	check_ok(buf_add(&body, map, &err), &err);
	check_ok(buf_add(&body, (struct str){zeros, (BLOCK - map.len % BLOCK) % BLOCK}, &err),
		 &err);
	check_ok(buf_add(&body, data, &err), &err);
	tarball_pax(&fixture->tar, "GNU.sparse.major", STR("1"));
	tarball_pax(&fixture->tar, "GNU.sparse.minor", STR("0"));
	tarball_pax(&fixture->tar, "GNU.sparse.name", STR("f"));
	tarball_pax(&fixture->tar, "GNU.sparse.realsize", str_of(size));
	tarball_entry(&fixture->tar, .name = "x", .data = buf_str(&body));
}

static void check_map_refused(void **state, const char *size, const char *map, const char *words)
{
	struct fixture *fixture = *state;

	add_sparse(fixture, size, str_of(map), STR("hihi"));
	check_refused(fixture, ERR_CORRUPT, words);
	assert_int_equal(unpacking_teardown(state) + unpacking_setup(state), 0);
}

static void maps_that_make_no_sense_are_refused(void **state)
{
	check_map_refused(state, "100000", "2\n8192\n2\n4096\n2\n", "malformed"); /* falls */
	check_map_refused(state, "100000", "2\n4096\n3\n4097\n1\n", "malformed"); /* overlaps */
	check_map_refused(state, "4098", "1\n4096\n4\n", "malformed");            /* outside */
	check_map_refused(state, "-5", "1\n0\n4\n", "malformed");
	check_map_refused(state, "100000", "1\n4096\n5\n", "map"); /* more than the data */
	check_map_refused(state, "100000", "1\n9223372036854775807\n4\n", "");
	check_map_refused(state, "100000", "1\n-4096\n4\n", "");
	check_map_refused(state, "100000", "1\n4096\n-4\n", "");
	check_map_refused(state, "100000", "x\n", "");
	check_map_refused(state, "100000", "9\n4096\n", "");
}

static void a_map_of_millions_is_refused(void **state)
{
	auto_buf struct buf map = BUF_INIT(MAPS_MAX);
	struct fixture *fixture = *state;
	struct err err;

	check_ok(buf_addf(&map, &err, "2000000\n"), &err);
	for (size_t i = 0; i < 2000000; i++)
		check_ok(buf_add(&map, STR("0\n0\n"), &err), &err);
	add_sparse(fixture, "100000", buf_str(&map), STR(""));
	tarball_end(&fixture->tar);
	check_err(unpack_with(fixture, NULL, (size_t)256 * 1024, &err), &err, ERR_LIMIT);
	assert_string_equal(err.text, "the headers of an entry are too large");
}

/* Whoever skips data reads it where headers are read, and it is as long as it likes. */
static void data_that_nobody_wants_is_no_header(void **state)
{
	struct fixture *fixture = *state;
	auto_free char *data = calloc(1, MAPS_MAX);
	struct err err;

	tarball_entry(&fixture->tar, .name = ".wh.gone", .data = {data, MAPS_MAX});
	tarball_entry(&fixture->tar, .name = "f");
	check_ok(unpack_with(fixture, NULL, (size_t)256 * 1024, &err), &err);
	assert_int_equal(stat_of(fixture, "f").st_size, 0);
}

static void files_larger_than_any_are_refused(void **state)
{
	struct fixture *fixture = *state;

	add_sparse(fixture, "17592186044417", STR("1\n0\n4\n"), STR("hihi"));
	check_refused(fixture, ERR_UNSUPPORTED,
		      "entry f: it has 17592186044417 bytes, and no file may have more than "
		      "17592186044416");
}

static void only_data_count_for_the_ceiling(void **state)
{
	const struct unpack_limits limits = {.max_bytes = 16384};
	struct fixture *fixture = *state;
	struct err err;

	for (int i = 0; i < 3; i++)
		add_sparse(fixture, "1000000000000", STR("1\n999999999996\n4\n"), STR("hihi"));
	check_ok(unpack_with(fixture, &limits, 0, &err), &err);
	assert_int_equal(stat_of(fixture, "f").st_size, 1000000000000);
	assert_true(stat_of(fixture, "f").st_blocks <= 16);
}

/* Holes at the front, in the middle, at the end, of all, of nothing. */
static void holes_are_where_the_map_has_them(void **state)
{
	static const struct {
		const char *size;
		const char *map;
		const char *data;
		off_t at;
		blkcnt_t blocks;
	} cases[] = {
		{"1048576", "1\n0\n4\n", "hihi", 0, 8},
		{"1048576", "1\n1048576\n0\n", "", 0, 0},
		{"1048580", "1\n1048576\n4\n", "hihi", 1048576, 8},
		{"3000000", "2\n4096\n2\n2000000\n2\n", "hihi", 4096, 16},
		{"100", "1\n50\n4\n", "hihi", 50, 8},
		{"0", "1\n0\n0\n", "", 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *fixture = *state;
		char bytes[5] = "";
		size_t n = strlen(cases[i].data);
		auto_close int fd = -1;

		add_sparse(fixture, cases[i].size, str_of(cases[i].map), str_of(cases[i].data));
		unpack(fixture);
		fd = openat(fixture->tree, "f", O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_true(pread(fd, bytes, n < 2 ? n : 2, cases[i].at) >= 0);
		assert_string_equal(bytes, n ? "hi" : "");
		assert_int_equal(stat_of(fixture, "f").st_blocks, cases[i].blocks);
		assert_int_equal(unpacking_teardown(state) + unpacking_setup(state), 0);
	}
}

/* What a writer of tars rounded up to data is no data. */
static void blocks_of_zeros_in_a_sparse_file_are_holes(void **state)
{
	static char data[65536];
	struct fixture *fixture = *state;
	struct err err;

	data[9000] = 'x';
	data[65535] = 'y';
	add_sparse(fixture, "10000000", STR("1\n131072\n65536\n"),
		   (struct str){data, sizeof(data)});
	tarball_entry(&fixture->tar, .name = "full", .data = {data, sizeof(data)});
	for (size_t step = 0; step < 12000; step += 5000) {
		check_ok(unpack_with(fixture, NULL, step, &err), &err);
		assert_int_equal(stat_of(fixture, "f").st_size, 10000000);
		assert_int_equal(stat_of(fixture, "f").st_blocks, 16);
		assert_int_equal(stat_of(fixture, "full").st_blocks, 128);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unpack_test(maps_that_make_no_sense_are_refused),
		unpack_test(a_map_of_millions_is_refused),
		unpack_test(data_that_nobody_wants_is_no_header),
		unpack_test(files_larger_than_any_are_refused),
		unpack_test(only_data_count_for_the_ceiling),
		unpack_test(holes_are_where_the_map_has_them),
		unpack_test(blocks_of_zeros_in_a_sparse_file_are_holes),
	};

	if (geteuid() != 0)
		return 125; /* owners are root's to set */
	return cmocka_run_group_tests_name("layers/unpack_sparse", tests, NULL, NULL);
}
