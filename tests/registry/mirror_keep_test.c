/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of upstreams, for how long, and how they fare. */
#include "layers/base/clock.h"
#include "layers/use.h"
#include "registry/mirror.h"
#include "registry/mirror_trim.h"
#include "registry/repository.h"
#include "tests/registry/mirror_bench.h"

static const struct platform amd64 = {.os = "linux", .architecture = "amd64"};

static bool holds(struct mirror_bench *bench, enum repository_kind kind, const char *name)
{
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct digest digest;
	struct err err = {0};
	int found;

	check_ok(digest_parse(str_of(name), &digest, &err), &err);
	check_ok(meta_begin(bench->fixture->store, META_READ, &meta, &err), &err);
	found = repository_find(meta, STR(BENCH_UP "/acme/tool"), kind, &digest, &item, &err);
	check_ok(found, &err);
	return found == 1;
}

static void fetch_image(struct mirror_bench *bench)
{
	char path[512];

	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(
		mirror_bench_status(bench, mirror_bench_path("blobs", bench->blob_name, path)),
		200);
}

static uint64_t trim(struct mirror_bench *bench)
{
	uint64_t bytes = 42;
	struct err err = {0};

	check_ok(mirror_trim(bench->mirror, NULL, &bytes, &err), &err);
	return bytes;
}

/* Trims */

/* Ask for the tag until that is noted as later than anything before; the kernel's clock has ticks.
 */
static void use_tag(struct mirror_bench *bench)
{
	int64_t now_ms = clock_now_ms();
	int64_t used_ms = 0;
	struct digest digest;
	struct err err = {0};

	check_ok(digest_parse(str_of(bench->manifest_name), &digest, &err), &err);
	while (used_ms <= now_ms) {
		assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
		check_ok(use_find(bench->fixture->store, &digest, &used_ms, &err), &err);
	}
}

