/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/blob_part.h"
#include "tests/layers/store_fixture.h"

#define SIZE ((size_t)2 * BLOB_CHUNK_MAX + 4321) /* three chunks */

/* Bytes that differ from place to place. */
static char byte_at(size_t at)
{
	return (char)(at * 31 + (at >> 12));
}

static struct digest put_blob(struct store *store, size_t size)
{
	auto_free char *bytes = malloc(size + 1);
	struct digest digest;
	struct err err = {0};

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	check_ok(blob_put(store, (struct str){bytes, size}, &digest, &err), &err);
	return digest;
}

static void check_read(struct blob_part *part, size_t at, size_t max, size_t wanted,
		       enum blob_part_where where)
{
	auto_free char *bytes = malloc(max + 1);
	struct err err = {0};
	ssize_t n;

	assert_non_null(bytes);
	n = blob_part_read(part, at, bytes, max, where, &err);
	if (n < 0)
		fail_msg("%s", err.text);
	assert_int_equal(n, wanted);
	for (size_t i = 0; i < wanted; i++) {
		if (bytes[i] != byte_at(at + i))
			fail_msg("byte %zu from %zu on is wrong", i, at);
	}
}

static void any_place_can_be_read_in_any_order(void **state)
{
	static const struct {
		size_t at;
		size_t max;
		size_t wanted;
	} reads[] = {
		{0, 10, 10},
		{BLOB_CHUNK_MAX - 5, 10, 10},
		{2 * BLOB_CHUNK_MAX, 1, 1},
		{3, 2 * BLOB_CHUNK_MAX, 2 * BLOB_CHUNK_MAX},
		{SIZE - 1, 10, 1},
		{0, SIZE + 1, SIZE},
		{SIZE, 10, 0},
		{SIZE + 1000, 10, 0},
		{BLOB_CHUNK_MAX, BLOB_CHUNK_MAX, BLOB_CHUNK_MAX},
		{7, 0, 0},
	};
	struct store_fixture *fixture = *state;
	struct digest digest = put_blob(fixture->store, SIZE);
	struct blob_part part;
	struct err err = {0};

	assert_int_equal(blob_part_open(fixture->store, &digest, &part, &err), 1);
	assert_int_equal(part.size, SIZE);
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		check_read(&part, reads[i].at, reads[i].max, reads[i].wanted, BLOB_PART_ANYWHERE);
		/* It was read just now, so it is in memory. */
		check_read(&part, reads[i].at, reads[i].max, reads[i].wanted, BLOB_PART_IN_MEMORY);
	}
}

static void an_empty_blob_has_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest = put_blob(fixture->store, 0);
	struct blob_part part;
	struct err err = {0};

	assert_int_equal(blob_part_open(fixture->store, &digest, &part, &err), 1);
	check_read(&part, 0, 10, 0, BLOB_PART_ANYWHERE);
}

static void a_blob_that_is_not_there_is_a_miss(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest digest;
	struct blob_part part;
	struct err err = {0};

	digest_of(STR("absent"), &digest);
	assert_int_equal(blob_part_open(fixture->store, &digest, &part, &err), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_place_can_be_read_in_any_order,
						store_fixture_open, store_fixture_close),
		cmocka_unit_test_setup_teardown(an_empty_blob_has_nothing, store_fixture_open,
						store_fixture_close),
		cmocka_unit_test_setup_teardown(a_blob_that_is_not_there_is_a_miss,
						store_fixture_open, store_fixture_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
