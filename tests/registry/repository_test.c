/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/holding.h"
#include "registry/outline.h"
#include "registry/tag.h"
#include "tests/registry/stock.h"

#define CONFIG "{\"os\":\"linux\",\"architecture\":\"amd64\"}"

static const enum digest_algorithm both[] = {DIGEST_SHA256, DIGEST_SHA512};

static struct meta *writing(struct store *store)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	return meta;
}

static void done(struct meta *meta)
{
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
}

static void put(struct store *store, struct str name, const struct repository_item *item)
{
	struct meta *meta = writing(store);
	struct err err = {0};

	check_ok(repository_put(meta, name, item, &err), &err);
	done(meta);
}

static int find(struct store *store, struct str name, enum repository_kind kind,
		const struct digest *digest, struct repository_item *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = repository_find(meta, name, kind, digest, out, &err);
	check_ok(found, &err);
	return found;
}

static bool holds(struct store *store, struct str name, enum repository_kind kind,
		  const struct digest *digest)
{
	struct repository_item item;

	return find(store, name, kind, digest, &item) == 1;
}

static void a_record_comes_back_whole(void **state)
{
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		struct stock stock = stock_absent("x", both[i]);
		struct repository_item item =
			stock_item(&stock, REPOSITORY_MANIFEST, REPOSITORY_MIRRORED);
		struct repository_item got;

		put(fixture->store, STR("a/b"), &item);
		assert_int_equal(
			find(fixture->store, STR("a/b"), REPOSITORY_MANIFEST, &stock.digest, &got),
			1);
		assert_int_equal(got.source, REPOSITORY_MIRRORED);
		assert_true(digest_equal(&got.digest, &stock.digest));
		assert_true(digest_equal(&got.blob, &stock.blob));
		assert_int_equal(got.size, 1);
		assert_true(got.at_ms == item.at_ms);
		assert_string_equal(got.media_type, "application/x-test");
		/* neither in another repository, nor as the other kind */
		assert_false(holds(fixture->store, STR("a"), REPOSITORY_MANIFEST, &stock.digest));
		assert_false(holds(fixture->store, STR("a/b"), REPOSITORY_BLOB, &stock.digest));
	}
}

/* Whoever puts a record may know the blob by its sha512 alone; collection does not. */
static void a_record_calls_its_blob_by_the_stores_name(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, "x", DIGEST_SHA512);
	struct stock absent = stock_absent("absent", DIGEST_SHA512);
	struct repository_item item = stock_item(&stock, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	struct repository_item got;
	struct meta *meta;
	struct err err = {0};

	item.blob = stock.digest;
	put(fixture->store, STR("a"), &item);
	assert_int_equal(find(fixture->store, STR("a"), REPOSITORY_BLOB, &stock.digest, &got), 1);
	assert_true(digest_equal(&got.blob, &stock.blob));
	item.blob = absent.digest;
	meta = writing(fixture->store);
	check_err(repository_put(meta, STR("a"), &item, &err), &err, ERR_NOT_FOUND);
	meta_abort(meta);
}

