/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/gc_versions.h"

#include "bake/agent.h"
#include "bake/gc_plan.h"
#include "bake/image.h"
#include "bake/job.h"
#include "bake/status.h"
#include "layers/journal.h"
#include "registry/tag.h"
#include "sandbox/session.h"
#include "tests/layers/store_fixture.h"

#include <inttypes.h>

#define NOW ((int64_t)1700000000000)

static struct digest named(const char *slug, int64_t version)
{
	char text[64];
	struct digest digest;

	(void)snprintf(text, sizeof(text), "%s %" PRId64, slug, version);
	digest_of(str_of(text), &digest);
	return digest;
}

/* The context that a version names is what its image is called, too: any digest would do. */
static int64_t sync_version(struct store *store, const char *slug, int64_t version)
{
	struct digest context = named(slug, version);
	char digest[DIGEST_TEXT_MAX];
	char text[256];
	auto_agent_synced struct agent_synced synced = {0};
	struct agent_sync sync = {.now_ms = NOW};
	struct err err = {0};

	(void)snprintf(text, sizeof(text),
		       "{\"slug\": \"%s\", \"sandbox\": {\"image\": {\"base\": \"scratch\","
		       " \"context\": \"%s\"}}}",
		       slug, digest_format(&context, digest));
	sync.text = str_of(text);
	check_ok(agent_sync(store, &sync, &synced, &err), &err);
	return synced.agent.latest;
}

static void publish(struct meta *meta, const struct agent *agent, int64_t version,
		    const struct digest *manifest)
{
	AUTO(json) json_t *status = status_new(str_of(agent->id), str_of(agent->slug), version);
	struct image image = {.manifest = *manifest,
			      .size = 5,
			      .layers = 1,
			      .created_ms = NOW + version,
			      .baked_ms = NOW + version,
			      .slug = str_of(agent->slug),
			      .base = STR("scratch")};
	struct status_image served = {.digest = *manifest, .size = 5, .finished_ms = NOW};
	struct job_names names = {str_of(agent->slug), (uint64_t)version, true};
	struct platform platform;
	struct err err = {0};

	platform_host(&platform);
	check_ok(image_put(meta, &image, &err), &err);
	check_ok(job_name_image(meta, manifest, &platform, &names, &err), &err);
	status_set_ready(status, &served);
	check_ok(status_put(meta, status, &err), &err);
}

/* An agent with versions 1 to `count`, each with an image of its own. */
static struct agent make(struct store *store, const char *slug, int64_t count)
{
	struct agent agent;
	struct meta *meta;
	struct err err = {0};

	for (int64_t version = 1; version <= count; version++)
		assert_int_equal(sync_version(store, slug, version), version);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(agent_need(meta, str_of(slug), &agent, &err), &err);
	for (int64_t version = 1; version <= count; version++) {
		struct digest image = named(slug, version);

		publish(meta, &agent, version, &image);
	}
	check_ok(meta_commit(meta, &err), &err);
	return agent;
}

