/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tag.h"
#include "tests/layers/store_fixture.h"

static struct tag tag_of(const char *platform, uint8_t seed)
{
	struct tag tag = {.pulled = true, .at_ms = 1700000000123};
	struct err err = {0};

	check_ok(platform_parse(str_of(platform), &tag.platform, &err), &err);
	memset(tag.target.bytes, seed, 32);
	memset(tag.manifest.bytes, seed + 1, 32);
	return tag;
}

static void put(struct store *store, struct str reference, const struct tag *tag)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(tag_put(meta, reference, tag, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

/* The first byte of the manifest that is found, or 0. */
static int found(struct store *store, struct str reference, const char *platform)
{
	AUTO(meta) struct meta *meta = NULL;
	struct platform wanted;
	struct err err = {0};
	struct tag tag;
	int hit;

	check_ok(platform_parse(str_of(platform), &wanted, &err), &err);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	hit = tag_find(meta, reference, &wanted, &tag, &err);
	check_ok(hit, &err);
	return hit ? tag.manifest.bytes[0] : 0;
}

static void a_tag_comes_back_whole(void **state)
{
	struct store_fixture *fixture = *state;
	struct tag put_in = tag_of("linux/arm64/v8", 7);
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	struct tag got;

	put(fixture->store, STR("docker.io/library/debian:12"), &put_in);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(
		tag_find(meta, STR("docker.io/library/debian:12"), &put_in.platform, &got, &err),
		1);
	assert_true(digest_equal(&got.target, &put_in.target));
	assert_true(digest_equal(&got.manifest, &put_in.manifest));
	assert_true(got.pulled);
	assert_true(got.at_ms == put_in.at_ms);
	assert_string_equal(got.platform.variant, "v8");
}

static void one_reference_holds_an_image_a_platform(void **state)
{
	struct store_fixture *fixture = *state;
	struct tag amd64 = tag_of("linux/amd64", 10);
	struct tag arm64 = tag_of("linux/arm64/v8", 20);
	struct tag newer = tag_of("linux/amd64", 30);
	struct str name = STR("h/a:1");

	assert_int_equal(found(fixture->store, name, "linux/amd64"), 0);
	put(fixture->store, name, &amd64);
	put(fixture->store, name, &arm64);
	assert_int_equal(found(fixture->store, name, "linux/amd64"), 11);
	assert_int_equal(found(fixture->store, name, "linux/arm64"), 21);
	assert_int_equal(found(fixture->store, name, "linux/s390x"), 0);
	put(fixture->store, name, &newer);
	assert_int_equal(found(fixture->store, name, "linux/amd64"), 31);
	assert_int_equal(found(fixture->store, name, "linux/arm64"), 21);
}

static int count_one(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	(void)reference;
	(void)tag;
	(void)err;
	*(size_t *)ctx += 1;
	return 0;
}

static int count(struct store *store)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	size_t n = 0;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(tag_each(meta, count_one, &n, &err), &err);
	return (int)n;
}

static void a_deleted_tag_is_gone_on_every_platform(void **state)
{
	struct store_fixture *fixture = *state;
	struct tag amd64 = tag_of("linux/amd64", 10);
	struct tag arm64 = tag_of("linux/arm64/v8", 20);
	struct meta *meta;
	struct err err = {0};

	put(fixture->store, STR("a"), &amd64);
	put(fixture->store, STR("a"), &arm64);
	put(fixture->store, STR("b"), &arm64);
	assert_int_equal(count(fixture->store), 3);
	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(tag_del(meta, STR("a"), &err), 1);
	assert_int_equal(tag_del(meta, STR("never"), &err), 0);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(count(fixture->store), 1);
	assert_int_equal(found(fixture->store, STR("a"), "linux/amd64"), 0);
}

static int check_name(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	(void)tag;
	(void)err;
	assert_true(str_equal(reference, *(struct str *)ctx));
	return 0;
}

/* LMDB's keys end at 511 bytes, a layout's directory does not. */
static void a_long_reference_is_kept_whole(void **state)
{
	struct store_fixture *fixture = *state;
	struct tag tag = tag_of("linux/amd64", 10);
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	char text[2000];
	struct str name = {text, sizeof(text)};

	memset(text, 'x', sizeof(text));
	put(fixture->store, name, &tag);
	assert_int_equal(found(fixture->store, name, "linux/amd64"), 11);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(tag_each(meta, check_name, &name, &err), &err);
}

static void a_damaged_record_is_corrupt(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json)
	json_t *record = json_pack("{s:i, s:s, s:[{s:s}]}", "v", 1, "reference", "a", "images",
				   "platform", "linux/amd64");
	struct meta *meta;
	struct err err = {0};
	struct tag tag = tag_of("linux/amd64", 10);

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "tags", STR("a"), record, &err), &err);
	check_err(tag_find(meta, STR("a"), &tag.platform, &tag, &err), &err, ERR_CORRUPT);
	meta_abort(meta);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tag_comes_back_whole),
		TEST(one_reference_holds_an_image_a_platform),
		TEST(a_deleted_tag_is_gone_on_every_platform),
		TEST(a_long_reference_is_kept_whole),
		TEST(a_damaged_record_is_corrupt),
	};

	return cmocka_run_group_tests_name("registry/tag", tests, NULL, NULL);
}