static void below_its_size_nothing_goes(void **state)
{
	struct mirror_bench *bench = *state;

	bench->spec.max_bytes = BENCH_BLOB_SIZE + 1000;
	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	assert_int_equal(trim(bench), 0);
	assert_true(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	assert_false(mirror_may_be_over(bench->mirror));
}

static void what_was_used_longest_ago_goes_first(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	bench->spec.max_bytes = BENCH_BLOB_SIZE;
	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	/* The tag is used again; the blob was not since. */
	use_tag(bench);
	assert_true(mirror_may_be_over(bench->mirror));
	assert_int_equal(trim(bench), BENCH_BLOB_SIZE);
	assert_false(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	assert_true(holds(bench, REPOSITORY_MANIFEST, bench->manifest_name));
	assert_false(mirror_may_be_over(bench->mirror));
	/* It comes again when somebody wants it. */
	assert_int_equal(
		mirror_bench_status(bench, mirror_bench_path("blobs", bench->blob_name, path)),
		200);
	assert_true(holds(bench, REPOSITORY_BLOB, bench->blob_name));
}

static void a_program_that_mirrors_nothing_trims_as_well(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_upstream_spec upstreams[] = {{.host = STR("other.example"), .max_bytes = 1},
						   {.host = STR(BENCH_UP ":443")}};
	struct mirror_trim_spec spec = {
		.store = bench->fixture->store, .upstreams = upstreams, .upstream_count = 2};
	uint64_t bytes = 42;
	struct err err = {0};

	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	use_tag(bench);
	mirror_close(bench->mirror);
	bench->mirror = NULL;
	check_ok(mirror_trim_store(&spec, &bytes, &err), &err);
	assert_int_equal(bytes, 0);
	upstreams[1].max_bytes = BENCH_BLOB_SIZE;
	spec.dry_run = true;
	check_ok(mirror_trim_store(&spec, &bytes, &err), &err);
	assert_int_equal(bytes, BENCH_BLOB_SIZE);
	assert_true(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	spec.dry_run = false;
	check_ok(mirror_trim_store(&spec, &bytes, &err), &err);
	assert_int_equal(bytes, BENCH_BLOB_SIZE);
	assert_false(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	assert_true(holds(bench, REPOSITORY_MANIFEST, bench->manifest_name));
}

static void the_oldest_of_all_makes_room(void **state)
{
	struct mirror_bench *bench = *state;
	const struct mirror_trim_spec spec = {.store = bench->fixture->store};
	uint64_t bytes;
	struct err err = {0};

	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	use_tag(bench);
	check_ok(mirror_trim_oldest(&spec, 0, &bytes, &err), &err);
	assert_int_equal(bytes, 0);
	check_ok(mirror_trim_oldest(&spec, 1, &bytes, &err), &err);
	assert_int_equal(bytes, BENCH_BLOB_SIZE);
	assert_false(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	assert_true(holds(bench, REPOSITORY_MANIFEST, bench->manifest_name));
}

static void what_is_being_read_stays(void **state)
{
	struct mirror_bench *bench = *state;
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	struct http_stream *stream;
	struct mirror_got got;
	char path[512];
	struct mirror_want want = {.method = HTTP_GET};

	bench->spec.max_bytes = 1;
	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	want.path = mirror_bench_path("blobs", bench->blob_name, path);
	want.response = &response; /* it is not read */
	mirror_bench_ask(bench, &want, &got);
	stream = response.stream;
	assert_non_null(stream);
	(void)trim(bench);
	assert_true(holds(bench, REPOSITORY_BLOB, bench->blob_name));
	assert_false(holds(bench, REPOSITORY_MANIFEST, bench->manifest_name));
	http_response_clear(&response);
	assert_int_equal(trim(bench), BENCH_BLOB_SIZE);
	assert_false(holds(bench, REPOSITORY_BLOB, bench->blob_name));
}

static void without_a_limit_all_stays(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	assert_int_equal(trim(bench), 0);
	assert_true(holds(bench, REPOSITORY_BLOB, bench->blob_name));
}

/* Years pass: what a record says of its time is put back by the test. */
static void age(struct mirror_bench *bench, const char *key)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	struct err err = {0};

	check_ok(meta_begin(bench->fixture->store, META_WRITE, &meta, &err), &err);
	assert_int_equal(meta_get(meta, "upstreams", str_of(key), &record, &err), 1);
	json_set_text(record, "checkedAt", "2020-01-01T00:00:00.000Z");
	check_ok(meta_put(meta, "upstreams", str_of(key), record, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static bool knows(struct mirror_bench *bench, const char *key)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(bench->fixture->store, META_READ, &meta, &err), &err);
	return meta_has(meta, "upstreams", str_of(key), &err) == 1;
}

static void old_words_go_but_for_tags_of_what_is_here(void **state)
{
	static const char *const tag = BENCH_UP "/acme/tool:1.0";
	struct mirror_bench *bench = *state;
	char path[512];
	char list[512];

	mirror_bench_open(bench, upstream_serves, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(mirror_bench_status(
				 bench, mirror_bench_path("referrers", bench->manifest_name, path)),
			 200);
	(void)snprintf(list, sizeof(list), BENCH_UP "/acme/tool?%s", bench->manifest_name);
	(void)trim(bench);
	assert_true(knows(bench, tag) && knows(bench, list));
	age(bench, tag);
	age(bench, list);
	(void)trim(bench);
	assert_true(knows(bench, tag));
	assert_false(knows(bench, list));
	mirror_close(bench->mirror);
	bench->mirror = NULL;
	bench->spec.max_bytes = 1;
	mirror_bench_reopen(bench);
	(void)trim(bench); /* its manifest goes */
	(void)trim(bench);
	assert_false(knows(bench, tag));
}

/* Warming */

static void warming_fetches_all_of_an_image(void **state)
{
	const struct mirror_warm_spec spec = {.platform = amd64};
	struct mirror_bench *bench = *state;
	struct mirror_warmed warmed;
	char name[DIGEST_TEXT_MAX];
	struct err err = {0};

	mirror_bench_open(bench, upstream_serves, NULL);
	check_ok(mirror_warm(bench->mirror, STR(BENCH_UP "/acme/tool:1.0"), &spec, &warmed, &err),
		 &err);
	assert_string_equal(digest_format(&warmed.digest, name), bench->manifest_name);
	assert_int_equal(warmed.manifests, 1);
	assert_int_equal(warmed.blobs, 1);
	assert_int_equal(warmed.fetched, 1);
	assert_int_equal(warmed.fetched_bytes, BENCH_BLOB_SIZE);
	check_ok(mirror_warm(bench->mirror, STR(BENCH_UP "/acme/tool:1.0"), &spec, &warmed, &err),
		 &err);
	assert_int_equal(warmed.fetched, 0);
	standin_stop(&bench->server);
	fetch_image(bench);
}

/* An index of two platforms, of which only the first one's manifest is there. */
static void has_an_index(void *ctx, const struct standin_request *request)
{
	const struct mirror_bench *bench = ctx;
	char text[1024];

	if (!strstr(request->target, "/manifests/2.0")) {
		upstream_serves(ctx, request);
		return;
	}
	(void)snprintf(
		text, sizeof(text),
		"{\"schemaVersion\": 2, \"mediaType\": "
		"\"application/vnd.oci.image.index.v1+json\", \"manifests\": [{\"mediaType\": "
		"\"application/vnd.oci.image.manifest.v1+json\", \"digest\": \"%s\", \"size\": "
		"%zu, \"platform\": {\"os\": \"linux\", \"architecture\": \"amd64\"}}, "
		"{\"mediaType\": \"application/vnd.oci.image.manifest.v1+json\", \"digest\": "
		"\"sha256:%064d\", \"size\": 7, \"platform\": {\"os\": \"linux\", "
		"\"architecture\": \"arm64\"}}]}",
		bench->manifest_name, strlen(bench->manifest), 7);
	standin_answer(request, "200 OK", "", str_of(text));
}

static void one_platform_is_enough_unless_all_are_wanted(void **state)
{
	struct mirror_warm_spec spec = {.platform = amd64};
	struct mirror_bench *bench = *state;
	struct mirror_warmed warmed;
	struct err err = {0};

	mirror_bench_open(bench, has_an_index, NULL);
	check_ok(mirror_warm(bench->mirror, STR(BENCH_UP "/acme/tool:2.0"), &spec, &warmed, &err),
		 &err);
	assert_int_equal(warmed.manifests, 2);
	assert_int_equal(warmed.blobs, 1);
	spec.all_platforms = true;
	check_err(mirror_warm(bench->mirror, STR(BENCH_UP "/acme/tool:2.0"), &spec, &warmed, &err),
		  &err, ERR_NOT_FOUND);
}

static void only_upstreams_are_warmed(void **state)
{
	const struct mirror_warm_spec spec = {.platform = amd64};
	struct mirror_bench *bench = *state;
	struct mirror_warmed warmed;
	struct err err = {0};

	mirror_bench_open(bench, upstream_serves, NULL);
	check_err(mirror_warm(bench->mirror, STR("other.example/acme/tool"), &spec, &warmed, &err),
		  &err, ERR_INVALID);
	check_err(mirror_warm(bench->mirror, STR("oci:/nowhere"), &spec, &warmed, &err), &err,
		  ERR_INVALID);
	atomic_store(&bench->down, true);
	check_err(mirror_warm(bench->mirror, STR(BENCH_UP "/acme/tool:1.0"), &spec, &warmed, &err),
		  &err, ERR_REMOTE);
}

/* Connections */

/* Its connection stays open until the mirror lets it go. */
static void keeps_a_connection(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	upstream_say_manifest(bench, request);
	standin_await_goodbye(request);
	atomic_store(&bench->flag, true);
}

static void who_has_nothing_to_do_keeps_no_connection(void **state)
{
	struct mirror_bench *bench = *state;

	bench->options.idle_ms = 1;
	mirror_bench_open(bench, keeps_a_connection, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	while (!atomic_load(&bench->flag))
		(void)sched_yield();
	/* The thread that did goes on. */
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/2.0"),
			 200);
	assert_int_equal(atomic_load(&bench->server.clients), 2);
}

/* Reports */

static void a_report_says_how_an_upstream_fares(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_report report;

	mirror_bench_open(bench, upstream_serves, NULL);
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_int_equal(report.health, MIRROR_UNASKED);
	assert_int_equal(report.remaining, -1);
	fetch_image(bench);
	fetch_image(bench);
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_string_equal(report.host, BENCH_UP);
	assert_int_equal(report.health, MIRROR_HEALTHY);
	assert_int_equal(report.limit, 100);
	assert_int_equal(report.remaining, 76);
	assert_int_equal(report.hits, 2);
	assert_int_equal(report.misses, 2);
	assert_int_equal(report.requests, 2);
	assert_int_equal(report.errors, 0);
	assert_int_equal(report.fetched_bytes, BENCH_BLOB_SIZE + strlen(bench->manifest));
	assert_int_equal(report.served_bytes, 2 * report.fetched_bytes);
	atomic_store(&bench->down, true);
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/3"), 503);
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_int_equal(report.health, MIRROR_FAILING);
	assert_true(report.why[0] != '\0' && report.errors > 0 && report.failed_ms > 0);
	assert_null(strstr(report.why, BENCH_UP)); /* of whom it is, the report says */
	assert_false(mirror_report(bench->mirror, 1, &report));
}

static void the_status_is_all_of_them(void **state)
{
	struct mirror_bench *bench = *state;
	AUTO(json) json_t *status = NULL;
	AUTO(json) json_t *none = mirror_status(NULL);
	const json_t *first;

	mirror_bench_open(bench, upstream_serves, NULL);
	fetch_image(bench);
	fetch_image(bench);
	status = mirror_status(bench->mirror);
	first = json_array_get(json_object_get(status, "upstreams"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "host")), BENCH_UP);
	assert_string_equal(json_string_value(json_object_get(first, "health")), "healthy");
	assert_int_equal(json_integer_value(json_object_get(first, "quotaRemaining")), 76);
	assert_int_equal(json_integer_value(json_object_get(first, "savedBytes")),
			 BENCH_BLOB_SIZE + strlen(bench->manifest));
	assert_int_equal(json_array_size(json_object_get(none, "upstreams")), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(below_its_size_nothing_goes),
		TEST(what_was_used_longest_ago_goes_first),
		TEST(a_program_that_mirrors_nothing_trims_as_well),
		TEST(the_oldest_of_all_makes_room),
		TEST(what_is_being_read_stays),
		TEST(without_a_limit_all_stays),
		TEST(old_words_go_but_for_tags_of_what_is_here),
		TEST(warming_fetches_all_of_an_image),
		TEST(one_platform_is_enough_unless_all_are_wanted),
		TEST(only_upstreams_are_warmed),
		TEST(who_has_nothing_to_do_keeps_no_connection),
		TEST(a_report_says_how_an_upstream_fares),
		TEST(the_status_is_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
