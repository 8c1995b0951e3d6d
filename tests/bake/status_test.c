/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/live.h"
#include "layers/base/clock.h"
#include "tests/layers/store_fixture.h"

#define AGENT "agt_01jd0000000000000000000001"
#define NOW_MS ((int64_t)1700000000000)

static json_t *status_of(int64_t version)
{
	return status_new(STR(AGENT), STR("repo-bot"), version);
}

static void put(struct store *store, const json_t *status)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(status_put(meta, status, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

struct answer {
	struct buf body;
	char etag[STATUS_ETAG_MAX];
	json_t *parsed;
};

static void read_into(struct store *store, struct live *live, int64_t version, struct answer *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	*out = (struct answer){.body = BUF_INIT(STATUS_BODY_MAX)};
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	assert_int_equal(
		live ? live_read(live, meta, STR(AGENT), version, &out->body, out->etag, &err)
		     : status_read(meta, STR(AGENT), version, &out->body, out->etag, &err),
		1);
	check_ok(json_parse(buf_str(&out->body), STATUS_BODY_MAX, &out->parsed, &err), &err);
}

static void answer_done(struct answer *answer)
{
	buf_done(&answer->body);
	json_decref(answer->parsed);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static struct status_image image_of(const char *name, int64_t finished_ms)
{
	struct status_image image = {.size = 100, .finished_ms = finished_ms};

	digest_of(str_of(name), &image.digest);
	return image;
}

static void an_answer_is_the_document_and_nothing_of_ours(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *status = status_of(1);
	struct answer answer;
	struct digest digest;
	char hex[DIGEST_HEX_MAX];

	status_set_queued(status);
	put(fixture->store, status);
	read_into(fixture->store, NULL, 1, &answer);
	assert_string_equal(answer.body.ptr,
			    "{\"agentId\":\"" AGENT "\",\"slug\":\"repo-bot\",\"version\":1,"
			    "\"status\":\"baking\",\"phase\":\"queued\"}");
	digest_of(buf_str(&answer.body), &digest);
	assert_memory_equal(answer.etag, digest_hex(&digest, hex), STATUS_ETAG_MAX - 1);
	answer_done(&answer);
}

static void the_agents_own_answer_is_its_latest_versions(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *first = status_of(9);
	AUTO(json) json_t *second = status_of(10);
	struct answer answer;

	put(fixture->store, first);
	put(fixture->store, second);
	status_set_queued(first); /* an older version goes on */
	put(fixture->store, first);
	read_into(fixture->store, NULL, 0, &answer);
	assert_int_equal(status_version(answer.parsed), 10);
	answer_done(&answer);
	read_into(fixture->store, NULL, 9, &answer);
	assert_string_equal(text_of(answer.parsed, "status"), "baking");
	answer_done(&answer);
}

static void who_is_not_there_has_no_status(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *status = status_of(1);
	AUTO(meta) struct meta *meta = NULL;
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	char etag[STATUS_ETAG_MAX];
	char text[600];
	struct err err = {0};

	memset(text, 'x', sizeof(text));
	put(fixture->store, status);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(status_read(meta, STR(AGENT), 2, &body, etag, &err), 0);
	assert_int_equal(status_read(meta, STR("agt_"), 0, &body, etag, &err), 0);
	assert_int_equal(status_read(meta, (struct str){text, sizeof(text)}, 3, &body, etag, &err),
			 0);
	assert_int_equal(status_read(meta, (struct str){text, sizeof(text)}, 0, &body, etag, &err),
			 0);
}

static void a_version_goes_from_queued_to_ready(void **state)
{
	AUTO(json) json_t *status = status_of(1);
	AUTO(json) json_t *error = json_pack("{s:s}", "code", "UpstreamFailed");
	struct status_image image = image_of("a", NOW_MS + 3);
	struct status_image found;

	(void)state;
	assert_string_equal(text_of(status, "status"), "none");
	status_set_queued(status);
	status_set_running(status, 1, NOW_MS);
	assert_string_equal(text_of(status, "phase"), "pulling");
	assert_string_equal(text_of(status, "startedAt"), "2023-11-14T22:13:20.000Z");
	status_set_waiting(status, NOW_MS + 5000, error);
	assert_string_equal(text_of(status, "status"), "baking");
	assert_string_equal(text_of(status, "phase"), "waiting");
	assert_string_equal(text_of(status, "retryAt"), "2023-11-14T22:13:25.000Z");
	assert_non_null(json_object_get(status, "error"));
	status_set_running(status, 2, NOW_MS);
	assert_null(json_object_get(status, "error"));
	assert_null(json_object_get(status, "retryAt"));
	assert_false(status_is_ready(status));
	status_set_ready(status, &image);
	assert_true(status_is_ready(status));
	assert_null(json_object_get(status, "phase"));
	assert_int_equal(json_integer_value(json_object_get(status, "attempt")), 2);
	assert_true(status_image(status, &found));
	assert_true(digest_equal(&found.digest, &image.digest));
	assert_int_equal(found.size, 100);
	assert_int_equal(found.finished_ms, NOW_MS + 3);
}

static void a_failure_keeps_its_error_and_no_phase(void **state)
{
	AUTO(json) json_t *status = status_of(1);
	AUTO(json) json_t *error = json_pack("{s:s, s:b}", "code", "StepRefused", "terminal", 1);

	(void)state;
	status_set_queued(status);
	status_set_running(status, 1, NOW_MS);
	status_set_failed(status, error, NOW_MS + 1);
	assert_string_equal(text_of(status, "status"), "failed");
	assert_string_equal(text_of(json_object_get(status, "error"), "code"), "StepRefused");
	assert_null(json_object_get(status, "phase"));
	assert_non_null(json_object_get(status, "finishedAt"));
}

static void what_it_served_before_is_told_and_forgotten(void **state)
{
	AUTO(json) json_t *status = status_of(1);
	struct status_image image = image_of("a", NOW_MS);
	struct status_image found;

	(void)state;
	assert_false(status_previous(status, &found));
	image.started_ms = NOW_MS - 1000;
	status_set_previous(status, &image);
	assert_true(status_previous(status, &found));
	assert_true(digest_equal(&found.digest, &image.digest));
	assert_int_equal(found.started_ms, NOW_MS - 1000);
	assert_int_equal(found.finished_ms, NOW_MS);
	status_set_previous(status, NULL);
	assert_false(status_previous(status, &found));
}

static void members_of_newer_programs_survive(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *status = status_of(1);
	AUTO(json) json_t *again = NULL;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	(void)json_object_set_new(status, "signedBy", json_string("somebody"));
	put(fixture->store, status);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(status_find(meta, STR(AGENT), 0, &again, &err), 1);
	assert_true(json_equal(status, again));
}

static void the_steps_of_a_running_bake_are_seen_instead_of_what_is_stored(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(live) struct live *live = live_new(2);
	AUTO(json) json_t *status = status_of(1);
	struct status_progress progress = {
		.phase = "running", .step = 2, .of = 5, .text = STR("RUN make"), .cached = false};
	struct answer stored;
	struct answer seen;
	struct err err = {0};

	status_set_running(status, 1, NOW_MS);
	put(fixture->store, status);
	read_into(fixture->store, live, 0, &stored);
	check_ok(live_show(live, 1, stored.etag, status, &progress, &err), &err);
	read_into(fixture->store, live, 0, &seen);
	assert_string_not_equal(seen.etag, stored.etag);
	assert_string_equal(text_of(seen.parsed, "phase"), "running");
	assert_string_equal(text_of(json_object_get(seen.parsed, "step"), "text"), "RUN make");
	answer_done(&seen);
	live_hide(live, 1);
	read_into(fixture->store, live, 1, &seen);
	assert_string_equal(seen.etag, stored.etag);
	answer_done(&seen);
	answer_done(&stored);
}

static void what_was_shown_instead_of_a_status_goes_with_it(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(live) struct live *live = live_new(1);
	AUTO(json) json_t *status = status_of(1);
	struct status_progress progress = {.phase = "exporting", .text = STR("")};
	struct status_image image = image_of("a", NOW_MS);
	struct answer answer;
	struct err err = {0};

	put(fixture->store, status);
	read_into(fixture->store, NULL, 0, &answer);
	check_ok(live_show(live, 0, answer.etag, status, &progress, &err), &err);
	answer_done(&answer);
	status_set_ready(status, &image);
	put(fixture->store, status);
	read_into(fixture->store, live, 0, &answer);
	assert_string_equal(text_of(answer.parsed, "status"), "ready");
	answer_done(&answer);
}

static void a_rebakes_steps_are_in_the_rebake_while_the_old_image_serves(void **state)
{
	AUTO(json) json_t *status = status_of(1);
	struct status_progress progress = {
		.phase = "running", .step = 1, .of = 1, .text = STR("RUN a"), .cached = true};
	struct status_image image = image_of("a", NOW_MS);
	const json_t *rebake;

	(void)state;
	status_set_ready(status, &image);
	status_set_rebake(status, "bak_1", "baking", NOW_MS, NULL);
	status_set_progress(status, &progress);
	rebake = json_object_get(status, "rebake");
	assert_string_equal(text_of(status, "status"), "ready");
	assert_null(json_object_get(status, "phase"));
	assert_string_equal(text_of(rebake, "phase"), "running");
	assert_true(json_is_true(json_object_get(json_object_get(rebake, "step"), "cached")));
}

struct seen {
	char states[64]; /* of each version, "2:ready " */
};

static int see(void *ctx, const json_t *status, struct err *err)
{
	struct seen *seen = ctx;
	size_t used = strlen(seen->states);

	(void)err;
	(void)snprintf(seen->states + used, sizeof(seen->states) - used, "%d:%s ",
		       (int)status_version(status),
		       json_string_value(json_object_get(status, "status")));
	return 0;
}

static void every_version_is_told_once(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(json) json_t *first = status_of(1);
	AUTO(json) json_t *second = status_of(2);
	AUTO(meta) struct meta *meta = NULL;
	struct status_image image = image_of("now", NOW_MS);
	struct seen seen = {""};
	struct err err = {0};

	status_set_ready(first, &image);
	put(fixture->store, first);
	put(fixture->store, second);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(status_each(meta, see, &seen, &err), &err);
	assert_string_equal(seen.states, "1:ready 2:none ");
}

static void an_image_that_was_collected_leaves_a_failure(void **state)
{
	AUTO(json) json_t *status = status_of(1);
	AUTO(json) json_t *error = json_pack("{s:s}", "code", "Gone");
	struct status_image now = image_of("now", NOW_MS);
	struct status_image before = image_of("before", NOW_MS);

	(void)state;
	status_set_ready(status, &now);
	status_set_previous(status, &before);
	status_set_collected(status, error, NOW_MS);
	assert_false(status_is_ready(status));
	assert_false(status_image(status, &now));
	assert_false(status_previous(status, &before));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(status, "error"), "code")),
		"Gone");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_is_the_document_and_nothing_of_ours),
		TEST(the_agents_own_answer_is_its_latest_versions),
		TEST(who_is_not_there_has_no_status),
		cmocka_unit_test(a_version_goes_from_queued_to_ready),
		cmocka_unit_test(a_failure_keeps_its_error_and_no_phase),
		cmocka_unit_test(what_it_served_before_is_told_and_forgotten),
		TEST(members_of_newer_programs_survive),
		TEST(the_steps_of_a_running_bake_are_seen_instead_of_what_is_stored),
		TEST(what_was_shown_instead_of_a_status_goes_with_it),
		cmocka_unit_test(a_rebakes_steps_are_in_the_rebake_while_the_old_image_serves),
		TEST(every_version_is_told_once),
		cmocka_unit_test(an_image_that_was_collected_leaves_a_failure),
	};

	return cmocka_run_group_tests_name("bake/status", tests, NULL, NULL);
}
