/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and HEAD, from a stand-in that is not always right: see standin.h. */
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <string.h>

#define MANIFEST_TEXT "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"layers\":[]}"

static int bench_manifest(struct bench *bench, struct digest *digest, struct err *err)
{
	return fetch_manifest(bench->remote, bench->http, "1.0", &bench->got, digest, err);
}

static void gives_manifest(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = standin_asked(request, MEDIA_OCI_MANIFEST) &&
		      standin_asked(request, MEDIA_OCI_INDEX) &&
		      standin_asked(request, MEDIA_DOCKER_MANIFEST) &&
		      standin_asked(request, MEDIA_DOCKER_LIST) &&
		      standin_asked(request, "manifest.v1+prettyjws") &&
		      standin_asked(request, "*/*");
	standin_answer(request, "200 OK", "Content-Type: " MEDIA_OCI_MANIFEST "; charset=utf-8\r\n",
		       STR(MANIFEST_TEXT));
}

static void a_manifest_needs_no_digest_header(void **state)
{
	struct bench *bench = *state;
	struct digest expected;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, gives_manifest, NULL);
	check_ok(bench_manifest(bench, &digest, &err), &err);
	digest_of(STR(MANIFEST_TEXT), &expected);
	assert_true(digest_equal(&digest, &expected));
	assert_true(bench->flag);
}

static void warns_each_time(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, request->number < 3 ? "503 Busy" : "200 OK",
		       "Warning: 299 - \"Tags go on Friday\"\r\n", STR(MANIFEST_TEXT));
}

static void hears(void *ctx, struct str text)
{
	struct bench *bench = ctx;

	bench->step++;
	(void)snprintf(bench->seen, sizeof(bench->seen), STR_FMT, STR_ARG(text));
}

static void a_registrys_warning_is_told_once(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	char expected[128];
	struct err err = {0};

	bench->spec.warn = hears;
	bench->spec.warn_ctx = bench;
	bench_open(bench, warns_each_time, NULL);
	check_ok(bench_manifest(bench, &digest, &err), &err);
	assert_int_equal(bench->step, 1);
	(void)snprintf(expected, sizeof(expected), "%s says: Tags go on Friday", bench->host);
	assert_string_equal(bench->seen, expected);
}

static void notes_what_is_asked(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	(void)snprintf(bench->seen, sizeof(bench->seen), "%s", request->target);
	standin_answer(request, "200 OK", "", STR(MANIFEST_TEXT));
}

static void a_mirror_is_told_whose_image_is_wanted(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench->spec.source = STR("images.example:5000");
	bench_open(bench, notes_what_is_asked, NULL);
	check_ok(bench_manifest(bench, &digest, &err), &err);
	assert_string_equal(bench->seen, "/v2/acme/tool/manifests/1.0?ns=images.example%3a5000");
}

static void lies_about_digest(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK",
		       "Docker-Content-Digest: sha256:"
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		       STR(MANIFEST_TEXT));
}

static void lies_about_type(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK", "Content-Type: " MEDIA_OCI_INDEX " ; charset=utf-8\r\n",
		       STR(MANIFEST_TEXT));
}

static void a_manifest_that_is_another_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, lies_about_digest, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_CORRUPT);
}

static void a_manifest_of_another_type_is_corrupt(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, lies_about_type, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_CORRUPT);
}

/* What is signed is a part of it, and its digest is the name. */
static void gives_schema_1(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "200 OK",
		       "Content-Type: application/vnd.docker.distribution.manifest.v1+prettyjws\r\n"
		       "Docker-Content-Digest: sha256:"
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		       STR("{\"schemaVersion\":1,\"fsLayers\":[],\"signatures\":[{}]}"));
}

static void schema_1_is_told_and_not_taken_for_damage(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, gives_schema_1, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "schema 1"));
}

static void a_manifest_has_a_ceiling(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, longer_without_a_length, NULL);
	bench->got.max = 1000;
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_LIMIT);
}

