/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/layer.h"
#include "layers/proof.h"
#include "layers/receive.h"
#include "tests/layers/blobs.h"
#include "tests/layers/packing.h"
#include "tests/layers/store_fixture.h"
#include "tests/layers/tarball.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PACKED_MAX ((size_t)16 * 1024 * 1024)
#define BIG_FILE ((size_t)3 * 1024 * 1024) /* more than a chunk, and than a ring */

/* A layer with a small file, and a large one of bytes that do not compress. */
struct sample {
	struct tarball tar;
	struct buf packed;
	struct receive_spec spec;
};

static void sample_name(struct sample *sample)
{
	digest_of(buf_str(&sample->packed), &sample->spec.blob);
	digest_of(buf_str(&sample->tar.bytes), &sample->spec.diff_id);
	sample->spec.size = sample->packed.len;
}

static void sample_init(struct sample *sample, const char *bad_name)
{
	auto_free char *big = malloc(BIG_FILE);
	uint64_t seed = 7;

	assert_non_null(big);
	for (size_t i = 0; i < BIG_FILE; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		big[i] = (char)(seed >> 56);
	}
	*sample = (struct sample){.packed = BUF_INIT(PACKED_MAX)};
	tarball_init(&sample->tar);
	tarball_entry(&sample->tar, .name = "small", .data = STR("hi"));
	if (bad_name)
		tarball_entry(&sample->tar, .name = bad_name, .data = STR("out"));
	tarball_entry(&sample->tar, .name = "big", .data = {big, BIG_FILE});
	tarball_end(&sample->tar);
	pack_gzip(&sample->packed, buf_str(&sample->tar.bytes));
	sample_name(sample);
}

static void sample_done(struct sample *sample)
{
	tarball_done(&sample->tar);
	buf_done(&sample->packed);
}

static int receive_all(struct store *store, const struct sample *sample, size_t piece,
		       struct err *err)
{
	AUTO(receive) struct receive *receive = NULL;
	struct str rest = buf_str(&sample->packed);

	if (receive_open(store, &sample->spec, &receive, err) < 0)
		return -1;
	while (rest.len > 0) {
		struct str bytes = {rest.ptr, rest.len < piece ? rest.len : piece};

		if (receive_write(receive, bytes, err) < 0)
			return -1;
		rest.ptr += bytes.len;
		rest.len -= bytes.len;
	}
	return receive_finish(receive, err);
}

static void check_nothing_is_there(struct store *store)
{
	assert_int_equal(store_fixture_count(store, STORE_TREES), 0);
	assert_int_equal(store_fixture_count(store, STORE_TMP), 0);
	assert_int_equal(blob_count(store), 0);
}

static void check_is_there(struct store *store, const struct sample *sample)
{
	char hex[DIGEST_HEX_MAX];
	char path[DIGEST_HEX_MAX + 8];
	struct blob_info info;
	struct stat stat;
	struct err err = {0};

	assert_int_equal(blob_find(store, &sample->spec.blob, &info, &err), 1);
	assert_int_equal(info.size, sample->spec.size);
	check_ok(blob_check(store, &sample->spec.blob, &err), &err);
	assert_int_equal(tree_find(store, &sample->spec.diff_id, &err), 1);
	(void)snprintf(path, sizeof(path), "%s/big", digest_hex(&sample->spec.diff_id, hex));
	assert_int_equal(fstatat(store_dirfd(store, STORE_TREES), path, &stat, 0), 0);
	assert_int_equal(stat.st_size, BIG_FILE);
	assert_int_equal(store_fixture_count(store, STORE_TMP), 0);
}

static void a_layer_becomes_blob_and_tree_in_one_pass(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(receive_all(fixture->store, &sample, 16384, &err), &err);
	check_is_there(fixture->store, &sample);
	check_ok(receive_all(fixture->store, &sample, 1 << 20, &err), &err); /* once more */
	check_is_there(fixture->store, &sample);
	sample_done(&sample);
}

static void zstd_and_plain_layers_are_received_too(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;
	struct err err = {0};

	sample_init(&sample, NULL);
	buf_clear(&sample.packed);
	pack_zstd(&sample.packed, buf_str(&sample.tar.bytes));
	sample_name(&sample);
	check_ok(receive_all(fixture->store, &sample, 5000, &err), &err);
	check_is_there(fixture->store, &sample);

	buf_clear(&sample.packed);
	check_ok(buf_add(&sample.packed, buf_str(&sample.tar.bytes), &err), &err);
	sample_name(&sample);
	check_ok(receive_all(fixture->store, &sample, 5000, &err), &err);
	check_is_there(fixture->store, &sample);
	sample_done(&sample);
}

