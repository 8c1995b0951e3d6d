/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/holding.h"
#include "registry/tagging.h"
#include "registry/v2_manifest.h"
#include "tests/registry/v2_desk.h"

#include <pthread.h>

#define CONFIG                                                                                 \
	"{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\",\"diff_" \
	"ids\":[]}}"

/* PUT as a tag or by a digest; its status. */
static unsigned put(struct v2_desk *desk, const char *reference, const char *query,
		    const char *type, const char *text)
{
	char target[1024];

	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s%s", reference, query);
	return v2_ask(desk, HTTP_PUT, target, type, str_of(text));
}

/* GET and HEAD of what was put, by both of its names, whatever is asked for. */
static void check_given(struct v2_desk *desk, const char *reference, const char *digest,
			const char *type, const char *text)
{
	char target[1024];

	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", reference);
	for (size_t i = 0; i < 2; i++) {
		(void)v2_ask(desk, i ? HTTP_HEAD : HTTP_GET, target, NULL, STR(""));
		v2_check_status(desk, 200);
		assert_string_equal(v2_body(desk), text);
		assert_string_equal(v2_header(desk, "Content-Type"), type);
		assert_string_equal(v2_header(desk, "Docker-Content-Digest"), digest);
		assert_null(v2_header(desk, "Content-Encoding"));
	}
}

/* An image with one layer, whose parts the repository holds. */
static void image_text(struct v2_desk *desk, enum digest_algorithm algorithm, char out[2048])
{
	struct stock config = v2_stock_blob(desk, "a", CONFIG, algorithm);
	struct stock layer = v2_stock_blob(desk, "a", "a layer", algorithm);

	(void)snprintf(out, 2048,
		       "{ \"schemaVersion\": 2,\n\"mediaType\": \"%s\", \"config\": %s, "
		       "\"layers\": [%s], \"custom\": {\"x\": [1, 2]} }",
		       MEDIA_OCI_MANIFEST, stock_descriptor(&config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&layer, MEDIA_OCI_LAYER_TAR));
}

static void what_was_put_by_digest_is_given_byte_for_byte(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock stock;
		char location[512];
		char text[2048];

		image_text(&desk, v2_both[i], text);
		stock = stock_absent(text, v2_both[i]);
		(void)snprintf(location, sizeof(location), "/v2/a/manifests/%s", stock.name);
		(void)v2_get(&desk, location);
		v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN");
		(void)put(&desk, stock.name, "", MEDIA_OCI_MANIFEST "; charset=utf-8", text);
		v2_check_status(&desk, 201);
		assert_string_equal(v2_header(&desk, "Location"), location);
		assert_string_equal(v2_header(&desk, "Docker-Content-Digest"), stock.name);
		assert_null(v2_header(&desk, "OCI-Subject"));
		assert_null(v2_header(&desk, "OCI-Tag"));
		check_given(&desk, stock.name, stock.name, MEDIA_OCI_MANIFEST, text);
		(void)v2_get(&desk, "/v2/b/manifests/latest");
		v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN");
	}
}

static void what_is_known_is_not_sent_again(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	auto_free char *etag = NULL;
	char text[2048];

	image_text(&desk, DIGEST_SHA512, text);
	(void)put(&desk, "x", "", "", text);
	assert_int_equal(v2_get(&desk, "/v2/a/manifests/x"), 200);
	etag = strdup(v2_header(&desk, "ETag"));
	v2_desk_known = etag;
	assert_int_equal(v2_get(&desk, "/v2/a/manifests/x"), 304);
	assert_int_equal(desk.response.body.len, 0);
	(void)put(&desk, "x", "", "", "{\"schemaVersion\":2,\"manifests\":[]}");
	assert_int_equal(v2_get(&desk, "/v2/a/manifests/x"), 200);
	v2_desk_known = NULL;
}

