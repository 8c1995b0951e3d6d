/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/fingerprint.h"
#include "layers/meta.h"
#include "tests/check.h"
#include "tests/layers/store_fixture.h"

static bool same(const struct fingerprint *a, const struct fingerprint *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* GCM specification (McGrew and Viega, 2005), test case 1: no text, key and nonce zero. */
static void nothing_under_the_zero_key_is_gcms_first_vector(void **state)
{
	static const uint8_t expected[16] = {0x58, 0xe2, 0xfc, 0xce, 0xfa, 0x7e, 0x30, 0x61,
					     0x36, 0x7f, 0x1d, 0x57, 0xa4, 0xe7, 0x45, 0x5a};
	const struct fingerprint_key key = {{0}};
	struct fingerprint print;

	(void)state;
	fingerprint_of(&key, STR(""), &print);
	assert_memory_equal(print.bytes, expected, sizeof(expected));
}

static void pieces_make_the_fingerprint_of_the_whole(void **state)
{
	const struct fingerprint_key key = {"a key of 16 byte"};
	static const char text[] = "a text that is longer than a block, and than two of them";
	struct fingerprint whole;

	(void)state;
	fingerprint_of(&key, str_of(text), &whole);
	for (size_t at = 0; at <= strlen(text); at++) {
		AUTO(fingerprinter) struct fingerprinter printer;
		struct fingerprint print;

		fingerprinter_init(&printer, &key);
		fingerprinter_add(&printer, (struct str){text, at});
		fingerprinter_add(&printer, (struct str){text + at, strlen(text + at)});
		fingerprinter_final(&printer, &print);
		assert_true(same(&print, &whole));
	}
}

static void other_bytes_and_other_keys_have_others(void **state)
{
	const struct fingerprint_key key = {"a key of 16 byte"};
	const struct fingerprint_key other = {"b key of 16 byte"};
	struct fingerprint prints[4];

	(void)state;
	fingerprint_of(&key, STR("one"), &prints[0]);
	fingerprint_of(&key, STR("two"), &prints[1]);
	fingerprint_of(&key, STR("one\0"), &prints[2]);
	fingerprint_of(&other, STR("one"), &prints[3]);
	for (size_t i = 1; i < 4; i++)
		assert_false(same(&prints[0], &prints[i]));
}

static void a_store_keeps_its_key_and_has_none_of_another(void **state)
{
	struct store_fixture *fixture = *state;
	const struct fingerprint_key none = {{0}};
	struct fingerprint_key first;
	struct fingerprint_key again;
	struct err err = {0};

	check_ok(fingerprint_key(fixture->store, &first, &err), &err);
	(void)store_fixture_reopen(fixture, false);
	check_ok(fingerprint_key(fixture->store, &again, &err), &err);
	assert_memory_equal(&first, &again, sizeof(first));
	assert_memory_not_equal(&first, &none, sizeof(first));
}

static void a_damaged_key_is_named(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *record = json_pack("{s:i, s:s}", "v", 1, "key", "12345");
	AUTO(meta) struct meta *meta = NULL;
	struct fingerprint_key key;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "store", STR("fingerprint"), record, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	check_err(fingerprint_key(fixture->store, &key, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "fingerprint key"));
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_under_the_zero_key_is_gcms_first_vector),
		cmocka_unit_test(pieces_make_the_fingerprint_of_the_whole),
		cmocka_unit_test(other_bytes_and_other_keys_have_others),
		STORE_TEST(a_store_keeps_its_key_and_has_none_of_another),
		STORE_TEST(a_damaged_key_is_named),
	};

	return cmocka_run_group_tests_name("layers/fingerprint", tests, NULL, NULL);
}