static void padding_behind_the_stream_belongs_to_the_blob(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;
	char zeros[1000] = {0};
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(buf_add(&sample.packed, (struct str){zeros, sizeof(zeros)}, &err), &err);
	sample_name(&sample);
	check_ok(receive_all(fixture->store, &sample, 999, &err), &err);
	check_is_there(fixture->store, &sample);
	sample_done(&sample);
}

static void what_is_odd_about_a_layer_is_reported(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(receive) struct receive *receive = NULL;
	struct receive_report report;
	struct sample sample;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(buf_add(&sample.packed, STR("12345"), &err), &err);
	sample_name(&sample);
	check_ok(receive_open(fixture->store, &sample.spec, &receive, &err), &err);
	check_ok(receive_write(receive, buf_str(&sample.packed), &err), &err);
	check_ok(receive_finish(receive, &err), &err);
	receive_report(receive, &report);
	assert_int_equal(report.behind, 5);
	assert_int_equal(report.size, sample.packed.len);
	assert_int_equal(report.tar_size, sample.tar.bytes.len);
	assert_false(receive_is_swollen(&report));
	sample_done(&sample);
}

static void a_layer_that_inflates_a_hundredfold_is_swollen_if_it_is_large(void **state)
{
	const uint64_t gib = (uint64_t)1 << 30;

	(void)state;
	assert_true(receive_is_swollen(&(struct receive_report){.size = 1, .tar_size = gib + 1}));
	assert_false(receive_is_swollen(&(struct receive_report){.size = 1, .tar_size = gib}));
	assert_false(receive_is_swollen(
		&(struct receive_report){.size = gib / 10, .tar_size = 10 * gib}));
	assert_true(receive_is_swollen(
		&(struct receive_report){.size = gib / 10 - 1, .tar_size = 10 * gib}));
}

static void check_refused(struct store *store, const struct sample *sample, enum err_kind kind,
			  const char *words)
{
	struct err err = {0};

	check_err(receive_all(store, sample, 16384, &err), &err, kind);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	check_nothing_is_there(store);
}

static void another_digest_is_corrupt_and_both_are_named(void **state)
{
	struct store_fixture *fixture = *state;
	char text[DIGEST_TEXT_MAX];
	struct sample sample;
	struct digest real;

	sample_init(&sample, NULL);
	real = sample.spec.blob;
	digest_of(STR("another blob"), &sample.spec.blob);
	check_refused(fixture->store, &sample, ERR_CORRUPT, digest_format(&real, text));
	check_refused(fixture->store, &sample, ERR_CORRUPT, digest_format(&sample.spec.blob, text));
	sample_done(&sample);
}

static void another_tar_is_corrupt_and_both_are_named(void **state)
{
	struct store_fixture *fixture = *state;
	char text[DIGEST_TEXT_MAX];
	struct sample sample;
	struct digest real;

	sample_init(&sample, NULL);
	real = sample.spec.diff_id;
	digest_of(STR("another tar"), &sample.spec.diff_id);
	check_refused(fixture->store, &sample, ERR_CORRUPT, digest_format(&real, text));
	check_refused(fixture->store, &sample, ERR_CORRUPT,
		      digest_format(&sample.spec.diff_id, text));
	sample_done(&sample);
}

static void another_size_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	sample.spec.size++;
	check_refused(fixture->store, &sample, ERR_CORRUPT, "announced");
	sample.spec.size -= 2;
	check_refused(fixture->store, &sample, ERR_CORRUPT, "announced");
	sample_done(&sample);
}

static void more_than_was_announced_is_refused_at_once(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(receive) struct receive *receive = NULL;
	struct sample sample;
	struct err err = {0};

	sample_init(&sample, NULL);
	sample.spec.size = 1000;
	check_ok(receive_open(fixture->store, &sample.spec, &receive, &err), &err);
	check_err(receive_write(receive, buf_str(&sample.packed), &err), &err, ERR_CORRUPT);
	sample_done(&sample);
}

static void bytes_damaged_on_the_way_are_told_from_a_bad_layer(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	sample.packed.ptr[sample.packed.len / 3] ^= 1;
	check_refused(fixture->store, &sample, ERR_CORRUPT, "expected sha256:");
	sample_name(&sample); /* now it is what was meant, and still no gzip */
	check_refused(fixture->store, &sample, ERR_CORRUPT, "gzip stream");
	sample_done(&sample);
}

