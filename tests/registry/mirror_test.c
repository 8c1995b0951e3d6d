/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a request means, and what is asked of him how often. */
#include "registry/mirror_priv.h"
#include "registry/repository.h"
#include "tests/registry/mirror_bench.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Routes */

static int route(struct mirror_bench *bench, const char *name, const char *ns,
		 struct mirror_place *out, struct err *err)
{
	const struct v2_path path = {.kind = V2_MANIFEST,
				     .action = V2_PULL,
				     .repository = str_of(name),
				     .ns = str_of(ns),
				     .reference = STR("1.0")};

	return mirror_route(bench->mirror, &path, out, err);
}

static void check_route(struct mirror_bench *bench, const char *name, const char *ns,
			const char *key)
{
	struct mirror_place place;
	struct err err = {0};

	check_ok(route(bench, name, ns, &place, &err), &err);
	assert_string_equal(place.key, key);
}

static const struct mirror_upstream_spec three[] = {
	{.host = STR("registry-1.docker.io"), .place = STR("127.0.0.1:1"), .tag_ttl_ms = -1},
	{.host = STR("Quay.io:443"), .place = STR("127.0.0.1:2/hub/quay"), .tag_ttl_ms = -1},
	{.host = STR("10.0.0.1:5000"), .place = STR("127.0.0.1:3"), .tag_ttl_ms = -1},
};

static void open_three(struct mirror_bench *bench, const char *fallback)
{
	bench->options.upstreams = three;
	bench->options.upstream_count = 3;
	bench->options.default_host = str_of(fallback);
	mirror_bench_open(bench, upstream_serves, NULL);
}

static void an_upstream_is_named_by_ns_or_by_the_first_part(void **state)
{
	struct mirror_bench *bench = *state;

	open_three(bench, "");
	check_route(bench, "library/alpine", "docker.io", "docker.io/library/alpine");
	check_route(bench, "docker.io/library/alpine", "", "docker.io/library/alpine");
	check_route(bench, "acme/tool", "10.0.0.1:5000", "10.0.0.1:5000/acme/tool");
	check_route(bench, "quay.io/acme/tool", "", "quay.io/acme/tool");
	/* ns goes first: that may be the name of an image there. */
	check_route(bench, "quay.io/acme/tool", "docker.io", "docker.io/quay.io/acme/tool");
}

static void the_names_of_a_host_are_one(void **state)
{
	struct mirror_bench *bench = *state;

	open_three(bench, "");
	check_route(bench, "library/alpine", "Docker.IO", "docker.io/library/alpine");
	check_route(bench, "library/alpine", "index.docker.io", "docker.io/library/alpine");
	check_route(bench, "registry-1.docker.io/library/alpine", "", "docker.io/library/alpine");
	check_route(bench, "acme/tool", "quay.io:443", "quay.io/acme/tool");
	check_route(bench, "acme/tool", "QUAY.IO", "quay.io/acme/tool");
}

static void a_short_name_of_the_hub_is_a_library_s(void **state)
{
	struct mirror_bench *bench = *state;

	open_three(bench, "docker.io");
	check_route(bench, "alpine", "docker.io", "docker.io/library/alpine");
	check_route(bench, "docker.io/alpine", "", "docker.io/library/alpine");
	check_route(bench, "alpine", "", "docker.io/library/alpine");
	check_route(bench, "alpine", "quay.io", "quay.io/alpine");
	check_route(bench, "acme/tool", "", "docker.io/acme/tool");
}

static void a_listener_may_be_an_upstream_s(void **state)
{
	struct mirror_bench *bench = *state;
	struct v2_path path = {.kind = V2_BLOB,
			       .action = V2_PULL,
			       .repository = STR("acme/tool"),
			       .door = STR("Quay.io:443")};
	struct mirror_place place;
	struct err err = {0};

	open_three(bench, "docker.io");
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 1);
	assert_string_equal(place.key, "quay.io/acme/tool");
	path.ns = STR("docker.io"); /* who names one means that */
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 1);
	assert_string_equal(place.key, "docker.io/acme/tool");
	path.ns = STR("");
	path.action = V2_PUSH; /* and is refused */
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 1);
}

static void who_is_no_upstream_is_refused(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_place place;
	struct err err = {0};

	open_three(bench, "docker.io");
	check_err(route(bench, "library/alpine", "ghcr.io", &place, &err), &err, ERR_DENIED);
	check_err(route(bench, "library/alpine", "quay.io:80", &place, &err), &err, ERR_DENIED);
	check_err(route(bench, "library/alpine", "quay.io.evil.example", &place, &err), &err,
		  ERR_DENIED);
}

static void without_a_default_other_names_are_ours(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_place place;
	struct err err = {0};

	open_three(bench, "");
	assert_int_equal(route(bench, "repo-bot", "", &place, &err), 0);
	assert_int_equal(route(bench, "ghcr.io/acme/tool", "", &place, &err), 0);
	assert_int_equal(route(bench, "quay.io", "", &place, &err), 0);
}