static void what_was_pushed_stays_so_until_it_is_released(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_absent("x", DIGEST_SHA256);
	struct repository_item baked = stock_item(&stock, REPOSITORY_BLOB, REPOSITORY_BAKED);
	struct repository_item pushed = stock_item(&stock, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	struct repository_item got;
	struct meta *meta;
	struct err err = {0};

	put(fixture->store, STR("a"), &baked);
	put(fixture->store, STR("a"), &pushed);
	put(fixture->store, STR("a"), &baked);
	(void)find(fixture->store, STR("a"), REPOSITORY_BLOB, &stock.digest, &got);
	assert_int_equal(got.source, REPOSITORY_PUSHED);
	meta = writing(fixture->store);
	check_ok(repository_release(meta, STR("a"), &got, &err), &err);
	done(meta);
	(void)find(fixture->store, STR("a"), REPOSITORY_BLOB, &stock.digest, &got);
	assert_int_equal(got.source, REPOSITORY_BAKED);
}

static void a_name_that_is_none_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_absent("x", DIGEST_SHA256);
	struct repository_item item = stock_item(&stock, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	struct meta *meta = writing(fixture->store);
	char name[GRAMMAR_NAME_MAX + 1];
	struct err err = {0};

	memset(name, 'x', sizeof(name));
	check_err(repository_put(meta, STR(""), &item, &err), &err, ERR_INVALID);
	check_err(repository_put(meta, STR("a!b"), &item, &err), &err, ERR_INVALID);
	check_err(repository_put(meta, (struct str){name, sizeof(name)}, &item, &err), &err,
		  ERR_INVALID);
	check_ok(repository_put(meta, (struct str){name, sizeof(name) - 1}, &item, &err), &err);
	meta_abort(meta);
}

struct names {
	char text[256];
	size_t max;
};

static int add_name(void *ctx, struct str name, struct err *err)
{
	struct names *names = ctx;
	size_t len = strlen(names->text);

	(void)err;
	(void)snprintf(names->text + len, sizeof(names->text) - len, STR_FMT " ", STR_ARG(name));
	return names->max > 0 && --names->max == 0;
}

static void check_names(struct store *store, const char *after, size_t max, const char *expected)
{
	AUTO(meta) struct meta *meta = NULL;
	struct names names = {.max = max};
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(repository_each_name(meta, str_of(after), add_name, &names, &err), &err);
	assert_string_equal(names.text, expected);
}

static void names_come_in_the_order_of_their_bytes(void **state)
{
	static const char *const names[] = {"b", "a", "a-b", "a/b", "a.b", "ab", "a_b"};
	struct store_fixture *fixture = *state;
	struct stock first = stock_absent("1", DIGEST_SHA256);
	struct stock second = stock_absent("2", DIGEST_SHA512);
	struct repository_item item = stock_item(&first, REPOSITORY_MANIFEST, REPOSITORY_PUSHED);
	struct repository_item more = stock_item(&second, REPOSITORY_MANIFEST, REPOSITORY_PUSHED);
	struct repository_item blob = stock_item(&first, REPOSITORY_BLOB, REPOSITORY_PUSHED);

	check_names(fixture->store, "", 0, "");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put(fixture->store, str_of(names[i]), &item);
		put(fixture->store, str_of(names[i]), &more);
		put(fixture->store, str_of(names[i]), &blob);
	}
	put(fixture->store, STR("aa-without-manifest"), &blob);
	check_names(fixture->store, "", 0, "a a-b a.b a/b a_b ab b ");
	check_names(fixture->store, "a.b", 0, "a/b a_b ab b ");
	check_names(fixture->store, "a.a", 2, "a.b a/b ");
	check_names(fixture->store, "b", 0, "");
}

static int count_item(void *ctx, struct str repository, const struct repository_item *item,
		      struct err *err)
{
	(void)repository;
	(void)item;
	(void)err;
	*(int *)ctx += 1;
	return 0;
}

static int add_referrer(void *ctx, const struct digest *digest, const json_t *descriptor,
			struct err *err)
{
	json_t *list = ctx;
	struct digest told;

	check_ok(digest_parse(json_str(json_object_get(descriptor, "digest")), &told, err), err);
	assert_true(digest_equal(&told, digest));
	assert_int_equal(json_array_append(list, drop_const(descriptor)), 0);
	return 0;
}

static json_t *referrers(struct store *store, const struct digest *subject,
			 const struct digest *after)
{
	AUTO(meta) struct meta *meta = NULL;
	json_t *list = json_array();
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(repository_each_referrer(meta, STR("a"), subject, after, add_referrer, list, &err),
		 &err);
	return list;
}

static void a_manifest_is_found_by_what_it_is_about(void **state)
{
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		struct stock subject = stock_absent("subject", both[i]);
		struct stock config = stock_absent("{}", both[i]);
		AUTO(json) json_t *list = NULL;
		AUTO(json) json_t *rest = NULL;
		AUTO(json) json_t *gone = NULL;
		auto_outline struct outline outline = {0};
		struct repository_item item;
		struct stock stock;
		struct meta *meta;
		struct err err = {0};
		char text[2048];
		int count = 0;

		(void)snprintf(text, sizeof(text),
			       "{\"schemaVersion\":2,\"config\":%s,\"subject\":%s,"
			       "\"annotations\":{\"k\":\"v\"}}",
			       stock_descriptor(&config, "text/x"),
			       stock_descriptor(&subject, "text/y"));
		stock = stock_absent(text, both[i]);
		item = stock_item(&stock, REPOSITORY_MANIFEST, REPOSITORY_PUSHED);
		meta = writing(fixture->store);
		check_ok(outline_parse(str_of(text), &outline, &err), &err);
		check_ok(repository_put_manifest(meta, STR("a"), &item, &outline, &err), &err);
		done(meta);
		list = referrers(fixture->store, &subject.digest, NULL);
		assert_int_equal(json_array_size(list), 1);
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(list, 0), "artifactType")),
			"text/x");
		assert_int_equal(
			json_object_size(json_object_get(json_array_get(list, 0), "annotations")),
			1);
		rest = referrers(fixture->store, &subject.digest, &stock.digest);
		assert_int_equal(json_array_size(rest), 0);

		meta = writing(fixture->store);
		check_ok(repository_each(meta, count_item, &count, &err), &err);
		assert_int_equal(count, 1); /* a referrer's record is no item */
		assert_int_equal(
			repository_del(meta, STR("a"), REPOSITORY_MANIFEST, &stock.digest, &err),
			1);
		assert_int_equal(
			repository_del(meta, STR("a"), REPOSITORY_MANIFEST, &stock.digest, &err),
			0);
		assert_int_equal(repository_exists(meta, STR("a"), &err), 0);
		done(meta);
		gone = referrers(fixture->store, &subject.digest, NULL);
		assert_int_equal(json_array_size(gone), 0);
	}
}

