/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as other tools make them, from their bytes to their trees. */
#include "layers/layer.h"
#include "layers/receive.h"
#include "tests/layers/blobs.h"
#include "tests/layers/packing.h"
#include "tests/layers/store_fixture.h"
#include "tests/layers/tarball.h"

#include <fcntl.h>
#include <sys/stat.h>

#define PACKED_MAX ((size_t)16 * 1024 * 1024)
#define TAR_BLOCK ((size_t)512)

static void make_tar(struct tarball *tar)
{
	tarball_init(tar);
	tarball_entry(tar, .name = "etc", .type = '5');
	tarball_entry(tar, .name = "etc/hosts", .data = STR("127.0.0.1 localhost\n"));
	tarball_entry(tar, .name = "empty", .data = STR(""));
	tarball_entry(tar, .name = "last", .data = STR("the end\n"));
}

static void check_file(struct store *store, const struct digest *diff_id, const char *name,
		       struct str content)
{
	char hex[DIGEST_HEX_MAX];
	char path[256];
	char bytes[256];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", digest_hex(diff_id, hex), name);
	fd = openat(store_dirfd(store, STORE_TREES), path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), content.len);
	assert_memory_equal(bytes, content.ptr, content.len);
}

/* In small pieces and in large ones; then read from the store again. */
static void check_received(struct store *store, struct str packed, struct str tar)
{
	AUTO(receive) struct receive *receive = NULL;
	auto_buf struct buf back = BUF_INIT(PACKED_MAX);
	struct buf_sink sink = BUF_SINK(&back);
	struct receive_spec spec = {.size = packed.len};
	struct err err = {0};

	digest_of(packed, &spec.blob);
	digest_of(tar, &spec.diff_id);
	check_ok(receive_open(store, &spec, &receive, &err), &err);
	for (size_t at = 0; at < packed.len; at += 37) {
		struct str piece = {packed.ptr + at, packed.len - at < 37 ? packed.len - at : 37};

		check_ok(receive_write(receive, piece, &err), &err);
	}
	check_ok(receive_finish(receive, &err), &err);
	check_ok(blob_check(store, &spec.blob, &err), &err);
	check_file(store, &spec.diff_id, "etc/hosts", STR("127.0.0.1 localhost\n"));
	check_file(store, &spec.diff_id, "last", STR("the end\n"));
	check_ok(layer_read(store, &spec.blob, UINT64_MAX, &sink.sink, &err), &err);
	assert_true(str_equal(buf_str(&back), tar));
}

/* pigz and others: a member for each piece, empty ones among them, odd headers. */
static void members_of_a_parallel_gzip_are_one_layer(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	struct tarball tar;
	struct str all;

	make_tar(&tar);
	tarball_end(&tar);
	all = buf_str(&tar.bytes);
	pack_gzip(&packed, STR(""));
	for (size_t at = 0; at < all.len; at += 700) {
		struct str piece = {all.ptr + at, all.len - at < 700 ? all.len - at : 700};

		if (at % 1400 == 0)
			pack_gzip_full_header(&packed, piece);
		else
			pack_gzip(&packed, piece);
		pack_gzip(&packed, STR(""));
	}
	check_received(fixture->store, buf_str(&packed), all);
	tarball_done(&tar);
}

static void what_pads_a_layer_is_part_of_its_digest_alone(void **state)
{
	static const struct str trailers[] = {STR("\0\0\0\0\0\0\0\0\0"), STR("garbage"),
					      STR("\x1f\x8b")};
	static void (*const packs[])(struct buf *, struct str) = {pack_gzip, pack_zstd};
	struct store_fixture *fixture = *state;
	struct tarball tar;

	make_tar(&tar);
	tarball_end(&tar);
	for (size_t i = 0; i < 6; i++) {
		auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
		struct err err = {0};

		packs[i % 2](&packed, buf_str(&tar.bytes));
		check_ok(buf_add(&packed, trailers[i / 2], &err), &err);
		check_received(fixture->store, buf_str(&packed), buf_str(&tar.bytes));
	}
	tarball_done(&tar);
}

/*
 * zstd:chunked of containers/storage: a frame for each header and each file's
 * data; behind them the compressed table of contents and a footer in skippable
 * frames, and one at the start, as pzstd writes it.
 */