static void tags_come_with_a_digest_or_alone(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock sha256;
		struct stock stock;
		char text[2048];

		image_text(&desk, v2_both[i], text);
		stock = stock_absent(text, v2_both[i]);
		sha256 = stock_absent(text, DIGEST_SHA256);
		(void)put(&desk, stock.name, "?tag=a&tag=b-1&tag=_C", "", text);
		v2_check_status(&desk, 201);
		assert_string_equal(v2_header(&desk, "OCI-Tag"), "a, b-1, _C");
		check_given(&desk, "_C", stock.name, MEDIA_OCI_MANIFEST, text);
		(void)put(&desk, stock.name, "?tag=a&tag=.b", "", text);
		v2_check_refused(&desk, 400, "TAG_INVALID");
		(void)put(&desk, "a", "?tag=z", "application/json", text);
		v2_check_status(&desk, 201);
		assert_null(v2_header(&desk, "OCI-Tag"));
		check_given(&desk, "a", sha256.name, MEDIA_OCI_MANIFEST, text);
		(void)v2_get(&desk, "/v2/a/manifests/z");
		v2_check_status(&desk, 404);
	}
}

static void a_digest_that_is_another_is_refused(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock other = stock_absent("other", DIGEST_SHA512);
	char text[2048];

	image_text(&desk, DIGEST_SHA256, text);
	(void)put(&desk, other.name, "", MEDIA_OCI_MANIFEST, text);
	v2_check_refused(&desk, 400, "DIGEST_INVALID");
	(void)put(&desk, "sha256:zz", "", MEDIA_OCI_MANIFEST, text);
	v2_check_refused(&desk, 400, "DIGEST_INVALID");
	(void)put(&desk, "blake3:abcd", "", MEDIA_OCI_MANIFEST, text);
	v2_check_refused(&desk, 400, "DIGEST_INVALID");
	(void)put(&desk, ".x", "", MEDIA_OCI_MANIFEST, text);
	v2_check_refused(&desk, 400, "TAG_INVALID");
}

/* What is named is looked for in this repository alone. */
static void what_the_repository_has_not_is_named_in_vain(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock config = v2_stock_blob(&desk, "a", CONFIG, v2_both[i]);
		struct stock elsewhere = v2_stock_blob(&desk, "b", "elsewhere", v2_both[i]);
		struct stock nowhere = stock_absent("nowhere", v2_both[i]);
		struct stock shorter = config;
		char text[2048];

		for (size_t k = 0; k < 2; k++) {
			(void)snprintf(
				text, sizeof(text),
				"{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s]}",
				stock_descriptor(&config, MEDIA_OCI_CONFIG),
				stock_descriptor(k ? &elsewhere : &nowhere, MEDIA_OCI_LAYER_TAR));
			(void)put(&desk, "x", "", "", text);
			v2_check_refused(&desk, 404, "MANIFEST_BLOB_UNKNOWN");
			assert_non_null(strstr(v2_body(&desk), k ? elsewhere.name : nowhere.name));
		}
		(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s]}",
			       stock_descriptor(&nowhere, MEDIA_OCI_MANIFEST));
		(void)put(&desk, "x", "", "", text);
		v2_check_refused(&desk, 404, "MANIFEST_BLOB_UNKNOWN");
		shorter.size--;
		(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s}",
			       stock_descriptor(&shorter, MEDIA_OCI_CONFIG));
		(void)put(&desk, "x", "", "", text);
		v2_check_refused(&desk, 400, "SIZE_INVALID");
		(void)v2_get(&desk, "/v2/a/manifests/x");
		v2_check_status(&desk, 404);
	}
}

static void layers_of_their_maker_may_be_absent(void **state)
{
	static const char *const types[] = {
		"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
		"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
	};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock config = v2_stock_blob(&desk, "a", CONFIG, DIGEST_SHA256);
	struct stock nowhere = stock_absent("nowhere", DIGEST_SHA256);

	for (size_t i = 0; i < 2; i++) {
		char text[2048];

		(void)snprintf(text, sizeof(text),
			       "{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s]}",
			       stock_descriptor(&config, MEDIA_OCI_CONFIG),
			       stock_descriptor(&nowhere, types[i]));
		(void)put(&desk, "x", "", "", text);
		v2_check_status(&desk, 201);
	}
}

