/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected, and what is kept from it. */
#include "layers/collect.h"

#include "layers/blob_priv.h"
#include "layers/lease.h"
#include "layers/proof.h"
#include "layers/tree.h"
#include "tests/layers/blobs.h"
#include "tests/layers/store_check.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A document is "{" and digests, each with a space before it. */
static int names(struct str document, reach_add_fn *add, void *ctx, struct err *err)
{
	struct str word;

	while (str_cut(&document, ' ', &word)) {
		struct digest digest;
		struct err none;

		if (digest_parse(word, &digest, &none) == 0 && add(ctx, &digest, err) < 0)
			return -1;
	}
	return 0;
}

static struct digest put(struct store *store, const char *text)
{
	struct digest digest;
	struct err err = {0};

	check_ok(blob_put(store, str_of(text), &digest, &err), &err);
	return digest;
}

static struct digest put_naming(struct store *store, const struct digest *named)
{
	char text[DIGEST_TEXT_MAX];
	char document[2 + DIGEST_TEXT_MAX];

	(void)snprintf(document, sizeof(document), "{ %s", digest_format(named, text));
	return put(store, document);
}

static bool has(struct store *store, const struct digest *digest)
{
	struct blob_info info;
	struct err err = {0};
	int found = blob_find(store, digest, &info, &err);

	assert_true(found >= 0);
	return found == 1;
}

static struct collector *begin(struct store *store, bool dry_run)
{
	const struct collect_options options = {.names = names, .dry_run = dry_run};
	struct collector *collector;
	struct err err = {0};

	check_ok(collect_open(store, &options, &collector, &err), &err);
	return collector;
}

/* Mark, keep one root or none, sweep. */
static struct collect_result collect(struct store *store, const struct digest *root, bool dry_run)
{
	AUTO(collector) struct collector *collector = begin(store, dry_run);
	struct collect_result result;
	struct err err = {0};
	struct meta *meta;

	check_ok(collect_mark(collector, &meta, &err), &err);
	if (root)
		check_ok(collect_keep(collector, root, &err), &err);
	check_ok(collect_sweep(collector, &result, &err), &err);
	return result;
}

static void what_no_root_leads_to_goes(void **state)
{
	struct store_fixture *fixture = *state;
	struct store *store = fixture->store;
	struct digest kept = put(store, "kept");
	struct digest root = put_naming(store, &kept);
	struct digest lost = put(store, "lost");
	struct collect_result result;

	result = collect(store, &root, false);
	assert_int_equal(result.blobs, 1);
	assert_int_equal(result.chunks, 1);
	assert_int_equal(result.chunk_bytes, 4);
	assert_true(has(store, &kept) && has(store, &root));
	assert_false(has(store, &lost));
	assert_int_equal(store_check(store), 2);
	result = collect(store, &root, false);
	assert_int_equal(result.blobs + result.chunks, 0);
}

static void a_dry_run_counts_and_changes_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest root = put(fixture->store, "kept");
	struct collect_result dry;
	struct collect_result real;

	(void)put(fixture->store, "lost");
	(void)put(fixture->store, "lost as well");
	dry = collect(fixture->store, &root, true);
	assert_int_equal(store_check(fixture->store), 3);
	real = collect(fixture->store, &root, false);
	assert_memory_equal(&dry, &real, sizeof(dry));
	assert_int_equal(store_check(fixture->store), 1);
}

/* Two blobs of two chunks, of which they share the first. */
static void a_chunk_stays_as_long_as_one_blob_holds_it(void **state)
{
	struct store_fixture *fixture = *state;
	auto_free char *bytes = calloc(1, BLOB_CHUNK_MAX + 1);
	struct digest digests[2];
	struct collect_result result;
	struct err err = {0};

	assert_non_null(bytes);
	for (char i = 0; i < 2; i++) {
		bytes[BLOB_CHUNK_MAX] = i;
		check_ok(blob_put(fixture->store, (struct str){bytes, BLOB_CHUNK_MAX + 1},
				  &digests[(int)i], &err),
			 &err);
	}
	result = collect(fixture->store, &digests[0], false);
	assert_int_equal(result.blobs, 1);
	assert_int_equal(result.chunk_bytes, 1);
	check_ok(blob_check(fixture->store, &digests[0], &err), &err);
	result = collect(fixture->store, NULL, false);
	assert_int_equal(result.chunk_bytes, BLOB_CHUNK_MAX + 1);
	assert_int_equal(store_check(fixture->store), 0);
}