static void forget(struct store *store, int64_t keep)
{
	auto_gc_versions struct gc_versions versions = {.keep = 0};
	struct meta *meta;
	size_t at = 0;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(gc_versions_read(meta, keep, &versions, &err), &err);
	while (at < versions.count)
		check_ok(gc_versions_forget(meta, &versions, &at, 1, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

/* Of each version "r" with a tag, "R" ready without one, "-" a failure, "t" a tag alone. */
static void check_versions(struct store *store, const struct agent *agent, const char *expected)
{
	AUTO(meta) struct meta *meta = NULL;
	char found[64] = "";
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	for (int64_t version = 1; version <= (int64_t)strlen(expected); version++) {
		AUTO(json) json_t *status = NULL;
		auto_buf struct buf name = BUF_INIT(256);
		struct tag tag;
		bool ready;
		int tagged;

		check_ok(status_find(meta, str_of(agent->id), version, &status, &err), &err);
		check_ok(job_format_name(str_of(agent->slug), (uint64_t)version, &name, &err),
			 &err);
		tagged = tag_find_only(meta, buf_str(&name), &tag, &err);
		check_ok(tagged, &err);
		ready = status_is_ready(status);
		found[version - 1] = "-tRr"[2 * ready + tagged];
	}
	assert_string_equal(found, expected);
}

static void the_newest_versions_keep_their_images(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent first = make(store, "a", 5);
	struct agent second = make(store, "b", 2);

	forget(store, INT64_MAX);
	check_versions(store, &first, "rrrrr");
	forget(store, 3);
	check_versions(store, &first, "--rrr");
	check_versions(store, &second, "rr");
	forget(store, 1);
	check_versions(store, &first, "----r");
	forget(store, 0);
	check_versions(store, &first, "----r");
	check_versions(store, &second, "-r");
}

/* The failed versions that were told of. */
static int add_failed(void *ctx, const struct event *event, struct err *err)
{
	int64_t *failed = ctx;

	(void)err;
	if (str_equal(event->type, STR("image.failed")))
		*failed = *failed * 10 + event->version;
	return 0;
}

static void a_forgotten_image_is_told_as_gone(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 2);
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *status = NULL;
	const json_t *error;
	int64_t failed = 0;
	struct err err = {0};

	forget(store, 1);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(status_find(meta, str_of(agent.id), 1, &status, &err), &err);
	assert_string_equal(json_string_value(json_object_get(status, "status")), "failed");
	error = json_object_get(status, "error");
	assert_string_equal(json_string_value(json_object_get(error, "code")), "Gone");
	assert_true(json_is_true(json_object_get(error, "terminal")));
	check_ok(journal_read(meta, 0, add_failed, &failed, &err), &err);
	assert_int_equal(failed, 1);
}

static void a_version_without_an_image_takes_nobodys_place(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 3);
	AUTO(json) json_t *status = status_new(str_of(agent.id), str_of(agent.slug), 4);
	struct meta *meta;
	struct err err = {0};

	assert_int_equal(sync_version(store, "a", 4), 4);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(status_put(meta, status, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	forget(store, 2);
	check_versions(store, &agent, "-rr-");
}

static void open_session(struct store *store, const struct agent *agent, int64_t version,
			 struct session *out)
{
	struct session_request request = {.agent_id = str_of(agent->id),
					  .version = version,
					  .parent_id = STR(""),
					  .subagent = STR(""),
					  .now_ms = NOW};
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(session_create(meta, &request, out, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

static void a_version_with_an_open_session_keeps_its_image(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 4);
	struct session session;
	struct meta *meta;
	struct err err = {0};

	open_session(store, &agent, 2, &session);
	forget(store, 1);
	check_versions(store, &agent, "-r-r");
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(session_end(meta, str_of(session.id), NOW, &session, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	forget(store, 1);
	check_versions(store, &agent, "---r");
}

static void a_session_that_came_meanwhile_keeps_its_image(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 2);
	auto_gc_versions struct gc_versions versions = {.keep = 0};
	struct session session;
	struct meta *meta;
	size_t at = 0;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(gc_versions_read(meta, 1, &versions, &err), &err);
	meta_abort(meta);
	assert_true(gc_versions_names(&versions, STR("localhost/a:1")));
	assert_false(gc_versions_names(&versions, STR("localhost/a:2")));
	open_session(store, &agent, 1, &session);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(gc_versions_forget(meta, &versions, &at, 100, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_versions(store, &agent, "rr");
}

static void a_name_that_stands_for_another_image_stays(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 2);
	struct digest other = named("other", 1);
	struct job_names names = {STR("a"), 1, false};
	struct platform platform;
	struct meta *meta;
	struct err err = {0};

	platform_host(&platform);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(job_name_image(meta, &other, &platform, &names, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	forget(store, 1);
	check_versions(store, &agent, "tr");
}

static void check_plan(struct store *store, int64_t keep, const char *expected)
{
	struct gc_policy policy = GC_POLICY_INIT;
	auto_gc_plan struct gc_plan plan = {0};
	char found[16] = "";
	struct err err = {0};

	policy.keep = keep;
	policy.all = keep == GC_NEVER;
	check_ok(gc_plan_make(store, &policy, &plan, &err), &err);
	for (size_t i = 0; i < plan.image_count; i++)
		found[i] = plan.images[i].goes ? '-' : 'k';
	assert_string_equal(found, expected); /* newest first */
}

static void images_go_with_their_versions(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;

	(void)make(store, "a", 4);
	check_plan(store, GC_NEVER, "kkkk");
	check_plan(store, 2, "kk--"); /* as it would be, before anything was forgotten */
	forget(store, 2);
	check_plan(store, 2, "kk--");
	check_plan(store, GC_NEVER, "kk--");
}

static void an_image_to_go_back_to_stays(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 2);
	struct digest first = named("a", 2);
	struct digest second = named("a", 3);
	struct status_image previous = {.digest = first, .size = 5, .finished_ms = NOW};
	AUTO(json) json_t *status = NULL;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	publish(meta, &agent, 2, &second); /* a rebake */
	check_ok(status_find(meta, str_of(agent.id), 2, &status, &err), &err);
	status_set_previous(status, &previous);
	check_ok(status_put(meta, status, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_plan(store, 1, "kk-");
	check_plan(store, GC_NEVER, "kkk");
}

static void check_context(struct store *store, int64_t keep, const char *expected)
{
	auto_gc_versions struct gc_versions versions = {.keep = 0};
	auto_digest_set struct digest_set kept = {0};
	AUTO(meta) struct meta *meta = NULL;
	char found[16] = "";
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(gc_versions_read(meta, keep, &versions, &err), &err);
	check_ok(gc_versions_contexts(meta, &versions, &kept, &err), &err);
	for (int64_t version = 1; version <= (int64_t)strlen(expected); version++) {
		struct digest context = named("a", version);

		found[version - 1] = digest_set_has(&kept, &context) ? 'k' : '-';
	}
	assert_string_equal(found, expected);
}

static void contexts_of_versions_that_are_kept_stay(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent agent = make(store, "a", 3);
	struct session session;

	assert_int_equal(sync_version(store, "a", 4), 4); /* without images, yet */
	assert_int_equal(sync_version(store, "a", 5), 5);
	assert_int_equal(sync_version(store, "a", 6), 6);
	check_context(store, INT64_MAX, "kkkkkk");
	check_context(store, 2, "-kk-kk");
	check_context(store, 0, "--k--k");
	open_session(store, &agent, 1, &session);
	check_context(store, 1, "k-k--k");
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(the_newest_versions_keep_their_images),
		STORE_TEST(a_forgotten_image_is_told_as_gone),
		STORE_TEST(a_version_without_an_image_takes_nobodys_place),
		STORE_TEST(a_version_with_an_open_session_keeps_its_image),
		STORE_TEST(a_session_that_came_meanwhile_keeps_its_image),
		STORE_TEST(a_name_that_stands_for_another_image_stays),
		STORE_TEST(images_go_with_their_versions),
		STORE_TEST(an_image_to_go_back_to_stays),
		STORE_TEST(contexts_of_versions_that_are_kept_stay),
	};

	return cmocka_run_group_tests_name("bake/gc_versions", tests, NULL, NULL);
}
