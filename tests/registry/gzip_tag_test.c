/* SPDX-License-Identifier: Apache-2.0 */
/* When TAG-gzip is asked for, named and dropped; what makes it is a stand-in. */
#include "registry/gzip_tag.h"

#include "registry/tagging.h"
#include "tests/registry/v2_desk.h"

#define TOPIC 77

/* What was last asked to be made, and how that goes. */
struct maker {
	enum err_kind fails;
	int asked;
	char tag[32];
	struct digest target;
};

static int maker_make(void *ctx, struct str repository, struct str tag, const struct digest *target,
		      uint64_t *topic, struct err *err)
{
	struct maker *maker = ctx;

	assert_true(str_equal(repository, STR("a")));
	maker->asked++;
	maker->target = *target;
	(void)snprintf(maker->tag, sizeof(maker->tag), STR_FMT, STR_ARG(tag));
	*topic = TOPIC;
	return maker->fails == ERR_NONE ? 0 : err_set(err, maker->fails, "it fails");
}

/* A manifest of its own, put under a tag of repository a. */
static struct stock put(struct v2_desk *desk, const char *tag, const char *word)
{
	struct stock config = v2_stock_blob(desk, "a", "{}", DIGEST_SHA256);
	char target[128];
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
		       "\",\"config\":%s,\"layers\":[],\"annotations\":{\"a\":\"%s\"}}",
		       stock_descriptor(&config, "a/b"), word);
	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", tag);
	(void)v2_ask(desk, HTTP_PUT, target, MEDIA_OCI_MANIFEST, str_of(text));
	v2_check_status(desk, 201);
	return stock_absent(text, DIGEST_SHA256);
}

static void check_waits(struct v2_desk *desk, const char *target)
{
	(void)v2_get(desk, target);
	assert_int_equal(desk->response.wait.topic, TOPIC);
	assert_true(desk->response.wait.until_ms > 0);
}

static void a_variant_that_is_wanted_is_waited_for(void **state)
{
	static const char *const absent[] = {"absent-gzip", "1-gzip-gzip", "-gzip", "1-gzi",
					     "gzip"};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct maker maker = {.fails = ERR_NONE};
	struct stock image = put(&desk, "1", "one");
	char target[128];

	(void)v2_get(&desk, "/v2/a/manifests/1-gzip");
	v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN"); /* nobody can make it */
	desk.v2.make_gzip = maker_make;
	desk.v2.make_gzip_ctx = &maker;
	check_waits(&desk, "/v2/a/manifests/1-gzip");
	assert_string_equal(maker.tag, "1");
	assert_true(digest_equal(&maker.target, &image.digest));
	maker.asked = 0;
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", absent[i]);
		(void)v2_get(&desk, target);
		assert_true(desk.response.status >= 400);
	}
	(void)v2_get(&desk, "/v2/b/manifests/1-gzip");
	v2_check_status(&desk, 404);
	assert_int_equal(maker.asked, 0);
	maker.fails = ERR_BUSY;
	(void)v2_get(&desk, "/v2/a/manifests/1-gzip");
	assert_true(desk.response.status == 429 || desk.response.status == 503);
	assert_non_null(v2_header(&desk, "Retry-After"));
}

/* An artifact, or what is no layer though it is said to be one. */
static void what_is_no_image_has_no_variant_and_nothing_failed(void **state)
{
	static const struct {
		enum err_kind fails;
		unsigned status;
		const char *code;
	} cases[] = {
		{ERR_UNSUPPORTED, 404, "MANIFEST_UNKNOWN"},
		{ERR_CORRUPT, 404, "MANIFEST_UNKNOWN"},
		{ERR_NOT_FOUND, 404, "MANIFEST_UNKNOWN"},
		{ERR_FULL, 507, "UNAVAILABLE"},
		{ERR_OS, 500, "UNKNOWN"},
	};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct maker maker = {.fails = ERR_NONE};

	(void)put(&desk, "1", "one");
	desk.v2.make_gzip = maker_make;
	desk.v2.make_gzip_ctx = &maker;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		maker.fails = cases[i].fails;
		(void)v2_get(&desk, "/v2/a/manifests/1-gzip");
		v2_check_refused(&desk, cases[i].status, cases[i].code);
	}
}

static int name(struct v2_desk *desk, const struct stock *image, const struct stock *variant)
{
	struct err err = {0};
	int named = gzip_tag_put(desk->v2.store, STR("a"), STR("1"), &image->digest,
				 &variant->digest, &err);

	check_ok(named, &err);
	return named;
}

static void check_given(struct v2_desk *desk, const char *tag, const struct stock *stock)
{
	char target[128];

	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", tag);
	(void)v2_get(desk, target);
	v2_check_status(desk, 200);
	assert_string_equal(v2_header(desk, "Docker-Content-Digest"), stock->name);
}