static void hold(struct mirror_bench *bench, const char *name, enum repository_kind kind)
{
	const struct repository_item item = {
		.kind = kind, .digest = {.bytes = {1}}, .blob = {.bytes = {1}}};
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(bench->options.store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, str_of(name), &item, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

/* Whoever pushes would else wait for the upstream at each blob, and tell it what he has. */
static void the_default_hears_of_no_head_before_a_manifest(void **state)
{
	struct mirror_bench *bench = *state;
	struct v2_path path = {
		.kind = V2_BLOB, .action = V2_PULL, .heads = true, .repository = STR("acme/tool")};
	struct mirror_place place;
	struct err err = {0};

	open_three(bench, "docker.io");
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 0);
	path.heads = false; /* who wants it has read of it somewhere */
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 1);
	assert_true(place.is_new);
	path.heads = true;
	hold(bench, "docker.io/acme/tool", REPOSITORY_MANIFEST);
	assert_int_equal(mirror_route(bench->mirror, &path, &place, &err), 1);
	assert_true(place.by_default);
	assert_false(place.is_new);
}

static void a_name_is_ours_from_its_first_blob_on(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_place place;
	struct err err = {0};

	open_three(bench, "docker.io");
	assert_int_equal(route(bench, "acme/tool", "", &place, &err), 1);
	hold(bench, "acme/tool", REPOSITORY_BLOB);
	assert_int_equal(route(bench, "acme/tool", "", &place, &err), 0);
	check_route(bench, "acme/tool", "docker.io", "docker.io/acme/tool");
}

/* What a request for a manifest of a repository is judged by. */
static void check_name(struct mirror_bench *bench, struct str repository, struct str ns,
		       struct str wanted)
{
	struct v2_call call = {.v2 = &bench->v2,
			       .path = {.kind = V2_MANIFEST,
					.action = V2_PULL,
					.repository = repository,
					.ns = ns,
					.reference = STR("1.0")}};

	assert_true(str_equal(v2_name(&call), wanted));
}

static void permissions_are_about_the_name_with_its_host(void **state)
{
	struct mirror_bench *bench = *state;

	open_three(bench, "docker.io");
	check_name(bench, STR("alpine"), STR(""), STR("docker.io/library/alpine"));
	hold(bench, "alpine", REPOSITORY_BLOB);
	check_name(bench, STR("alpine"), STR(""), STR("alpine"));
	check_name(bench, STR("alpine"), STR("index.docker.io"), STR("docker.io/library/alpine"));
	check_name(bench, STR("alpine"), STR("ghcr.io"), STR("ghcr.io/alpine"));
}

static void a_name_that_is_too_long_with_its_host_is_refused(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_place place;
	struct err err = {0};
	char name[256];

	open_three(bench, "");
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	check_err(route(bench, name, "quay.io", &place, &err), &err, ERR_INVALID);
}

static void an_upstream_is_given_once(void **state)
{
	static const struct mirror_upstream_spec twice[] = {
		{.host = STR("docker.io"), .place = STR("a.example")},
		{.host = STR("index.docker.io"), .place = STR("b.example")},
	};
	struct mirror_bench *bench = *state;
	struct mirror *mirror;
	struct err err = {0};

	bench->options.upstreams = twice;
	bench->options.upstream_count = 2;
	check_err(mirror_open(&bench->options, &mirror, &err), &err, ERR_INVALID);
}

/* What is asked */

static void a_tag_is_asked_for_once_in_its_time(void **state)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = BENCH_TAG};
	struct mirror_bench *bench = *state;
	struct mirror_got got;

	mirror_bench_open(bench, upstream_serves, NULL);
	for (int i = 0; i < 3; i++) {
		mirror_bench_ask(bench, &want, &got);
		check_is_manifest(bench, &got);
		mirror_got_done(&got);
	}
	assert_int_equal(atomic_load(&bench->server.requests), 1);
	assert_int_equal(atomic_load(&bench->manifests), 1);
}

static void then_one_head_says_that_it_still_is_the_same(void **state)
{
	struct mirror_bench *bench = *state;

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, upstream_serves, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(atomic_load(&bench->manifests), 1);
	assert_int_equal(atomic_load(&bench->heads), 2);
}

/* Who has looked in vain, a moment before it came, is a new asker of it a moment later. */
static void check_is_not_asked_for(struct mirror_bench *bench, enum mirror_kind kind,
				   const char *name)
{
	struct mirror_place place;
	struct mirror_wish wish = {.kind = kind, .place = &place, .name = str_of(name)};
	AUTO(mirror_task) struct mirror_task *task = NULL;
	struct digest digest;
	struct err err = {0};

	check_ok(route(bench, BENCH_UP "/acme/tool", "", &place, &err), &err);
	if (digest_parse(str_of(name), &digest, &err) == 0)
		wish.digest = &digest;
	check_ok(mirror_start(bench->mirror, &wish, &task, &err), &err);
	while (!mirror_task_is_done(task))
		(void)sched_yield();
	check_ok(task->result, &task->err);
}