static void what_a_lease_names_stays_with_all_it_leads_to(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept = put(fixture->store, "kept");
	struct digest root = put_naming(fixture->store, &kept);
	AUTO(lease) struct lease *lease = NULL;
	struct err err = {0};

	check_ok(lease_open(fixture->store, &lease, &err), &err);
	check_ok(lease_add(lease, &root, &err), &err);
	check_ok(lease_rest(lease, &err), &err);
	(void)collect(fixture->store, NULL, false);
	assert_true(has(fixture->store, &kept) && has(fixture->store, &root));
	lease_close(steal_ptr(&lease));
	(void)collect(fixture->store, NULL, false);
	assert_false(has(fixture->store, &kept) || has(fixture->store, &root));
}

static void what_is_made_while_a_lease_rests_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest before = put(fixture->store, "before");
	struct digest again = put(fixture->store, "again");
	AUTO(lease) struct lease *lease = NULL;
	struct digest since;
	struct err err = {0};

	check_ok(lease_open(fixture->store, &lease, &err), &err);
	check_ok(lease_rest(lease, &err), &err);
	since = put(fixture->store, "since");
	(void)put(fixture->store, "again"); /* it is there, and it counts as new */
	(void)collect(fixture->store, NULL, false);
	assert_true(has(fixture->store, &since) && has(fixture->store, &again));
	assert_false(has(fixture->store, &before));
}

static void what_is_named_while_it_is_swept_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest named = put(fixture->store, "named");
	struct digest ended = put(fixture->store, "ended");
	AUTO(collector) struct collector *collector = begin(fixture->store, false);
	AUTO(lease) struct lease *lease = NULL;
	AUTO(lease) struct lease *short_lease = NULL;
	struct collect_result result;
	struct err err = {0};
	struct meta *meta;

	check_ok(collect_mark(collector, &meta, &err), &err);
	check_ok(lease_open(fixture->store, &lease, &err), &err);
	check_ok(lease_rest(lease, &err), &err);
	check_ok(lease_add(lease, &named, &err), &err);
	check_ok(lease_open(fixture->store, &short_lease, &err), &err);
	check_ok(lease_add(short_lease, &ended, &err), &err);
	check_ok(lease_rest(short_lease, &err), &err);
	lease_close(steal_ptr(&short_lease)); /* a record may name it now */
	check_ok(collect_sweep(collector, &result, &err), &err);
	assert_int_equal(result.blobs, 0);
	assert_true(has(fixture->store, &named) && has(fixture->store, &ended));
	collect_close(steal_ptr(&collector));
	lease_close(steal_ptr(&lease));
	assert_int_equal(collect(fixture->store, NULL, false).blobs, 2);
}

static size_t count_leases(const struct store_fixture *fixture)
{
	char path[96];
	auto_dir DIR *dir = NULL;
	size_t count = 0;

	(void)snprintf(path, sizeof(path), "%s/run/leases", fixture->path);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		count += !fd_is_dots(entry->d_name);
	return count;
}

/* Its file is there and its flock is not, as when its process was killed. */
static void a_lease_ends_with_its_owner(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest = put(fixture->store, "left");
	char path[128];
	char text[DIGEST_TEXT_MAX];
	FILE *file;

	(void)collect(fixture->store, &digest, false);
	(void)snprintf(path, sizeof(path), "%s/run/leases/01hzzzzzzzzzzzzzzzzzzzzzzz",
		       fixture->path);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fprintf(file, "1\n%s\n", digest_format(&digest, text));
	assert_int_equal(fclose(file), 0);
	assert_int_equal(collect(fixture->store, NULL, true).blobs, 1); /* in the end */
	assert_int_equal(count_leases(fixture), 1);
	assert_true(collect(fixture->store, NULL, false).held_back);
	assert_true(has(fixture->store, &digest)); /* it may have got a record just before */
	assert_int_equal(count_leases(fixture), 0);
	assert_false(collect(fixture->store, NULL, false).held_back);
	assert_false(has(fixture->store, &digest));
}

static void a_lease_in_use_keeps_collectors_waiting(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(lease) struct lease *lease = NULL;
	AUTO(collector) struct collector *collector = NULL;
	struct cancel cancel;
	const struct collect_options options = {.names = names, .cancel = &cancel};
	struct err err = {0};
	struct meta *meta;

	check_ok(cancel_init(&cancel, &err), &err);
	check_ok(lease_open(fixture->store, &lease, &err), &err);
	check_ok(collect_open(fixture->store, &options, &collector, &err), &err);
	cancel_raise(&cancel);
	check_err(collect_mark(collector, &meta, &err), &err, ERR_CANCELLED);
	lease_close(steal_ptr(&lease));
	check_ok(collect_mark(collector, &meta, &err), &err);
	check_err(collect_sweep(collector, &(struct collect_result){0}, &err), &err, ERR_CANCELLED);
	collect_close(steal_ptr(&collector));
	cancel_done(&cancel);
}