static void a_chunked_zstd_layer_is_read_without_its_table(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	auto_buf struct buf table = BUF_INIT(PACKED_MAX);
	struct tarball tar;
	struct str all;

	make_tar(&tar);
	tarball_end(&tar);
	all = buf_str(&tar.bytes);
	pack_zstd_skippable(&packed, STR("\x10\0\0\0"));
	for (size_t at = 0; at < all.len; at += TAR_BLOCK)
		pack_zstd(&packed, (struct str){all.ptr + at, TAR_BLOCK});
	pack_zstd(&packed, STR(""));
	pack_zstd(&table, STR("{\"version\":1,\"entries\":[{\"type\":\"reg\",\"name\":\"x\"}]}"));
	pack_zstd_skippable(&packed, buf_str(&table));
	pack_zstd_skippable(&packed, STR("\x40\0\0\0\0\0\0\0\x30\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
					 "GnUlInUx"));
	check_received(fixture->store, buf_str(&packed), all);
	tarball_done(&tar);
}

/*
 * eStargz: a member an entry, landmark and table of contents as entries at the
 * end, and a footer that is an empty member with an extra field. The entries
 * are files like others to who does not know them, as in containerd.
 */
static void an_estargz_layer_keeps_its_table_and_landmark(void **state)
{
	static const struct str footer =
		STR("\x1f\x8b\x08\x04\0\0\0\0\0\xff\x1a\0SG\x16\0"
		    "0000000000000400STARGZ\x01\0\0\xff\xff\0\0\0\0\0\0\0\0");
	struct store_fixture *fixture = *state;
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	struct tarball tar;
	struct digest diff_id;
	struct err err = {0};

	make_tar(&tar);
	tarball_entry(&tar, .name = ".no.prefetch.landmark", .data = STR("\xf"));
	tarball_entry(&tar, .name = "stargz.index.json", .data = STR("{\"version\":1}"));
	tarball_end(&tar);
	for (size_t at = 0; at < tar.bytes.len; at += TAR_BLOCK)
		pack_gzip(&packed, (struct str){tar.bytes.ptr + at, TAR_BLOCK});
	assert_int_equal(footer.len, 51);
	check_ok(buf_add(&packed, footer, &err), &err);
	check_received(fixture->store, buf_str(&packed), buf_str(&tar.bytes));
	digest_of(buf_str(&tar.bytes), &diff_id);
	check_file(fixture->store, &diff_id, "stargz.index.json", STR("{\"version\":1}"));
	check_file(fixture->store, &diff_id, ".no.prefetch.landmark", STR("\xf"));
	tarball_done(&tar);
}

static void a_plain_tar_is_a_layer_too(void **state)
{
	struct store_fixture *fixture = *state;
	struct tarball tar;

	make_tar(&tar);
	tarball_end(&tar);
	check_received(fixture->store, buf_str(&tar.bytes), buf_str(&tar.bytes));
	tarball_done(&tar);
}

/* Its members say one thing, the tree must not be half of it. */
static void a_damaged_member_in_the_middle_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf packed = BUF_INIT(PACKED_MAX);
	AUTO(receive) struct receive *receive = NULL;
	struct receive_spec spec = {0};
	struct tarball tar;
	size_t second;
	struct err err = {0};

	make_tar(&tar);
	tarball_end(&tar);
	pack_gzip(&packed, (struct str){tar.bytes.ptr, TAR_BLOCK});
	second = packed.len;
	pack_gzip(&packed, (struct str){tar.bytes.ptr + TAR_BLOCK, tar.bytes.len - TAR_BLOCK});
	packed.ptr[second + 15] ^= 0x40;
	spec.size = packed.len;
	digest_of(buf_str(&packed), &spec.blob);
	digest_of(buf_str(&tar.bytes), &spec.diff_id);
	check_ok(receive_open(fixture->store, &spec, &receive, &err), &err);
	check_ok(receive_write(receive, buf_str(&packed), &err), &err);
	check_err(receive_finish(receive, &err), &err, ERR_CORRUPT);
	assert_int_equal(tree_find(fixture->store, &spec.diff_id, &err), 0);
	tarball_done(&tar);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(members_of_a_parallel_gzip_are_one_layer),
		STORE_TEST(what_pads_a_layer_is_part_of_its_digest_alone),
		STORE_TEST(a_chunked_zstd_layer_is_read_without_its_table),
		STORE_TEST(an_estargz_layer_keeps_its_table_and_landmark),
		STORE_TEST(a_plain_tar_is_a_layer_too),
		STORE_TEST(a_damaged_member_in_the_middle_is_corrupt),
	};

	return cmocka_run_group_tests_name("layers/foreign", tests, NULL, NULL);
}