static void a_stream_that_ends_early_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	sample.packed.len /= 2;
	sample_name(&sample);
	check_refused(fixture->store, &sample, ERR_CORRUPT, "gzip stream: it ends too early");
	sample_done(&sample);
}

static void a_tar_that_climbs_out_is_refused_by_name(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, "../outside");
	check_refused(fixture->store, &sample, ERR_CORRUPT, "../outside");
	sample_done(&sample);
}

static void a_bomb_stops_the_transfer(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	sample.spec.limits.max_bytes = (uint64_t)1024 * 1024;
	check_refused(fixture->store, &sample, ERR_LIMIT, "1048576");
	sample_done(&sample);
}

static void a_transfer_that_is_given_up_leaves_nothing(void **state)
{
	static const size_t parts[] = {0, 1, 3, 100000, (size_t)2 * 1024 * 1024};
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct receive *receive = NULL;
		struct str part = {sample.packed.ptr, parts[i]};
		struct err err = {0};

		check_ok(receive_open(fixture->store, &sample.spec, &receive, &err), &err);
		check_ok(receive_write(receive, part, &err), &err);
		receive_close(receive);
		check_nothing_is_there(fixture->store);
	}
	sample_done(&sample);
}

static void a_lost_tree_is_made_again_from_the_blob(void **state)
{
	struct store_fixture *fixture = *state;
	char hex[DIGEST_HEX_MAX];
	struct sample sample;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(receive_all(fixture->store, &sample, 1 << 20, &err), &err);
	check_ok(store_discard(fixture->store, store_dirfd(fixture->store, STORE_TREES),
			       digest_hex(&sample.spec.diff_id, hex), &err),
		 &err);
	assert_int_equal(tree_find(fixture->store, &sample.spec.diff_id, &err), 0);
	check_ok(receive_have_tree(fixture->store, &sample.spec, &err), &err);
	check_is_there(fixture->store, &sample);
	check_ok(receive_unpack_stored(fixture->store, &sample.spec, &err), &err);

	/* By another diff id it is no tree. */
	digest_of(STR("another tar"), &sample.spec.diff_id);
	check_err(receive_unpack_stored(fixture->store, &sample.spec, &err), &err, ERR_CORRUPT);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TREES), 1);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TMP), 0);
	sample_done(&sample);
}