static void two_collectors_take_turns(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(collector) struct collector *first = begin(fixture->store, false);
	struct collector *second;
	struct cancel cancel;
	const struct collect_options options = {.names = names, .cancel = &cancel};
	struct err err = {0};

	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(collect_open(fixture->store, &options, &second, &err), &err, ERR_CANCELLED);
	collect_close(steal_ptr(&first));
	check_ok(collect_open(fixture->store, &options, &second, &err), &err);
	collect_close(second);
	cancel_done(&cancel);
}

static void chunks_of_an_open_writer_stay(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct digest lost = put(fixture->store, "lost");
	struct cancel cancel;
	const struct collect_options options = {.names = names, .cancel = &cancel};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct err err = {0};
	struct meta *meta;
	struct blob_info info;

	check_ok(cancel_init(&cancel, &err), &err);
	check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
	check_ok(blob_writer_add(writer, STR("lost"), &err), &err);
	check_ok(collect_open(fixture->store, &options, &collector, &err), &err);
	check_ok(collect_mark(collector, &meta, &err), &err);
	cancel_raise(&cancel); /* instead of waiting for the writer */
	check_err(collect_sweep(collector, &result, &err), &err, ERR_CANCELLED);
	collect_close(steal_ptr(&collector));
	cancel_done(&cancel);
	check_ok(blob_writer_commit(writer, &lost, &info, &err), &err);
	blob_writer_close(steal_ptr(&writer));
	check_ok(blob_check(fixture->store, &lost, &err), &err);
	assert_int_equal(store_check(fixture->store), 1);
}