/* The largest that the specification wants taken: blanks count. */
static void gives_four_mebibytes(void *ctx, const struct standin_request *request)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct err err = {0};

	(void)ctx;
	check_ok(buf_addf(&text, &err, "%-*s", (int)MANIFEST_MAX, MANIFEST_TEXT), &err);
	standin_answer(request, "200 OK", "", buf_str(&text));
}

static void four_mebibytes_are_a_manifest(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, gives_four_mebibytes, NULL);
	bench->got.max = MANIFEST_MAX;
	check_ok(bench_manifest(bench, &digest, &err), &err);
	assert_int_equal(bench->got.len, MANIFEST_MAX);
	bench->got.max--;
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_LIMIT);
}

static void knows_nothing(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(
		request, "404 Not Found", "",
		STR("{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"manifest unknown\","
		    "\"detail\":{\"Tag\":\"1.0\"}}]}"));
}

static void what_is_not_there_is_not_found(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, knows_nothing, NULL);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text,
			    "1.0 not found: check name and tag; it says: MANIFEST_UNKNOWN: "
			    "manifest unknown");
	check_err(fetch_head(bench->remote, bench->http, "1.0", &digest, &err), &err,
		  ERR_NOT_FOUND);
}

static void answers_head(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	bench->flag = strcmp(request->method, "HEAD") == 0;
	standin_answer(request, "200 OK",
		       "docker-content-digest: sha256:"
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
		       STR(MANIFEST_TEXT));
}

static void head_gives_the_digest(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, answers_head, NULL);
	assert_int_equal(fetch_head(bench->remote, bench->http, "1.0", &digest, &err), 1);
	assert_int_equal(digest.bytes[31], 0xaa);
	assert_true(bench->flag);
}

static void knows_no_head(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "405 Method Not Allowed", "", STR(""));
}

static void forbids_everything(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "403 Forbidden", "", STR(""));
}

static void head_that_is_not_answered_is_a_miss(void **state)
{
	static const struct {
		standin_fn *fn;
		standin_fn *other;
	} ways[] = {{gives_manifest, NULL},
		    {knows_no_head, NULL},
		    {always_503, NULL},
		    {closes_at_once_twice, NULL},
		    {redirects_to_expired, forbids_everything}};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct digest digest;
		struct err err = {0};

		if (i > 0)
			bench = bench_again(state);
		bench_open(bench, ways[i].fn, ways[i].other);
		assert_int_equal(fetch_head(bench->remote, bench->http, "1.0", &digest, &err), 0);
	}
}

static void is_silent(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_await_goodbye(request);
}

static void head_that_meets_silence_is_in_vain(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench->spec.stall_ms = 100;
	bench_open(bench, is_silent, NULL);
	check_err(fetch_head(bench->remote, bench->http, "1.0", &digest, &err), &err, ERR_TIMEOUT);
}

static void nobody_listens(void **state)
{
	struct bench *bench = *state;
	struct digest digest;
	struct err err = {0};

	bench_open(bench, always_503, NULL);
	remote_close(bench->remote);
	bench->remote = NULL;
	bench->spec.host = STR("127.0.0.1:1");
	check_ok(remote_open(&bench->spec, &bench->remote, &err), &err);
	check_err(bench_manifest(bench, &digest, &err), &err, ERR_REMOTE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_manifest_needs_no_digest_header),
		TEST(a_mirror_is_told_whose_image_is_wanted),
		TEST(a_registrys_warning_is_told_once),
		TEST(a_manifest_that_is_another_is_corrupt),
		TEST(a_manifest_of_another_type_is_corrupt),
		TEST(schema_1_is_told_and_not_taken_for_damage),
		TEST(a_manifest_has_a_ceiling),
		TEST(four_mebibytes_are_a_manifest),
		TEST(what_is_not_there_is_not_found),
		TEST(head_gives_the_digest),
		TEST(head_that_is_not_answered_is_a_miss),
		TEST(head_that_meets_silence_is_in_vain),
		TEST(nobody_listens),
	};

	return cmocka_run_group_tests_name("registry/fetch_manifest", tests, NULL, NULL);
}