static void a_variant_goes_with_its_image(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct maker maker = {.fails = ERR_NONE};
	struct stock variant = put(&desk, "other", "variant");
	struct stock image = put(&desk, "1", "one");
	struct stock moved;

	desk.v2.make_gzip = maker_make;
	desk.v2.make_gzip_ctx = &maker;
	assert_int_equal(name(&desk, &image, &variant), 1);
	check_given(&desk, "1-gzip", &variant);
	(void)v2_get(&desk, "/v2/a/tags/list");
	assert_non_null(strstr(v2_body(&desk), "\"1-gzip\""));
	moved = put(&desk, "1", "two");
	check_waits(&desk, "/v2/a/manifests/1-gzip");
	assert_int_equal(name(&desk, &image, &variant), 0); /* of what it was before */
	check_waits(&desk, "/v2/a/manifests/1-gzip");
	assert_int_equal(name(&desk, &moved, &variant), 1);
	check_given(&desk, "1-gzip", &variant);
	(void)v2_ask(&desk, HTTP_DELETE, "/v2/a/manifests/1", NULL, STR(""));
	v2_check_status(&desk, 202);
	(void)v2_get(&desk, "/v2/a/manifests/1-gzip");
	v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN");
	assert_int_equal(name(&desk, &moved, &variant), 0);
}

/* A manifest that is deleted takes its tags along, and they what was made of them. */
static void a_variant_goes_with_a_manifest(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock variant = put(&desk, "other", "variant");
	struct stock image = put(&desk, "1", "one");
	char target[256];

	(void)put(&desk, "2", "one");
	assert_int_equal(name(&desk, &image, &variant), 1);
	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", image.name);
	(void)v2_ask(&desk, HTTP_DELETE, target, NULL, STR(""));
	v2_check_status(&desk, 202);
	(void)v2_get(&desk, "/v2/a/tags/list");
	assert_non_null(strstr(v2_body(&desk), "[\"other\"]"));
}

static void a_tag_of_that_name_is_its_owners(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock image = put(&desk, "1", "one");
	struct stock own = put(&desk, "1-gzip", "own");
	struct stock other = put(&desk, "other", "variant");

	assert_int_equal(name(&desk, &image, &other), 0);
	check_given(&desk, "1-gzip", &own);
	(void)put(&desk, "1", "two");
	check_given(&desk, "1-gzip", &own);
	(void)v2_ask(&desk, HTTP_DELETE, "/v2/a/manifests/1", NULL, STR(""));
	check_given(&desk, "1-gzip", &own);
}

/*
 * An index, put under tag 1, of a manifest that was put as a blob: nobody has asked
 * whether the repository has the layer that it names.
 */
static struct stock put_claim(struct v2_desk *desk, const struct stock *layer)
{
	struct stock config = v2_stock_blob(desk, "a", "{}", DIGEST_SHA256);
	struct stock inner;
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
		       "\",\"config\":%s,\"layers\":[%s]}",
		       stock_descriptor(&config, "a/b"), stock_descriptor(layer, "a/c"));
	inner = v2_stock_blob(desk, "a", text, DIGEST_SHA256);
	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
		       "\",\"digest\":\"%s\",\"size\":%llu,\"platform\":{\"os\":\"linux\","
		       "\"architecture\":\"amd64\"}}]}",
		       inner.name, (unsigned long long)inner.size);
	(void)v2_ask(desk, HTTP_PUT, "/v2/a/manifests/1", MEDIA_OCI_INDEX, str_of(text));
	v2_check_status(desk, 201);
	return stock_absent(text, DIGEST_SHA256);
}

static void a_variant_gives_nothing_that_its_repository_lacks(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock layer = v2_stock_blob(&desk, "b", "a layer of b's", DIGEST_SHA256);
	struct stock index = put_claim(&desk, &layer);
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct tag tag;
	struct err err = {0};

	check_err(
		gzip_tag_put(desk.v2.store, STR("a"), STR("1"), &index.digest, &index.digest, &err),
		&err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "a has no sha256:"));
	check_ok(meta_begin(desk.v2.store, META_READ, &meta, &err), &err);
	assert_int_equal(
		repository_find(meta, STR("a"), REPOSITORY_BLOB, &layer.digest, &item, &err), 0);
	assert_int_equal(tag_find_newest(meta, STR("localhost/a:1"), &tag, &err), 1);
	assert_true(tagging_is_opaque(&tag)); /* nor is it a base */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_variant_that_is_wanted_is_waited_for),
		TEST(what_is_no_image_has_no_variant_and_nothing_failed),
		TEST(a_variant_goes_with_its_image),
		TEST(a_variant_goes_with_a_manifest),
		TEST(a_tag_of_that_name_is_its_owners),
		TEST(a_variant_gives_nothing_that_its_repository_lacks),
	};

	return cmocka_run_group_tests_name("registry/gzip_tag", tests, NULL, NULL);
}