static void indexes_stand_in_indexes_and_may_be_empty(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		static const char *const types[] = {MEDIA_OCI_INDEX, MEDIA_DOCKER_LIST};
		struct stock inner =
			stock_absent("{\"schemaVersion\":2,\"manifests\":[]}", v2_both[i]);
		char text[2048];

		(void)put(&desk, inner.name, "", types[i],
			  "{\"schemaVersion\":2,\"manifests\":[]}");
		v2_check_status(&desk, 201);
		(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s,%s]}",
			       stock_descriptor(&inner, types[i]),
			       stock_descriptor(&inner, "application/x-else"));
		(void)put(&desk, "outer", "", types[i], text);
		v2_check_status(&desk, 201);
		check_given(&desk, "outer", stock_absent(text, DIGEST_SHA256).name, types[i], text);
	}
}

static void a_subject_may_come_later(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock empty = v2_stock_blob(&desk, "a", "{}", v2_both[i]);
		struct stock subject = stock_absent("later", v2_both[i]);
		char text[2048];

		(void)snprintf(text, sizeof(text),
			       "{\"schemaVersion\":2,\"artifactType\":\"text/x\",\"config\":%s,"
			       "\"subject\":%s}",
			       stock_descriptor(&empty, "application/vnd.oci.empty.v1+json"),
			       stock_descriptor(&subject, MEDIA_OCI_MANIFEST));
		(void)put(&desk, "x", "", MEDIA_OCI_MANIFEST, text);
		v2_check_status(&desk, 201);
		assert_string_equal(v2_header(&desk, "OCI-Subject"), subject.name);
	}
}

static void types_that_are_at_odds_are_refused(void **state)
{
	static const struct {
		const char *type;
		const char *text;
		const char *code;
	} cases[] = {
		{MEDIA_DOCKER_MANIFEST,
		 "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"config\":%s}",
		 "MANIFEST_INVALID"},
		{MEDIA_OCI_INDEX, "{\"schemaVersion\":2,\"config\":%s}", "MANIFEST_INVALID"},
		{MEDIA_OCI_MANIFEST, "{\"schemaVersion\":2,\"manifests\":[]}", "MANIFEST_INVALID"},
		{"text/plain", "{\"schemaVersion\":2,\"config\":%s}", "MANIFEST_INVALID"},
		{"application/vnd.docker.distribution.manifest.v1+prettyjws",
		 "{\"schemaVersion\":1,\"fsLayers\":[]}", "UNSUPPORTED"},
		{"", "{\"schemaVersion\":1,\"fsLayers\":[]}", "UNSUPPORTED"},
		{"", "", "MANIFEST_INVALID"},
		{"", "{\"schemaVersion\":2,\"config\":%s,\"manifests\":[]}", "MANIFEST_INVALID"},
		{"", "{\"schemaVersion\":2,\"config\":%s,\"schemaVersion\":2}", "MANIFEST_INVALID"},
	};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock config = v2_stock_blob(&desk, "a", CONFIG, DIGEST_SHA256);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *descriptor = stock_descriptor(&config, MEDIA_OCI_CONFIG);
		const char *hole = strstr(cases[i].text, "%s");
		char text[2048];

		(void)snprintf(
			text, sizeof(text), "%.*s%s%s",
			(int)(hole ? hole - cases[i].text : (ptrdiff_t)strlen(cases[i].text)),
			cases[i].text, hole ? descriptor : "", hole ? hole + 2 : "");
		(void)put(&desk, "x", "", cases[i].type, text);
		v2_check_refused(&desk, 400, cases[i].code);
	}
}

static void data_must_be_what_it_stands_for(void **state)
{
	static const struct {
		const char *data;
		unsigned status;
	} cases[] = {{"e30=", 201}, {"e30", 400}, {"W10=", 400}, {"e30gIA==", 400}, {"%%", 400}};
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock empty = v2_stock_blob(&desk, "a", "{}", DIGEST_SHA256);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[1024];

		(void)snprintf(text, sizeof(text),
			       "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"text/x\","
			       "\"digest\":\"%s\",\"size\":2,\"data\":\"%s\"}}",
			       empty.name, cases[i].data);
		(void)put(&desk, "x", "", "", text);
		v2_check_status(&desk, cases[i].status);
	}
}

