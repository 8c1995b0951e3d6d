/* SPDX-License-Identifier: Apache-2.0 */
/* What is about an image goes where the image goes, and is listed there: see shelf.h. */
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/pull.h"
#include "registry/referrers.h"
#include "registry/referrers_remote_priv.h"
#include "registry/repository.h"
#include "tests/registry/shelf.h"
#include "tests/registry/stock.h"

#include <stdio.h>
#include <string.h>

/* The index under the tag of what is about a digest, as text; "" for none. */
static const char *tagged(struct shelf *shelf, const struct digest *subject)
{
	char tag[REFERRERS_TAG_MAX];
	const struct document *document = shelf_find(shelf, str_of(referrers_tag(subject, tag)));

	return document ? document->text.ptr : "";
}

static void a_tag_lists_what_is_about_an_image(void **state)
{
	struct shelf *shelf = *state;
	struct store *store = shelf->from->store;
	struct digest image;
	struct digest digests[2];
	struct push_spec spec = {.referrers = digests, .referrer_count = 2};
	char expected[1024];
	char first[DIGEST_TEXT_MAX];
	char second[DIGEST_TEXT_MAX];
	struct err err = {0};

	shelf_make(store, "i/image", NULL, &image);
	shelf_make(store, "s/signature", &image, &digests[0]);
	shelf_make(store, "b/bill", &image, &digests[1]);
	spec.manifest = image;
	check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
	(void)digest_format(&digests[0], first);
	(void)digest_format(&digests[1], second);
	(void)snprintf(
		expected, sizeof(expected),
		"{\"manifests\":[{\"annotations\":{\"of\":\"s/signature\"},\"artifactType\":"
		"\"s/signature\",\"digest\":\"%s\",\"mediaType\":\"" MEDIA_OCI_MANIFEST
		"\",\"size\":%zu},{\"annotations\":{\"of\":\"b/bill\"},\"artifactType\":\"b/bill\","
		"\"digest\":\"%s\",\"mediaType\":\"" MEDIA_OCI_MANIFEST
		"\",\"size\":%zu}],\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"schemaVersion\":2}",
		first, shelf_find(shelf, str_of(first))->text.len, second,
		shelf_find(shelf, str_of(second))->text.len);
	assert_string_equal(tagged(shelf, &image), expected);
	assert_int_equal(shelf->puts, 5); /* the tag's is put for each */
	check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
	assert_int_equal(shelf->puts, 0);
	assert_string_equal(tagged(shelf, &image), expected);
}

static void a_registry_that_knows_subjects_needs_no_tag(void **state)
{
	struct shelf *shelf = *state;
	struct digest image;
	struct digest about;
	struct push_spec spec = {.referrers = &about, .referrer_count = 1};
	struct err err = {0};

	shelf->api = true;
	shelf_make(shelf->from->store, "i/image", NULL, &image);
	shelf_make(shelf->from->store, "s/signature", &image, &about);
	spec.manifest = image;
	check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
	assert_int_equal(shelf->puts, 2);
	assert_string_equal(tagged(shelf, &image), "");
}

