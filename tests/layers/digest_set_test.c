/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/digest_set.h"
#include "tests/check.h"

#define MANY 10000

static void number(int n, struct digest *out)
{
	digest_of((struct str){(const char *)&n, sizeof(n)}, out);
}

static void what_was_added_is_there_and_nothing_else(void **state)
{
	auto_digest_set struct digest_set set = {0};
	struct err err = {0};
	struct digest digest;

	(void)state;
	number(0, &digest);
	assert_false(digest_set_has(&set, &digest));
	for (int i = 0; i < MANY; i += 2) {
		number(i, &digest);
		assert_int_equal(digest_set_add(&set, &digest, &err), 1);
		assert_int_equal(digest_set_add(&set, &digest, &err), 0);
	}
	for (int i = 0; i < MANY; i++) {
		number(i, &digest);
		assert_int_equal(digest_set_has(&set, &digest), i % 2 == 0);
	}
	assert_int_equal(set.count, MANY / 2);
}

static void a_cleared_set_is_empty_and_can_be_filled_again(void **state)
{
	auto_digest_set struct digest_set set = {0};
	struct err err = {0};
	struct digest digest;

	(void)state;
	number(1, &digest);
	assert_int_equal(digest_set_add(&set, &digest, &err), 1);
	digest_set_clear(&set);
	assert_false(digest_set_has(&set, &digest));
	assert_int_equal(digest_set_add(&set, &digest, &err), 1);
}

/* Digests that a document claims may be any bytes. */
static void chosen_digests_are_told_apart(void **state)
{
	auto_digest_set struct digest_set set = {0};
	struct digest digest = {.algorithm = DIGEST_SHA256};
	struct err err = {0};

	(void)state;
	for (int i = 1; i <= 255; i++) {
		digest.bytes[31] = (uint8_t)i;
		assert_int_equal(digest_set_add(&set, &digest, &err), 1);
	}
	assert_int_equal(set.count, 255);
	digest.algorithm = DIGEST_SHA512;
	assert_false(digest_set_has(&set, &digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_there_and_nothing_else),
		cmocka_unit_test(a_cleared_set_is_empty_and_can_be_filled_again),
		cmocka_unit_test(chosen_digests_are_told_apart),
	};

	return cmocka_run_group_tests_name("layers/digest_set", tests, NULL, NULL);
}