static void a_deleted_tag_leaves_its_manifest(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock stock;
		char text[2048];

		image_text(&desk, v2_both[i], text);
		stock = stock_absent(text, v2_both[i]);
		(void)put(&desk, stock.name, "?tag=x&tag=y", "", text);
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, "/v2/a/manifests/x", NULL, STR("")),
				 202);
		(void)v2_ask(&desk, HTTP_DELETE, "/v2/a/manifests/x", NULL, STR(""));
		v2_check_refused(&desk, 404, "MANIFEST_UNKNOWN");
		assert_int_equal(v2_get(&desk, "/v2/a/manifests/x"), 404);
		check_given(&desk, "y", stock.name, MEDIA_OCI_MANIFEST, text);
	}
}

static void a_deleted_manifest_takes_its_tags_along(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock stock;
		char target[512];
		char text[2048];

		image_text(&desk, v2_both[i], text);
		stock = stock_absent(text, v2_both[i]);
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", stock.name);
		(void)put(&desk, stock.name, "?tag=x&tag=y", "", text);
		(void)put(&desk, "kept", "", "", "{\"schemaVersion\":2,\"manifests\":[]}");
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, target, NULL, STR("")), 202);
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, target, NULL, STR("")), 404);
		assert_int_equal(v2_get(&desk, target), 404);
		assert_int_equal(v2_get(&desk, "/v2/a/manifests/x"), 404);
		assert_int_equal(v2_get(&desk, "/v2/a/manifests/y"), 404);
		assert_int_equal(v2_get(&desk, "/v2/a/manifests/kept"), 200);
	}
}

static void a_deleted_blob_is_nobodys(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct stock stock = v2_stock_blob(&desk, "a", "x", v2_both[i]);
		char target[512];
		char other[512];

		(void)v2_stock_blob(&desk, "b", "x", v2_both[i]);
		(void)snprintf(target, sizeof(target), "/v2/a/blobs/%s", stock.name);
		(void)snprintf(other, sizeof(other), "/v2/b/blobs/%s", stock.name);
		assert_int_equal(v2_get(&desk, target), 200);
		assert_int_equal(v2_ask(&desk, HTTP_DELETE, target, NULL, STR("")), 202);
		(void)v2_ask(&desk, HTTP_DELETE, target, NULL, STR(""));
		v2_check_refused(&desk, 404, "BLOB_UNKNOWN");
		assert_int_equal(v2_get(&desk, target), 404);
		assert_int_equal(v2_get(&desk, other), 200);
	}
}

static int images_of(struct store *store, const char *reference, struct tag *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct platform platform;
	struct err err = {0};
	int found;

	check_ok(platform_parse(STR("linux/amd64"), &platform, &err), &err);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = tag_find(meta, str_of(reference), &platform, out, &err);
	check_ok(found, &err);
	return found;
}

/* What was pushed is a base under its name, for the platform of its config. */
static void what_is_pushed_is_an_image_here(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock manifest;
	struct tag tag;
	char text[2048];
	char list[2048];

	image_text(&desk, DIGEST_SHA256, text);
	manifest = stock_absent(text, DIGEST_SHA256);
	(void)put(&desk, "one", "", "", text);
	assert_int_equal(images_of(desk.v2.store, "localhost/a:one", &tag), 1);
	assert_true(digest_equal(&tag.manifest, &manifest.digest));
	assert_false(tag.pulled);
	(void)snprintf(
		list, sizeof(list),
		"{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"%s\",\"digest\":\"%s\""
		",\"size\":%llu,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
		MEDIA_OCI_MANIFEST, manifest.name, (unsigned long long)manifest.size);
	(void)put(&desk, "many", "", "", list);
	assert_int_equal(images_of(desk.v2.store, "localhost/a:many", &tag), 1);
	assert_true(digest_equal(&tag.manifest, &manifest.digest));
	assert_false(digest_equal(&tag.target, &manifest.digest));
	(void)put(&desk, "one", "", "", "{\"schemaVersion\":2,\"manifests\":[]}");
	assert_int_equal(images_of(desk.v2.store, "localhost/a:one", &tag), 0);
}