static void tags_are_put_at_once_where_that_can_be(void **state)
{
	static const struct str tags[] = {STR("2"), STR("3"), STR("latest")};
	static const struct {
		bool at_once;
		bool refuses;
		int puts;
	} cases[] = {{true, false, 2}, {false, false, 5}, {false, true, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shelf *shelf;
		struct push_spec spec = {.tags = tags, .tag_count = 3};
		struct err err = {0};

		shelf = shelf_again(state);
		shelf->tags_at_once = cases[i].at_once;
		shelf->refuses_tags = cases[i].refuses;
		shelf_make(shelf->from->store, "i/image", NULL, &spec.manifest);
		check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
		assert_int_equal(shelf->puts, cases[i].puts);
		for (size_t j = 0; j < 3; j++)
			assert_non_null(shelf_find(shelf, tags[j]));
		check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
		assert_int_equal(shelf->puts, 0);
	}
}

static void hears(void *ctx, const struct pull_event *event)
{
	struct shelf *shelf = ctx;

	shelf->found += event->kind == PULL_REFERRER;
}

static int gather(struct shelf *shelf, struct err *err)
{
	struct reference reference;
	struct pull_spec spec = {.reference = &reference,
				 .bare = true,
				 .all_platforms = true,
				 .referrers = true,
				 .event = hears,
				 .event_ctx = shelf,
				 .cancel = &shelf->cancel};
	char text[256];
	struct tag tag;

	(void)snprintf(text, sizeof(text), "%s/acme/tool:1", shelf->host);
	check_ok(reference_parse(str_of(text), &reference, err), err);
	return pull_image(shelf->to->store, &spec, &tag, err);
}

/* A signature of the image, a bill of it, and a signature of that bill. */
static void what_is_about_an_image_comes_with_it(void **state)
{
	static const struct {
		bool api;
		bool pages;
	} cases[] = {{false, false}, {true, false}, {true, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct digest digests[3];
		struct push_spec spec = {.referrers = digests, .referrer_count = 3};
		struct blob_info info;
		struct shelf *shelf;
		struct err err = {0};

		shelf = shelf_again(state);
		shelf->api = cases[i].api;
		shelf->pages = cases[i].pages;
		shelf_make(shelf->from->store, "i/image", NULL, &spec.manifest);
		shelf_make(shelf->from->store, "s/signature", &spec.manifest, &digests[0]);
		shelf_make(shelf->from->store, "b/bill", &spec.manifest, &digests[1]);
		shelf_make(shelf->from->store, "s/signature", &digests[1], &digests[2]);
		check_ok(shelf_send(shelf, &spec, ":1", &err), &err);
		check_ok(gather(shelf, &err), &err);
		assert_int_equal(shelf->found, 3);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(blob_find(shelf->to->store, &digests[j], &info, &err), 1);
	}
}

/* As a push to us leaves it. */
static void record(struct store *store, const struct digest *digest)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item = {.kind = REPOSITORY_MANIFEST,
				       .source = REPOSITORY_PUSHED,
				       .digest = *digest,
				       .blob = *digest,
				       .at_ms = clock_now_ms(),
				       .media_type = MEDIA_OCI_MANIFEST};
	struct err err = {0};

	check_ok(blob_read_all(store, digest, &text, &err), &err);
	item.size = text.len;
	check_ok(outline_parse(buf_str(&text), &outline, &err), &err);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put_manifest(meta, STR("acme/tool"), &item, &outline, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void the_store_knows_what_was_pushed_to_it(void **state)
{
	struct shelf *shelf = *state;
	struct store *store = shelf->from->store;
	auto_free struct digest *found = NULL;
	struct digest image;
	struct digest digests[3];
	size_t count;
	struct err err = {0};

	shelf_make(store, "i/image", NULL, &image);
	shelf_make(store, "s/signature", &image, &digests[0]);
	shelf_make(store, "s/signature", &digests[0], &digests[1]);
	shelf_make(store, "o/other", NULL, &digests[2]);
	for (size_t i = 0; i < 3; i++)
		record(store, &digests[i]);
	check_ok(referrers_find(store, &image, &found, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_true(digest_equal(&found[0], &digests[0]));
	assert_true(digest_equal(&found[1], &digests[1]));
}

/* An index that names this manifest by its sha512, *out_name. */
static struct digest make_index(struct store *store, const struct digest *manifest,
				struct digest *out_name)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf index = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err err = {0};

	check_ok(blob_read_all(store, manifest, &text, &err), &err);
	*out_name = stock_digest(buf_str(&text), DIGEST_SHA512);
	check_ok(blob_put_as(store, buf_str(&text), out_name, &digest, &err), &err);
	check_ok(buf_addf(&index, &err,
			  "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu}]}",
			  digest_format(out_name, name), text.len),
		 &err);
	check_ok(blob_put(store, buf_str(&index), &digest, &err), &err);
	return digest;
}

static void what_is_about_a_sha512_may_say_either_name(void **state)
{
	struct shelf *shelf = *state;
	struct store *store = shelf->from->store;
	auto_free struct digest *found = NULL;
	struct digest manifest;
	struct digest name;
	struct digest index;
	struct digest digests[2];
	size_t count;
	struct err err = {0};

	shelf_make(store, "i/image", NULL, &manifest);
	index = make_index(store, &manifest, &name);
	shelf_make(store, "s/signature", &name, &digests[0]);
	shelf_make(store, "b/bill", &manifest, &digests[1]);
	record(store, &digests[0]);
	record(store, &digests[1]);
	check_ok(referrers_find(store, &index, &found, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_true(digest_equal(&found[0], &digests[0]));
	assert_true(digest_equal(&found[1], &digests[1]));
}

static void the_tag_is_made_of_the_digest(void **state)
{
	char tag[REFERRERS_TAG_MAX];
	struct digest digest;
	struct err err = {0};

	(void)state;
	digest_of(STR(""), &digest);
	assert_string_equal(
		referrers_tag(&digest, tag),
		"sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_ok(
		digest_parse(STR("sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d3"
				 "6ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af9"
				 "27da3e"),
			     &digest, &err),
		&err);
	assert_string_equal(
		referrers_tag(&digest, tag),
		"sha512-cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tag_lists_what_is_about_an_image),
		TEST(a_registry_that_knows_subjects_needs_no_tag),
		TEST(tags_are_put_at_once_where_that_can_be),
		TEST(what_is_about_an_image_comes_with_it),
		TEST(the_store_knows_what_was_pushed_to_it),
		TEST(what_is_about_a_sha512_may_say_either_name),
		TEST(the_tag_is_made_of_the_digest),
	};

	return cmocka_run_group_tests_name("registry/referrers", tests, NULL, NULL);
}
