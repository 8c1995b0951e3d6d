/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/grammar.h"
#include "registry/v2_path.h"
#include "tests/check.h"

#include <stdio.h>

#define HEX64 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA256 "sha256:" HEX64
#define SHA512 "sha512:" HEX64 HEX64
#define TEXT(s) ((struct str){(s), strlen(s)})

static const char *no_header(const struct http_request *request, const char *name)
{
	(void)request;
	(void)name;
	return NULL;
}

/* The status of the refusal; 0 where it was understood. */
static unsigned parse(enum http_method method, const char *path, struct v2_path *out,
		      const char *code)
{
	auto_http_response struct http_response refusal = HTTP_RESPONSE_INIT;
	const struct http_request request = {
		.method = method, .path = TEXT(path), .find_header = no_header};

	if (v2_path_parse(&request, out, &refusal) == 0)
		return 0;
	if (!code || !strstr(buf_str(&refusal.body).ptr, code))
		fail_msg("%s: %s", path, buf_str(&refusal.body).ptr);
	return refusal.status;
}

static void check_str(struct str found, const char *wanted)
{
	if (!str_equal(found, TEXT(wanted)))
		fail_msg("found " STR_FMT ", wanted %s", STR_ARG(found), wanted);
}

static void each_path_is_of_a_kind(void **state)
{
	static const struct {
		enum http_method method;
		const char *path;
		enum v2_kind kind;
		enum v2_action action;
		const char *repository;
		const char *reference;
	} cases[] = {
		{HTTP_GET, "/v2/", V2_PING, V2_NOTHING, "", ""},
		{HTTP_HEAD, "/v2", V2_PING, V2_NOTHING, "", ""},
		{HTTP_GET, "/v2/_catalog", V2_CATALOG, V2_LIST, "", ""},
		{HTTP_GET, "/v2/a/tags/list", V2_TAGS, V2_PULL, "a", ""},
		{HTTP_GET, "/v2/a/b/referrers/" SHA256, V2_REFERRERS, V2_PULL, "a/b", SHA256},
		{HTTP_GET, "/v2/a/blobs/" SHA512, V2_BLOB, V2_PULL, "a", SHA512},
		{HTTP_DELETE, "/v2/a/blobs/" SHA256, V2_BLOB, V2_DELETE, "a", SHA256},
		{HTTP_HEAD, "/v2/a/manifests/1.0", V2_MANIFEST, V2_PULL, "a", "1.0"},
		{HTTP_PUT, "/v2/a/manifests/" SHA256, V2_MANIFEST, V2_PUSH, "a", SHA256},
		{HTTP_DELETE, "/v2/a/manifests/x", V2_MANIFEST, V2_DELETE, "a", "x"},
		{HTTP_POST, "/v2/a/blobs/uploads/", V2_UPLOADS, V2_PUSH, "a", ""},
		{HTTP_POST, "/v2/a/blobs/uploads", V2_UPLOADS, V2_PUSH, "a", ""},
		{HTTP_PATCH, "/v2/a/blobs/uploads/U-1", V2_UPLOAD, V2_PUSH, "a", "U-1"},
		{HTTP_GET, "/v2/a/blobs/uploads/U_1", V2_UPLOAD, V2_PUSH, "a", "U_1"},
		/* A name may hold the words of the API. */
		{HTTP_GET, "/v2/tags/list/manifests/v2", V2_MANIFEST, V2_PULL, "tags/list", "v2"},
		{HTTP_GET, "/v2/a/blobs/uploads/tags/list", V2_TAGS, V2_PULL, "a/blobs/uploads",
		 ""},
		{HTTP_GET, "/v2/blobs/manifests/blobs", V2_MANIFEST, V2_PULL, "blobs", "blobs"},
		{HTTP_GET, "/v2/docker.io/library/alpine/manifests/3", V2_MANIFEST, V2_PULL,
		 "docker.io/library/alpine", "3"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct v2_path path = {.kind = V2_KINDS};

		assert_int_equal(parse(cases[i].method, cases[i].path, &path, NULL), 0);
		assert_int_equal(path.kind, cases[i].kind);
		assert_int_equal(path.action, cases[i].action);
		check_str(path.repository, cases[i].repository);
		check_str(path.reference, cases[i].reference);
	}
}

static void a_digest_is_read_of_either_algorithm(void **state)
{
	struct v2_path path;
	char text[DIGEST_TEXT_MAX];

	(void)state;
	assert_int_equal(parse(HTTP_GET, "/v2/a/manifests/" SHA512, &path, NULL), 0);
	assert_true(path.by_digest);
	assert_string_equal(digest_format(&path.digest, text), SHA512);
	assert_int_equal(parse(HTTP_GET, "/v2/a/manifests/sha512", &path, NULL), 0);
	assert_false(path.by_digest);
}

static void what_is_wrong_is_refused_with_its_code(void **state)
{
	static const struct {
		const char *path;
		const char *code;
		enum http_method method;
		unsigned status;
	} cases[] = {
		{"/v2/a", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2//manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/A/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a//b/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/../manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a/../b/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/-a/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a./manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a..b/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a___b/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a b/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a\n/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a\xff/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/_catalog/tags/list", "NAME_INVALID", HTTP_GET, 400},
		/* A part that is empty, or goes up, is never passed over. */
		{"/v2//", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2//a/tags/list", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a//tags/list", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/tags/list", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/tags/list/", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/manifests//x", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/manifests/x/", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/blobs/uploads//", "UNSUPPORTED", HTTP_POST, 404},
		{"/v2/./a/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a/./manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a/manifests/..", "MANIFEST_UNKNOWN", HTTP_GET, 404},
		{"/v2/a/blobs/../manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/../v1/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		/* What is left of an escape: of a /, of a NUL, of what was escaped twice. */
		{"/v2/a%2fb/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a%2Fb/tags/list", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a%2e%2e/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a%00/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a/manifests/x%2fy", "MANIFEST_UNKNOWN", HTTP_GET, 404},
		{"/v2/a/manifests/x%2fy", "TAG_INVALID", HTTP_PUT, 400},
		{"/v2/a%2fmanifests%2fx", "UNSUPPORTED", HTTP_GET, 404},
		{"/v2/a/blobs/" SHA256 "%00", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/blobs/uploads/U%2f1", "BLOB_UPLOAD_UNKNOWN", HTTP_PATCH, 404},
		{"/v2/\xc0\xae\xc0\xae/manifests/x", "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a\xc0\xaf"
		 "b/manifests/x",
		 "NAME_INVALID", HTTP_GET, 400},
		{"/v2/a/blobs/sha256:abc", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/blobs/x", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/blobs/", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/referrers/sha256:x", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/manifests/sha256:totallywrong", "DIGEST_INVALID", HTTP_GET, 400},
		{"/v2/a/manifests/md5:d41d8cd98f00b204e9800998ecf8427e", "DIGEST_INVALID", HTTP_PUT,
		 400},
		{"/v2/a/manifests/.INVALID", "MANIFEST_UNKNOWN", HTTP_GET, 404},
		{"/v2/a/manifests/.INVALID", "TAG_INVALID", HTTP_PUT, 400},
		{"/v2/a/manifests/-x", "MANIFEST_UNKNOWN", HTTP_DELETE, 404},
		{"/v2/a/manifests/", "TAG_INVALID", HTTP_PUT, 400},
		{"/v2/a/blobs/uploads/..", "BLOB_UPLOAD_UNKNOWN", HTTP_PATCH, 404},
		{"/v2/", "UNSUPPORTED", HTTP_POST, 405},
		{"/v2/a/blobs/uploads/", "UNSUPPORTED", HTTP_GET, 405},
		{"/v2/a/tags/list", "UNSUPPORTED", HTTP_PUT, 405},
		{"/v2/_catalog", "UNSUPPORTED", HTTP_DELETE, 405},
		{"/v2/a/manifests/x", "UNSUPPORTED", HTTP_OTHER, 405},
		{"/v2/a/manifests/x", "UNSUPPORTED", HTTP_OPTIONS, 405},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct v2_path path = {.kind = V2_KINDS};

		assert_int_equal(parse(cases[i].method, cases[i].path, &path, cases[i].code),
				 cases[i].status);
		assert_int_equal(path.kind, V2_KINDS); /* untouched */
	}
}

static void names_have_their_length(void **state)
{
	char text[GRAMMAR_NAME_MAX + 2];
	char path[GRAMMAR_NAME_MAX + 32];
	struct v2_path parsed;

	(void)state;
	memset(text, 'a', sizeof(text));
	(void)snprintf(path, sizeof(path), "/v2/%.*s/tags/list", (int)GRAMMAR_NAME_MAX, text);
	assert_int_equal(parse(HTTP_GET, path, &parsed, NULL), 0);
	(void)snprintf(path, sizeof(path), "/v2/%.*s/tags/list", (int)GRAMMAR_NAME_MAX + 1, text);
	assert_int_equal(parse(HTTP_GET, path, &parsed, "NAME_INVALID"), 400);
}

static void the_method_that_fits_is_said(void **state)
{
	auto_http_response struct http_response refusal = HTTP_RESPONSE_INIT;
	const struct http_request request = {.method = HTTP_PUT,
					     .path = STR("/v2/a/blobs/" SHA256)};
	struct v2_path path;

	(void)state;
	assert_int_equal(v2_path_parse(&request, &path, &refusal), -1);
	assert_string_equal(refusal.headers[0].name, "Allow");
	assert_string_equal(refusal.headers[0].value, "GET, HEAD, DELETE");
}

static void a_namespace_is_a_host(void **state)
{
	static const struct {
		struct str ns;
		int result;
	} cases[] = {
		{STR("docker.io"), 0}, {STR("127.0.0.1:5000"), 0}, {STR("[::1]:5000"), 0},
		{STR("http://x"), -1}, {STR("a b"), -1},           {STR(""), -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_http_response struct http_response refusal = HTTP_RESPONSE_INIT;
		const struct http_field query[] = {{STR("x"), STR("y")}, {STR("ns"), cases[i].ns}};
		const struct http_request request = {.method = HTTP_GET,
						     .path = STR("/v2/a/manifests/x"),
						     .query = query,
						     .query_count = 2};
		struct v2_path path;

		assert_int_equal(v2_path_parse(&request, &path, &refusal), cases[i].result);
		if (cases[i].result == 0)
			assert_true(str_equal(path.ns, cases[i].ns));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_is_of_a_kind),
		cmocka_unit_test(a_digest_is_read_of_either_algorithm),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_code),
		cmocka_unit_test(names_have_their_length),
		cmocka_unit_test(the_method_that_fits_is_said),
		cmocka_unit_test(a_namespace_is_a_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