/* An index of an index of an image with one layer, all in the store; and what is not. */
struct family {
	struct stock config;
	struct stock layer;
	struct stock manifest;
	struct stock inner;
	struct stock absent;
	struct stock outer;
};

static struct family family_make(struct store *store, enum digest_algorithm algorithm)
{
	struct family family = {
		.config = stock_put(store, CONFIG, algorithm),
		.layer = stock_put(store, "a layer", algorithm),
		.absent = stock_absent("{\"nowhere\":1}", algorithm),
	};
	char text[2048];

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s]}",
		       stock_descriptor(&family.config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&family.layer, MEDIA_OCI_LAYER_TAR));
	family.manifest = stock_put(store, text, algorithm);
	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s]}",
		       stock_descriptor(&family.manifest, MEDIA_DOCKER_MANIFEST));
	family.inner = stock_put(store, text, algorithm);
	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"manifests\":[%s,%s]}",
		       MEDIA_DOCKER_LIST, stock_descriptor(&family.inner, MEDIA_OCI_INDEX),
		       stock_descriptor(&family.absent, MEDIA_OCI_MANIFEST));
	family.outer = stock_put(store, text, algorithm);
	return family;
}

static void tag_as(struct store *store, struct str reference, const struct stock *stock)
{
	struct meta *meta = writing(store);
	struct tag tag = {.target = stock->blob, .manifest = stock->blob, .at_ms = 1};
	struct err err = {0};

	platform_host(&tag.platform);
	check_ok(tag_put(meta, reference, &tag, &err), &err);
	done(meta);
}

static void check_family(struct store *store, struct str name, const struct family *family)
{
	struct repository_item item;

	assert_true(holds(store, name, REPOSITORY_BLOB, &family->config.digest));
	assert_true(holds(store, name, REPOSITORY_BLOB, &family->layer.digest));
	assert_false(holds(store, name, REPOSITORY_MANIFEST, &family->absent.digest));
	assert_int_equal(find(store, name, REPOSITORY_MANIFEST, &family->manifest.digest, &item),
			 1);
	assert_string_equal(item.media_type, MEDIA_DOCKER_MANIFEST); /* as the index says */
	assert_int_equal(item.source, REPOSITORY_BAKED);
	assert_int_equal(find(store, name, REPOSITORY_MANIFEST, &family->outer.blob, &item), 1);
	assert_string_equal(item.media_type, MEDIA_DOCKER_LIST); /* as it says itself */
}

static void a_tag_makes_all_of_an_image_readable(void **state)
{
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		struct family family = family_make(fixture->store, both[i]);
		struct str name = i ? STR("team/b") : STR("a");

		tag_as(fixture->store, i ? STR("localhost/team/b:1") : STR("localhost/a:1"),
		       &family.outer);
		check_family(fixture->store, name, &family);
	}
}

static void a_name_of_another_registry_gives_nothing_away(void **state)
{
	struct store_fixture *fixture = *state;
	struct family family = family_make(fixture->store, DIGEST_SHA256);

	tag_as(fixture->store, STR("docker.io/library/a:1"), &family.outer);
	tag_as(fixture->store, STR("localhost:5000/a:1"), &family.outer);
	check_names(fixture->store, "", 0, "");
}

/* As a store of before: tags without records. */
static void an_old_stores_tags_are_adopted(void **state)
{
	struct store_fixture *fixture = *state;
	struct family family = family_make(fixture->store, DIGEST_SHA256);
	uint64_t generation;
	struct meta *meta;
	struct err err = {0};

	tag_as(fixture->store, STR("localhost/a:1"), &family.outer);
	meta = writing(fixture->store);
	assert_int_equal(
		repository_del(meta, STR("a"), REPOSITORY_MANIFEST, &family.outer.digest, &err), 1);
	assert_int_equal(
		repository_del(meta, STR("a"), REPOSITORY_BLOB, &family.layer.digest, &err), 1);
	done(meta);
	check_ok(tag_adopt(fixture->store, &err), &err);
	check_family(fixture->store, STR("a"), &family);
	generation = meta_generation(fixture->store);
	check_ok(tag_adopt(fixture->store, &err), &err);
	assert_true(meta_generation(fixture->store) == generation);
}