/* The record of a look at it. */
static void record_tar(struct store *store, const struct digest *blob, struct str tar)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest digest;
	struct err err = {0};

	digest_of(tar, &digest);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(proof_put(meta, blob, &digest, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

/* Before anybody has looked at it, and after. */
static void a_blob_has_no_other_layers_tree(void **state)
{
	struct store_fixture *fixture = *state;
	auto_buf struct buf other = BUF_INIT(PACKED_MAX);
	struct sample sample;
	struct receive_spec thief;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(receive_all(fixture->store, &sample, 50000, &err), &err);
	check_ok(receive_have_tree(fixture->store, &sample.spec, &err), &err);
	thief = sample.spec;
	pack_gzip(&other, STR("another tar"));
	check_ok(blob_put(fixture->store, buf_str(&other), &thief.blob, &err), &err);
	check_err(receive_have_tree(fixture->store, &thief, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "the image's config says"));
	record_tar(fixture->store, &thief.blob, STR("another tar"));
	check_err(receive_have_tree(fixture->store, &thief, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "the image's config says"));
	sample_done(&sample);
}

static void either_cancel_stops_it_wherever_the_bytes_come_from(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;
	struct cancel cancel;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	sample.spec.cancel = &cancel;
	check_err(receive_all(fixture->store, &sample, 1000, &err), &err, ERR_CANCELLED);
	sample.spec.cancel = NULL;
	sample.spec.cancel_too = &cancel;
	check_err(receive_all(fixture->store, &sample, 1000, &err), &err, ERR_CANCELLED);
	check_nothing_is_there(fixture->store);

	check_ok(blob_put(fixture->store, buf_str(&sample.packed), &sample.spec.blob, &err), &err);
	check_err(receive_unpack_stored(fixture->store, &sample.spec, &err), &err, ERR_CANCELLED);
	assert_int_equal(store_fixture_count(fixture->store, STORE_TREES), 0);
	cancel_done(&cancel);
	sample_done(&sample);
}

static void a_layer_of_ours_becomes_the_same_tree(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct sample sample;
	struct layer_info info;
	struct sink *sink;
	struct err err = {0};

	sample_init(&sample, NULL);
	check_ok(layer_writer_open(fixture->store, LAYER_ZSTD, &writer, &err), &err);
	sink = layer_writer_sink(writer);
	check_ok(sink->write(sink, buf_str(&sample.tar.bytes), &err), &err);
	check_ok(layer_writer_finish(writer, &info, &err), &err);
	assert_true(digest_equal(&info.diff_id, &sample.spec.diff_id));
	sample.spec.blob = info.blob;
	sample.spec.size = info.blob_size;
	check_ok(receive_unpack_stored(fixture->store, &sample.spec, &err), &err);
	check_is_there(fixture->store, &sample);
	sample_done(&sample);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

/* By another algorithm, blob and tar are called otherwise, and are the same. */
static void sample_name_long(struct sample *sample)
{
	AUTO(hasher) struct hasher hasher = {0};

	hasher_init_as(&hasher, DIGEST_SHA512);
	hasher_add(&hasher, buf_str(&sample->packed));
	hasher_final(&hasher, &sample->spec.blob);
	hasher_add(&hasher, buf_str(&sample->tar.bytes));
	hasher_final(&hasher, &sample->spec.diff_id);
}

static void a_layer_is_received_by_its_sha512(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct sample sample;
	struct receive_spec own;
	struct digest found;
	struct err err = {0};

	sample_init(&sample, NULL);
	own = sample.spec;
	sample_name_long(&sample);
	check_ok(receive_all(fixture->store, &sample, 50000, &err), &err);
	assert_int_equal(blob_find_id(fixture->store, &sample.spec.blob, &found, &err), 1);
	assert_true(digest_equal(&found, &own.blob));
	own.diff_id = sample.spec.diff_id;
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(proof_check(meta, &own.blob, &own.diff_id, &found, &err), 1);
	own.diff_id = found;
	assert_int_equal(proof_check(meta, &own.blob, &own.diff_id, &found, &err), 1);
	sample.spec = own;
	check_is_there(fixture->store, &sample);
	own.diff_id.algorithm = DIGEST_SHA512;
	check_err(proof_check(meta, &own.blob, &own.diff_id, &found, &err), &err, ERR_CORRUPT);
	sample_done(&sample);
}

static void another_sha512_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	struct sample sample;

	sample_init(&sample, NULL);
	sample_name_long(&sample);
	sample.spec.blob.bytes[63] ^= 1;
	check_refused(fixture->store, &sample, ERR_CORRUPT, "expected sha512:");
	sample_name_long(&sample);
	sample.spec.diff_id.bytes[63] ^= 1;
	check_refused(fixture->store, &sample, ERR_CORRUPT, "its tar is sha512:");
	sample_done(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_layer_becomes_blob_and_tree_in_one_pass),
		STORE_TEST(zstd_and_plain_layers_are_received_too),
		STORE_TEST(padding_behind_the_stream_belongs_to_the_blob),
		STORE_TEST(what_is_odd_about_a_layer_is_reported),
		cmocka_unit_test(a_layer_that_inflates_a_hundredfold_is_swollen_if_it_is_large),
		STORE_TEST(another_digest_is_corrupt_and_both_are_named),
		STORE_TEST(another_tar_is_corrupt_and_both_are_named),
		STORE_TEST(a_layer_is_received_by_its_sha512),
		STORE_TEST(another_sha512_is_corrupt),
		STORE_TEST(another_size_is_corrupt),
		STORE_TEST(more_than_was_announced_is_refused_at_once),
		STORE_TEST(bytes_damaged_on_the_way_are_told_from_a_bad_layer),
		STORE_TEST(a_stream_that_ends_early_is_corrupt),
		STORE_TEST(a_tar_that_climbs_out_is_refused_by_name),
		STORE_TEST(a_bomb_stops_the_transfer),
		STORE_TEST(a_transfer_that_is_given_up_leaves_nothing),
		STORE_TEST(a_lost_tree_is_made_again_from_the_blob),
		STORE_TEST(a_blob_has_no_other_layers_tree),
		STORE_TEST(either_cancel_stops_it_wherever_the_bytes_come_from),
		STORE_TEST(a_layer_of_ours_becomes_the_same_tree),
	};

	return cmocka_run_group_tests_name("layers/receive", tests, NULL, NULL);
}