static void what_came_meanwhile_is_not_asked_for_again(void **state)
{
	struct mirror_bench *bench = *state;
	char path[512];

	mirror_bench_open(bench, upstream_serves, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(
		mirror_bench_status(bench, mirror_bench_path("blobs", bench->blob_name, path)),
		200);
	check_is_not_asked_for(bench, MIRROR_TAG, "1.0");
	check_is_not_asked_for(bench, MIRROR_MANIFEST, bench->manifest_name);
	check_is_not_asked_for(bench, MIRROR_FILL, bench->blob_name);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

static void digests_are_asked_for_once(void **state)
{
	struct mirror_bench *bench = *state;
	char manifest[512];
	char blob[512];

	bench->spec.tag_ttl_ms = 0;
	mirror_bench_open(bench, upstream_serves, NULL);
	(void)mirror_bench_path("manifests", bench->manifest_name, manifest);
	(void)mirror_bench_path("blobs", bench->blob_name, blob);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mirror_bench_status(bench, manifest), 200);
		assert_int_equal(mirror_bench_status(bench, blob), 200);
	}
	assert_int_equal(atomic_load(&bench->server.requests), 2);
	mirror_bench_reopen(bench);
	assert_int_equal(mirror_bench_status(bench, manifest), 200);
	assert_int_equal(mirror_bench_status(bench, blob), 200);
	assert_int_equal(atomic_load(&bench->server.requests), 2);
}

/* The tag of every repository is the same image. */
static void tags_alike(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	atomic_fetch_add(&bench->heads, strcmp(request->method, "HEAD") == 0);
	atomic_fetch_add(&bench->manifests, strcmp(request->method, "GET") == 0);
	upstream_say_manifest(bench, request);
}

static void a_tag_of_what_is_here_costs_a_head(void **state)
{
	struct mirror_bench *bench = *state;

	mirror_bench_open(bench, tags_alike, NULL);
	assert_int_equal(mirror_bench_status(bench, BENCH_TAG), 200);
	assert_int_equal(mirror_bench_status(bench, "/v2/" BENCH_UP "/acme/tool/manifests/2.0"),
			 200);
	assert_int_equal(atomic_load(&bench->manifests), 1);
	assert_int_equal(atomic_load(&bench->heads), 1);
}

static void hangs(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;

	while (!atomic_load(&bench->flag))
		(void)sched_yield();
	upstream_serves(bench, request);
}

static void an_upstream_that_hangs_keeps_no_thread_from_another(void **state)
{
	struct mirror_bench *bench = *state;
	struct mirror_want want = {.method = HTTP_GET, .impatient = true};
	struct mirror_upstream_spec two[2];
	struct mirror_report report;
	char other[64];
	char path[64];

	bench->options.stall_ms = 3600000;
	mirror_bench_open(bench, hangs, upstream_serves);
	(void)snprintf(other, sizeof(other), "127.0.0.1:%u", bench->other.port);
	two[0] = two[1] = bench->spec;
	two[1].host = STR("other.example");
	two[1].place = str_of(other);
	bench->options.upstreams = two;
	bench->options.upstream_count = 2;
	mirror_bench_reopen(bench);
	for (size_t i = 0; i < MIRROR_THREADS_MAX + 4; i++) {
		struct mirror_got got;

		(void)snprintf(path, sizeof(path), "/v2/" BENCH_UP "/acme/n%zu/manifests/1", i);
		want.path = path;
		mirror_bench_ask(bench, &want, &got);
		assert_int_equal(got.status, 503);
		mirror_got_done(&got);
	}
	assert_int_equal(mirror_bench_status(bench, "/v2/other.example/acme/tool/manifests/1.0"),
			 200);
	/* Of the first nothing was heard yet. */
	assert_true(mirror_report(bench->mirror, 0, &report));
	assert_int_equal(report.health, MIRROR_UNASKED);
	atomic_store(&bench->flag, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(an_upstream_is_named_by_ns_or_by_the_first_part),
		TEST(the_names_of_a_host_are_one),
		TEST(a_short_name_of_the_hub_is_a_library_s),
		TEST(a_listener_may_be_an_upstream_s),
		TEST(who_is_no_upstream_is_refused),
		TEST(without_a_default_other_names_are_ours),
		TEST(the_default_hears_of_no_head_before_a_manifest),
		TEST(a_name_is_ours_from_its_first_blob_on),
		TEST(permissions_are_about_the_name_with_its_host),
		TEST(a_name_that_is_too_long_with_its_host_is_refused),
		TEST(an_upstream_is_given_once),
		TEST(a_tag_is_asked_for_once_in_its_time),
		TEST(then_one_head_says_that_it_still_is_the_same),
		TEST(what_came_meanwhile_is_not_asked_for_again),
		TEST(digests_are_asked_for_once),
		TEST(a_tag_of_what_is_here_costs_a_head),
		TEST(an_upstream_that_hangs_keeps_no_thread_from_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