/* It has its name, and is no base of any platform. */
static void what_is_no_image_has_a_name_here(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock empty = v2_stock_blob(&desk, "a", "{}", DIGEST_SHA256);
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	struct tag tag;
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"artifactType\":\"text/x\",\"config\":%s}",
		       stock_descriptor(&empty, "application/vnd.oci.empty.v1+json"));
	(void)put(&desk, "x", "", "", text);
	v2_check_status(&desk, 201);
	assert_int_equal(images_of(desk.v2.store, "localhost/a:x", &tag), 0);
	check_ok(meta_begin(desk.v2.store, META_READ, &meta, &err), &err);
	assert_int_equal(tag_find_only(meta, STR("localhost/a:x"), &tag, &err), 1);
	assert_true(tagging_is_opaque(&tag));
}

static void what_is_tagged_here_is_served(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock manifest;
	struct meta *meta;
	struct tag tag = {.at_ms = 1};
	struct err err = {0};
	char text[2048];

	image_text(&desk, DIGEST_SHA256, text);
	manifest = stock_put(desk.v2.store, text, DIGEST_SHA256);
	tag.target = tag.manifest = manifest.digest;
	platform_host(&tag.platform);
	check_ok(meta_begin(desk.v2.store, META_WRITE, &meta, &err), &err);
	check_ok(tag_put(meta, STR("localhost/a:1"), &tag, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_given(&desk, "1", manifest.name, MEDIA_OCI_MANIFEST, text);
	assert_int_equal(v2_get(&desk, "/v2/b/manifests/1"), 404);
}

#define MANY_THREADS 4
#define MANY_EACH 8

struct many {
	struct v2_desk desk;
	int number;
	pthread_t thread;
};

static const char *many_text(int number, int i, char out[static 128])
{
	(void)snprintf(out, 128, "{\"schemaVersion\":2,\"manifests\":[],\"x\":\"%d-%d\"}", number,
		       i);
	return out;
}

static void *put_many(void *ctx)
{
	struct many *many = ctx;

	for (int i = 0; i < MANY_EACH; i++) {
		char target[64];
		char text[128];

		(void)snprintf(target, sizeof(target), "/v2/a/manifests/t%d-%d", many->number, i);
		(void)v2_ask(&many->desk, HTTP_PUT, target, NULL,
			     str_of(many_text(many->number, i, text)));
	}
	return NULL;
}

/* They share commits; each one's manifest and tag are its own. */
static void what_many_put_at_once_is_all_there(void **state)
{
	struct many many[MANY_THREADS];

	for (int n = 0; n < MANY_THREADS; n++) {
		many[n] = (struct many){.desk = v2_desk_of(state), .number = n};
		assert_int_equal(pthread_create(&many[n].thread, NULL, put_many, &many[n]), 0);
	}
	for (int n = 0; n < MANY_THREADS; n++)
		assert_int_equal(pthread_join(many[n].thread, NULL), 0);
	for (int n = 0; n < MANY_THREADS; n++) {
		for (int i = 0; i < MANY_EACH; i++) {
			char target[64];
			char text[128];

			(void)snprintf(target, sizeof(target), "/v2/a/manifests/t%d-%d", n, i);
			assert_int_equal(v2_get(&many[n].desk, target), 200);
			assert_string_equal(v2_body(&many[n].desk), many_text(n, i, text));
		}
		auto_v2_desk_release(&many[n].desk);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_put_by_digest_is_given_byte_for_byte),
		TEST(what_is_known_is_not_sent_again),
		TEST(tags_come_with_a_digest_or_alone),
		TEST(a_digest_that_is_another_is_refused),
		TEST(what_the_repository_has_not_is_named_in_vain),
		TEST(layers_of_their_maker_may_be_absent),
		TEST(indexes_stand_in_indexes_and_may_be_empty),
		TEST(a_subject_may_come_later),
		TEST(types_that_are_at_odds_are_refused),
		TEST(data_must_be_what_it_stands_for),
		TEST(a_deleted_tag_leaves_its_manifest),
		TEST(a_deleted_manifest_takes_its_tags_along),
		TEST(a_deleted_blob_is_nobodys),
		TEST(what_is_pushed_is_an_image_here),
		TEST(what_is_no_image_has_a_name_here),
		TEST(what_is_tagged_here_is_served),
		TEST(what_many_put_at_once_is_all_there),
	};

	return cmocka_run_group_tests_name("registry/v2_manifest", tests, NULL, NULL);
}