/* A tree with a file of some size. */
static struct digest make_tree(struct store *store, const char *name)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_staging struct staging staging = STAGING_INIT;
	auto_close int hold = -1;
	auto_close int dirfd = -1;
	auto_close int fd = -1;
	static const char bytes[8192] = "x";
	struct digest diff_id;
	struct err err = {0};

	digest_of(str_of(name), &diff_id);
	check_ok(staging_open(store, &staging, &err), &err);
	assert_int_equal(mkdirat(staging.fd, "tree", 0755), 0);
	dirfd = openat(staging.fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dirfd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	check_ok(fd_write_all(fd, bytes, sizeof(bytes), &err), &err);
	assert_int_equal(fsync(fd), 0); /* else its blocks are not there yet */
	hold = tree_place(store, &diff_id, staging.fd, "tree", &err);
	check_ok(hold < 0 ? -1 : 0, &err);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(tree_record(meta, store, &diff_id, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	return diff_id;
}

static bool has_tree(struct store *store, const struct digest *diff_id)
{
	struct err err = {0};
	int found = tree_find(store, diff_id, &err);

	assert_true(found >= 0);
	return found == 1;
}

static void trees_of_layers_that_stay_stay(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept = make_tree(fixture->store, "kept");
	struct digest lost = make_tree(fixture->store, "lost");
	struct digest root = put_naming(fixture->store, &kept);
	struct collect_result result = collect(fixture->store, &root, true);

	assert_true(has_tree(fixture->store, &lost));
	assert_int_equal(result.trees, 1);
	assert_true(result.tree_bytes >= 8192);
	result = collect(fixture->store, &root, false);
	assert_int_equal(result.trees, 1);
	assert_true(result.tree_bytes >= 8192);
	assert_true(has_tree(fixture->store, &kept));
	assert_false(has_tree(fixture->store, &lost));
	lost = make_tree(fixture->store, "lost"); /* a tree can be made again */
	assert_true(has_tree(fixture->store, &lost));
}

static void a_tree_that_is_held_or_leased_is_not_removed(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest held = make_tree(fixture->store, "held");
	struct digest leased = make_tree(fixture->store, "leased");
	AUTO(lease) struct lease *lease = NULL;
	char path[128];
	char hex[DIGEST_HEX_MAX];
	auto_close int fd = -1;
	struct err err = {0};

	(void)snprintf(path, sizeof(path), "%s/trees/%s", fixture->path, digest_hex(&held, hex));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	check_ok(lease_open(fixture->store, &lease, &err), &err);
	check_ok(lease_add(lease, &leased, &err), &err);
	check_ok(lease_rest(lease, &err), &err);
	assert_int_equal(collect(fixture->store, NULL, false).trees, 0);
	assert_true(has_tree(fixture->store, &held) && has_tree(fixture->store, &leased));
	lease_close(steal_ptr(&lease));
	auto_close_release(&fd);
	fd = -1;
	assert_int_equal(collect(fixture->store, NULL, false).trees, 2);
}

static void prove(struct store *store, const struct digest *blob, const struct digest *diff_id)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(proof_put(meta, blob, diff_id, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

/* A config may name it by a sha512, which no tree has. */
static void the_tree_of_a_blob_that_stays_stays(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest blobs[] = {put(fixture->store, "kept"), put(fixture->store, "lost")};
	struct digest kept = make_tree(fixture->store, "the tar of kept");
	struct digest lost = make_tree(fixture->store, "the tar of lost");

	prove(fixture->store, &blobs[0], &kept);
	prove(fixture->store, &blobs[1], &lost);
	assert_int_equal(collect(fixture->store, &blobs[0], false).trees, 1);
	assert_true(has_tree(fixture->store, &kept));
	assert_false(has_tree(fixture->store, &lost));
}

static void a_proof_goes_with_its_blob(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest blobs[] = {put(fixture->store, "kept"), put(fixture->store, "lost")};
	struct digest diff_id;
	struct err err = {0};

	digest_of(STR("tar"), &diff_id);
	for (size_t i = 0; i < 2; i++)
		prove(fixture->store, &blobs[i], &diff_id);
	(void)collect(fixture->store, &blobs[0], false);
	for (size_t i = 0; i < 2; i++) {
		AUTO(meta) struct meta *meta = NULL;

		check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
		assert_int_equal(proof_find(meta, &blobs[i], DIGEST_SHA256, &diff_id, &err),
				 i == 0);
	}
}

static void lose_chunk(struct store *store, const struct digest *id)
{
	const struct store_blobs *blobs;
	struct err err = {0};
	MDB_txn *txn;

	check_ok(store_blobs(store, &blobs, &err), &err);
	check_ok(db_begin(&blobs->db, DB_WRITE, &txn, &err), &err);
	check_ok(db_del(&blobs->db, txn, blobs->chunks, (struct str){(const char *)id->bytes, 32},
			&err),
		 &err);
	check_ok(db_commit(&blobs->db, txn, &err), &err);
}

/* What it names would be lost with it. */
static void a_document_that_cannot_be_read_ends_a_collection(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(collector) struct collector *collector = begin(fixture->store, false);
	struct digest blob = put(fixture->store, "a blob");
	struct digest document = put_naming(fixture->store, &blob);
	struct meta *meta;
	struct err err = {0};

	lose_chunk(fixture->store, &document); /* a small blob is one chunk of its name */
	check_ok(collect_mark(collector, &meta, &err), &err);
	check_err(collect_keep(collector, &document, &err), &err, ERR_CORRUPT);
	assert_true(has(fixture->store, &blob));
}

static struct digest sha512_of(struct str bytes)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest digest;

	hasher_init_as(&hasher, DIGEST_SHA512);
	hasher_add(&hasher, bytes);
	hasher_final(&hasher, &digest);
	return digest;
}

/* More than one batch of them, beside one that stays. */
static void the_names_of_what_went_go_too(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest kept = put(fixture->store, "blob 0");
	struct digest name;
	struct err err = {0};
	char text[32];

	for (int i = 0; i < 100; i++) {
		AUTO(blob_writer) struct blob_writer *writer = NULL;
		struct blob_info info;

		(void)snprintf(text, sizeof(text), "blob %d", i);
		name = sha512_of(str_of(text));
		check_ok(blob_writer_open(fixture->store, &writer, &err), &err);
		check_ok(blob_writer_add(writer, str_of(text), &err), &err);
		check_ok(blob_writer_commit(writer, &name, &info, &err), &err);
		assert_true(has(fixture->store, &name));
	}
	assert_int_equal(collect(fixture->store, &kept, false).blobs, 99);
	assert_false(has(fixture->store, &name));
	(void)put(fixture->store, text);
	assert_false(has(fixture->store, &name)); /* nobody asked for that this time */
	name = sha512_of(STR("blob 0"));
	assert_true(has(fixture->store, &name));
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(what_no_root_leads_to_goes),
		STORE_TEST(a_dry_run_counts_and_changes_nothing),
		STORE_TEST(a_chunk_stays_as_long_as_one_blob_holds_it),
		STORE_TEST(what_a_lease_names_stays_with_all_it_leads_to),
		STORE_TEST(what_is_made_while_a_lease_rests_stays),
		STORE_TEST(what_is_named_while_it_is_swept_stays),
		STORE_TEST(a_lease_ends_with_its_owner),
		STORE_TEST(a_lease_in_use_keeps_collectors_waiting),
		STORE_TEST(two_collectors_take_turns),
		STORE_TEST(chunks_of_an_open_writer_stay),
		STORE_TEST(trees_of_layers_that_stay_stay),
		STORE_TEST(the_tree_of_a_blob_that_stays_stays),
		STORE_TEST(a_tree_that_is_held_or_leased_is_not_removed),
		STORE_TEST(a_proof_goes_with_its_blob),
		STORE_TEST(the_names_of_what_went_go_too),
		STORE_TEST(a_document_that_cannot_be_read_ends_a_collection),
	};

	return cmocka_run_group_tests_name("layers/collect", tests, NULL, NULL);
}