/* More than one transaction takes; and what is not here, which stands in nobody's way. */
static void many_tags_are_adopted_in_turn(void **state)
{
	struct store_fixture *fixture = *state;
	struct family family = family_make(fixture->store, DIGEST_SHA256);
	struct meta *meta = writing(fixture->store);
	struct err err = {0};
	char name[64];

	for (int i = 0; i < 150; i++) {
		struct tag tag = {.target = i % 10 ? family.outer.blob : family.absent.blob,
				  .manifest = family.manifest.blob,
				  .at_ms = 1};

		platform_host(&tag.platform);
		(void)snprintf(name, sizeof(name), "localhost/r%d:1", i);
		check_ok(tag_put_held(meta, str_of(name), &tag, &err), &err);
	}
	done(meta);
	check_ok(tag_adopt(fixture->store, &err), &err);
	for (int i = 0; i < 150; i++) {
		(void)snprintf(name, sizeof(name), "r%d", i);
		assert_int_equal(holds(fixture->store, str_of(name), REPOSITORY_MANIFEST,
				       &family.outer.digest),
				 i % 10 != 0);
	}
}

static void a_removed_image_is_released_whole(void **state)
{
	struct store_fixture *fixture = *state;
	struct family family = family_make(fixture->store, DIGEST_SHA256);
	struct repository_item item = stock_item(&family.layer, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	struct repository_item got;
	struct meta *meta;
	struct err err = {0};

	put(fixture->store, STR("a"), &item);
	tag_as(fixture->store, STR("localhost/a:1"), &family.outer);
	(void)find(fixture->store, STR("a"), REPOSITORY_BLOB, &family.layer.digest, &got);
	assert_int_equal(got.source, REPOSITORY_PUSHED);
	meta = writing(fixture->store);
	check_ok(holding_release(meta, STR("a"), &family.outer.blob, &err), &err);
	done(meta);
	(void)find(fixture->store, STR("a"), REPOSITORY_BLOB, &family.layer.digest, &got);
	assert_int_equal(got.source, REPOSITORY_BAKED);
}

static void a_blob_is_held_by_each_name_that_an_image_has_for_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock config = stock_put(fixture->store, CONFIG, DIGEST_SHA256);
	struct stock layer = stock_put(fixture->store, "layer", DIGEST_SHA256);
	struct stock longer = stock_put(fixture->store, "layer", DIGEST_SHA512);
	struct stock manifest;
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
		       "\",\"config\":%s,\"layers\":[%s,%s,%s]}",
		       stock_descriptor(&config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&layer, MEDIA_OCI_LAYER_TAR),
		       stock_descriptor(&longer, MEDIA_OCI_LAYER_TAR),
		       stock_descriptor(&layer, MEDIA_OCI_LAYER_TAR));
	manifest = stock_put(fixture->store, text, DIGEST_SHA256);
	tag_as(fixture->store, STR("localhost/a:1"), &manifest);
	assert_true(holds(fixture->store, STR("a"), REPOSITORY_BLOB, &layer.digest));
	assert_true(holds(fixture->store, STR("a"), REPOSITORY_BLOB, &longer.digest));
}

static void names_of_ours_are_split(void **state)
{
	static const char *const others[] = {"docker.io/library/a:1", "localhost:80/a:1",
					     "localhost/a", "localhost/a@sha256:0", "localhost/:1"};
	struct str repository;
	struct str tag;

	(void)state;
	assert_true(holding_split(STR("localhost/a/b:v1"), &repository, &tag));
	assert_true(str_equal(repository, STR("a/b")));
	assert_true(str_equal(tag, STR("v1")));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(holding_split(str_of(others[i]), &repository, &tag));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_comes_back_whole),
		TEST(a_record_calls_its_blob_by_the_stores_name),
		TEST(what_was_pushed_stays_so_until_it_is_released),
		TEST(a_name_that_is_none_is_refused),
		TEST(names_come_in_the_order_of_their_bytes),
		TEST(a_manifest_is_found_by_what_it_is_about),
		TEST(a_tag_makes_all_of_an_image_readable),
		TEST(a_name_of_another_registry_gives_nothing_away),
		TEST(an_old_stores_tags_are_adopted),
		TEST(many_tags_are_adopted_in_turn),
		TEST(a_removed_image_is_released_whole),
		TEST(a_blob_is_held_by_each_name_that_an_image_has_for_it),
		cmocka_unit_test(names_of_ours_are_split),
	};

	return cmocka_run_group_tests_name("registry/repository", tests, NULL, NULL);
}
