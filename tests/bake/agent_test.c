/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/agent.h"
#include "layers/journal.h"
#include "tests/layers/store_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define NOW ((int64_t)1700000000000)
#define SPEC(members) "{\"slug\": \"repo-bot\", \"system\": \"x\"" members "}"

static int try_sync(struct store *store, struct agent_sync sync, struct agent_synced *out,
		    struct err *err)
{
	if (sync.now_ms == 0)
		sync.now_ms = NOW;
	return agent_sync(store, &sync, out, err);
}

static struct agent_synced sync_spec(struct store *store, const char *text)
{
	struct agent_synced out = {.appended = false};
	struct err err = {0};

	check_ok(try_sync(store, (struct agent_sync){.text = str_of(text)}, &out, &err), &err);
	return out;
}

static void check_sync(struct store *store, const char *text, int64_t version, bool appended)
{
	auto_agent_synced struct agent_synced out = sync_spec(store, text);

	if (out.agent.latest != version || out.appended != appended)
		fail_msg("%s: version %" PRId64 ", %s", text, out.agent.latest,
			 out.appended ? "appended" : "the same");
}

static int take_event(void *ctx, const struct event *event, struct err *err)
{
	struct buf *out = ctx;

	return buf_addf(out, err, STR_FMT ":%" PRId64 " ", STR_ARG(event->type), event->version);
}

static void check_events(struct store *store, const char *expected)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_buf struct buf text = BUF_INIT(4096);
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(journal_read(meta, 0, take_event, &text, &err), &err);
	assert_string_equal(text.ptr ? text.ptr : "", expected);
}

static int find(struct store *store, const char *name, struct agent *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = agent_find(meta, str_of(name), out, &err);
	check_ok(found, &err);
	return found;
}

static void the_same_content_appends_nothing_however_it_is_written(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;

	check_sync(store, SPEC(", \"sandbox\": {\"scope\": \"tree\", \"resources\": {\"cpu\": 1}}"),
		   1, true);
	check_sync(store, SPEC(", \"sandbox\": {\"scope\": \"tree\", \"resources\": {\"cpu\": 1}}"),
		   1, false);
	check_sync(store,
		   " {\"system\":\"\\u0078\",\n\"sandbox\":{\"resources\":{\"cpu\":1},\"scope\":"
		   "\"tree\"},\"slug\":\"repo-bot\"}\n",
		   1, false);
	check_sync(store,
		   "{\"agent\": " SPEC(", \"sandbox\": {\"scope\": \"tree\","
				       " \"resources\": {\"cpu\": 1}}") "}",
		   1, false);
	check_events(store, "agent.created:0 version.appended:1 ");
}

static void a_change_in_anything_appends_a_version(void **state)
{
	static const char *const specs[] = {
		"{\"slug\": \"repo-bot\"}",
		SPEC(""),
		SPEC(", \"sandbox\": {}"),
		SPEC(", \"sandbox\": {\"provider\": \"container\"}"), /* no default is filled in */
		SPEC(", \"sandbox\": {\"provider\": null}"),
		SPEC(", \"note\": 1"),
		SPEC(", \"note\": [1, 2]"),
		SPEC(", \"note\": [2, 1]"), /* an array has an order */
		SPEC(", \"note\": \"1\""),
		SPEC(", \"subagents\": []"),
		SPEC(""), /* only the latest is compared */
	};
	struct store *store = ((struct store_fixture *)*state)->store;

	for (size_t i = 0; i < COUNT(specs); i++)
		check_sync(store, specs[i], (int64_t)i + 1, true);
	check_sync(store, SPEC(""), COUNT(specs), false);
}

static void any_version_is_there_by_id_and_by_slug(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	struct agent by_slug;
	struct agent by_id;
	struct err err = {0};

	check_sync(store, SPEC(", \"n\": 1"), 1, true);
	check_sync(store, SPEC(", \"n\": 2"), 2, true);
	assert_int_equal(find(store, "repo-bot", &by_slug), 1);
	assert_true(ulid_is_id(STR("agt_"), str_of(by_slug.id)));
	assert_int_equal(find(store, by_slug.id, &by_id), 1);
	assert_memory_equal(&by_id, &by_slug, sizeof(by_id));
	assert_int_equal(find(store, "repo", &by_id), 0);
	assert_int_equal(find(store, "agt_01hf7yat000000000000000000", &by_id), 0);
	assert_int_equal(find(store, "", &by_id), 0);

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	for (int64_t number = 0; number <= 2; number++) {
		auto_agent_version struct agent_version version = {0};

		check_ok(agent_need_version(meta, &by_slug, number, &version, &err), &err);
		assert_int_equal(version.number, number ? number : 2);
		assert_int_equal(json_integer_value(json_object_get(version.spec, "n")),
				 version.number);
	}
}

static void a_slug_is_found_whatever_else_its_record_says(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	auto_agent_synced struct agent_synced synced = sync_spec(store, "{\"slug\": \"a\"}");
	AUTO(json) json_t *record = json_pack("{s:i, s:i}", "v", 1, "a", 2);
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];
	struct err err = {0};

	json_set_text(record, "id", synced.agent.id);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put(meta, "agents.slugs", STR("a"), record, &err), &err);
	assert_int_equal(agent_find_id(meta, STR("a"), id, &err), 1);
	assert_string_equal(id, synced.agent.id);
}

static void what_is_not_there_is_not_found(void **state)
{
	static const int64_t numbers[] = {2, -1, INT64_MAX, INT64_MIN};
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	struct agent_version version;
	struct agent agent;
	struct err err = {0};

	check_sync(store, SPEC(""), 1, true);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_err(agent_need(meta, STR("nobody"), &agent, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text, "there is no agent \"nobody\"");
	check_ok(agent_need(meta, STR("repo-bot"), &agent, &err), &err);
	for (size_t i = 0; i < COUNT(numbers); i++)
		check_err(agent_need_version(meta, &agent, numbers[i], &version, &err), &err,
			  ERR_NOT_FOUND);
}

static void an_agent_is_told_with_its_spec_as_it_was_synced(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	auto_agent_version struct agent_version version = {0};
	auto_buf struct buf text = BUF_INIT(4096);
	AUTO(json) json_t *json = NULL;
	struct agent agent;
	struct err err = {0};

	check_sync(store, SPEC(", \"other\": {\"z\": 1, \"a\": 2}"), 1, true);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(agent_need(meta, STR("repo-bot"), &agent, &err), &err);
	check_ok(agent_need_version(meta, &agent, 0, &version, &err), &err);
	json = agent_format(&agent, &version);
	(void)json_object_del(json, "id");
	(void)json_object_del(json, "digest");
	check_ok(json_format(json, &text, &err), &err);
	assert_string_equal(text.ptr,
			    "{\"appendedAt\":\"2023-11-14T22:13:20.000Z\",\"createdAt\":"
			    "\"2023-11-14T22:13:20.000Z\",\"latest\":1,\"slug\":\"repo-bot\","
			    "\"spec\":{\"other\":{\"a\":2,\"z\":1},\"slug\":\"repo-bot\","
			    "\"system\":\"x\"},\"version\":1}");
}

static void a_version_knows_its_subagents(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	auto_agent_version struct agent_version version = {0};
	struct agent agent;
	struct err err = {0};

	check_sync(store,
		   SPEC(", \"subagents\": [{\"kind\": \"derived\", \"name\": \"review\","
			" \"extends\": \"parent\"}]"),
		   1, true);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(agent_need(meta, STR("repo-bot"), &agent, &err), &err);
	check_ok(agent_need_version(meta, &agent, 0, &version, &err), &err);
	assert_true(agent_version_has_subagent(&version, STR("review")));
	assert_false(agent_version_has_subagent(&version, STR("parent")));
	assert_false(agent_version_has_subagent(&version, STR("")));
}

static void a_version_says_who_makes_its_machines(void **state)
{
	static const struct {
		const char *rest, *provider; /* NULL: it has no machines */
		bool here;
	} cases[] = {
		{"", NULL, false},
		{", \"sandbox\": {}", "container", true},
		{", \"sandbox\": {\"provider\": \"container\"}", "container", true},
		{", \"sandbox\": {\"provider\": \"docker\"}", "docker", false},
		{", \"sandbox\": {\"provider\": \"modal\"}", "modal", false},
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_agent_version struct agent_version version = {0};
		const char *provider;

		(void)snprintf(text, sizeof(text), "{\"slug\": \"bot\"%s}", cases[i].rest);
		version.spec = json_loads(text, 0, NULL);
		assert_non_null(version.spec);
		provider = agent_version_provider(&version);
		assert_true(!provider == !cases[i].provider);
		if (!provider)
			continue;
		assert_string_equal(provider, cases[i].provider);
		assert_int_equal(agent_provider_is_here(provider), cases[i].here);
	}
}

static void warnings_come_back_each_time(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;

	for (int i = 0; i < 2; i++) {
		auto_agent_synced struct agent_synced out = sync_spec(
			store, SPEC(", \"colour\": 1, \"sandbox\": {\"provider\": \"modal\"}"));

		assert_int_equal(json_array_size(out.warnings), 2);
		assert_string_equal(json_string_value(json_array_get(out.warnings, 0)),
				    "colour: unknown key, kept and not used");
		assert_string_equal(
			json_string_value(json_array_get(out.warnings, 1)),
			"sandbox.provider: this host has no machines of modal; the first "
			"tool call fails with ProviderUnavailable");
	}
}

static void a_rename_is_a_version_and_frees_the_slug(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	auto_agent_synced struct agent_synced first = sync_spec(store, "{\"slug\": \"old\"}");
	auto_agent_synced struct agent_synced renamed = {0};
	auto_agent_synced struct agent_synced other = {0};
	struct agent_sync sync = {.text = STR("{\"slug\": \"new\"}"), .id = str_of(first.agent.id)};
	struct agent agent;
	struct err err = {0};

	check_ok(try_sync(store, sync, &renamed, &err), &err);
	assert_true(renamed.appended);
	assert_string_equal(renamed.agent.id, first.agent.id);
	assert_string_equal(renamed.agent.slug, "new");
	assert_int_equal(renamed.agent.latest, 2);
	assert_int_equal(find(store, "old", &agent), 0);
	assert_int_equal(find(store, "new", &agent), 1);
	assert_string_equal(agent.id, first.agent.id);

	other = sync_spec(store, "{\"slug\": \"old\"}");
	assert_string_not_equal(other.agent.id, first.agent.id);
	assert_int_equal(other.agent.latest, 1);
}

static void a_slug_that_another_agent_has_is_a_conflict(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	auto_agent_synced struct agent_synced a = sync_spec(store, "{\"slug\": \"a\"}");
	auto_agent_synced struct agent_synced b = sync_spec(store, "{\"slug\": \"b\"}");
	struct agent_sync sync = {.text = STR("{\"slug\": \"a\"}"), .id = str_of(b.agent.id)};
	struct agent_synced out;
	struct err err = {0};

	assert_string_not_equal(a.agent.id, b.agent.id);
	check_err(try_sync(store, sync, &out, &err), &err, ERR_CONFLICT);
	sync.id = STR("agt_01hf7yat000000000000000000");
	check_err(try_sync(store, sync, &out, &err), &err, ERR_NOT_FOUND);
	check_sync(store, "{\"slug\": \"a\"}", 1, false);
	check_sync(store, "{\"slug\": \"b\"}", 1, false);
}

struct beside {
	bool fail;
	int calls;
};

static int put_beside(void *ctx, struct meta *meta, const struct agent *agent,
		      const struct agent_version *version, struct err *err)
{
	struct beside *beside = ctx;
	AUTO(json) json_t *record = json_pack("{s:i, s:I}", "v", 1, "version", version->number);

	beside->calls++;
	if (meta_put(meta, "beside", str_of(agent->id), record, err) < 0)
		return -1;
	return beside->fail ? err_set(err, ERR_BUSY, "the queue is full") : 0;
}

static void what_is_put_beside_a_version_is_there_if_it_is(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct beside beside = {.fail = true};
	struct agent_sync sync = {
		.text = STR("{\"slug\": \"a\"}"), .appended = put_beside, .ctx = &beside};
	AUTO(meta) struct meta *meta = NULL;
	struct agent_synced out = {.appended = false};
	struct agent agent;
	struct err err = {0};

	check_err(try_sync(store, sync, &out, &err), &err, ERR_BUSY);
	assert_int_equal(find(store, "a", &agent), 0);
	check_events(store, "");
	beside.fail = false;
	check_ok(try_sync(store, sync, &out, &err), &err);
	agent_synced_done(&out);
	check_ok(try_sync(store, sync, &out, &err), &err); /* nothing to be put */
	assert_int_equal(beside.calls, 2);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	assert_int_equal(meta_has(meta, "beside", str_of(out.agent.id), &err), 1);
	agent_synced_done(&out);
}

static int die(void *ctx, struct meta *meta, const struct agent *agent,
	       const struct agent_version *version, struct err *err)
{
	(void)ctx;
	(void)meta;
	(void)agent;
	(void)version;
	(void)err;
	(void)raise(SIGKILL);
	return 0;
}

/* In a process of its own, which may die in the middle of the transaction. */
static void sync_elsewhere(struct store_fixture *fixture, const char *text, agent_appended_fn *fn)
{
	struct agent_sync sync = {.text = str_of(text), .appended = fn, .now_ms = NOW};
	int status;
	pid_t pid;

	store_close(fixture->store);
	fixture->store = NULL;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store_options options = {.path = fixture->path,
						.map_bytes = STORE_FIXTURE_MAP};
		struct agent_synced out;
		struct err err;

		if (store_open(&options, &fixture->store, &err) < 0 ||
		    agent_sync(fixture->store, &sync, &out, &err) < 0)
			_exit(1);
		(void)raise(SIGKILL); /* right after it was told */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)store_fixture_reopen(fixture, false);
}

static void a_sync_that_is_killed_appended_all_or_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	struct agent agent;

	sync_elsewhere(fixture, "{\"slug\": \"a\"}", die);
	assert_int_equal(find(fixture->store, "a", &agent), 0);
	check_events(fixture->store, "");
	sync_elsewhere(fixture, "{\"slug\": \"a\"}", NULL);
	check_sync(fixture->store, "{\"slug\": \"a\"}", 1, false);
	sync_elsewhere(fixture, "{\"slug\": \"a\", \"n\": 2}", die);
	check_sync(fixture->store, "{\"slug\": \"a\"}", 1, false);
	check_events(fixture->store, "agent.created:0 version.appended:1 ");
}

static void agents_are_listed_newest_first(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *first = NULL;
	AUTO(json) json_t *second = NULL;
	struct page page = {.limit = 3, .cursor = STR("")};
	struct err err = {0};

	for (int i = 0; i < 5; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "{\"slug\": \"a%d\"}", i);
		check_sync(store, text, 1, true);
	}
	check_sync(store, "{\"slug\": \"a1\", \"n\": 2}", 2, true); /* which makes it no newer */
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(agent_list(meta, &page, &first, &err), &err);
	assert_int_equal(json_array_size(json_object_get(first, "items")), 3);
	page.cursor = json_str(json_object_get(first, "next"));
	check_ok(agent_list(meta, &page, &second, &err), &err);
	assert_true(json_is_null(json_object_get(second, "next")));
	(void)json_array_extend(json_object_get(first, "items"), json_object_get(second, "items"));
	assert_int_equal(json_array_size(json_object_get(first, "items")), 5);
	for (size_t i = 0; i < 5; i++) {
		const json_t *item = json_array_get(json_object_get(first, "items"), i);
		char slug[] = {'a', (char)('4' - i), '\0'};

		assert_string_equal(json_string_value(json_object_get(item, "slug")), slug);
		assert_int_equal(json_integer_value(json_object_get(item, "version")),
				 i == 3 ? 2 : 1);
	}
}

static void an_agents_history_is_listed_newest_first(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *list = NULL;
	struct page page = {.limit = 500, .cursor = STR("")};
	struct agent agent;
	struct err err = {0};

	check_sync(store, "{\"slug\": \"z\"}", 1, true);
	for (int64_t i = 1; i <= 260; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "{\"slug\": \"a\", \"n\": %" PRId64 "}", i);
		check_sync(store, text, i, true);
	}
	assert_int_equal(find(store, "a", &agent), 1);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(agent_list_versions(meta, &agent, &page, &list, &err), &err);
	assert_int_equal(json_array_size(json_object_get(list, "items")), 260);
	for (size_t i = 0; i < 260; i++) {
		const json_t *item = json_array_get(json_object_get(list, "items"), i);

		assert_int_equal(json_integer_value(json_object_get(item, "version")), 260 - i);
	}
}

static void hostile_specs_are_refused_and_leave_nothing(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"", "line 1"},
		{"null", "line 1"},
		{"[1]", "expected an object, found an array"},
		{"{\"slug\": \"a\"} {}", "line 1"},
		{"{\"slug\": \"a\", \"slug\": \"b\"}", "duplicate"},
		{"{\"slug\": \"a\", \"x\": {\"y\": 1, \"y\": 2}}", "duplicate"},
		{"{\"slug\": \"a\", \"x\": \"\xff\"}", "unable to decode"},
		{"{\"slug\": \"a\", \"x\": \"\xed\xa0\x80\"}", "unable to decode"},
		{"{\"slug\": \"a\", \"x\": \"\\ud800\"}", "line 1"},
		{"{\"slug\": \"a\", \"x\": \"\\u0000\"}", "u0000"},
		{"{\"slug\": \"a\", \"x\": 1e999}", "overflow"},
		{"{\"slug\": \"a\", \"x\": 99999999999999999999}", "integer"},
		{"{\"slug\": \"a\", \"x\": NaN}", "line 1"},
		{"{\"agent\": {\"agent\": {\"slug\": \"a\"}}}", "agent.slug: missing"},
		{"{\"agent\": [\"slug\"]}", "agent: expected an object"},
		{"{\"slug\": \"agt_01hf7yat000000000000000000\"}", "no agent's id"},
	};
	struct store *store = ((struct store_fixture *)*state)->store;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct agent_sync sync = {.text = str_of(cases[i].text)};
		struct agent_synced out;
		struct err err = {0};

		check_err(try_sync(store, sync, &out, &err), &err, ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: said \"%s\", not \"%s\"", cases[i].text, err.text,
				 cases[i].says);
	}
	check_events(store, "");
}

static void a_spec_too_long_or_too_deep_is_refused(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	auto_buf struct buf text = BUF_INIT(2 * AGENT_SPEC_MAX);
	struct agent_synced out;
	struct err err = {0};

	check_ok(buf_addf(&text, &err, "{\"slug\": \"a\", \"x\": "), &err);
	for (int i = 0; i < 100000; i++)
		check_ok(buf_add(&text, STR("["), &err), &err);
	check_err(try_sync(store, (struct agent_sync){.text = buf_str(&text)}, &out, &err), &err,
		  ERR_INVALID);
	assert_non_null(strstr(err.text, "levels"));

	/* Short as it is written: sixteen digits for two each. */
	buf_clear(&text);
	check_ok(buf_addf(&text, &err, "{\"slug\": \"a\", \"x\": [0.1"), &err);
	for (int i = 0; i < 200000; i++)
		check_ok(buf_add(&text, STR(",0.1"), &err), &err);
	check_ok(buf_addf(&text, &err, "]}"), &err);
	check_err(try_sync(store, (struct agent_sync){.text = buf_str(&text)}, &out, &err), &err,
		  ERR_LIMIT);

	buf_clear(&text);
	while (text.len <= AGENT_SPEC_MAX)
		check_ok(buf_addf(&text, &err, "%1000s", ""), &err);
	check_err(try_sync(store, (struct agent_sync){.text = buf_str(&text)}, &out, &err), &err,
		  ERR_LIMIT);
	check_events(store, "");
}

static void only_a_sync_of_this_host_may_name_its_files(void **state)
{
	struct store *store = ((struct store_fixture *)*state)->store;
	struct agent_sync sync = {
		.text = STR(
			"{\"slug\": \"a\", \"sandbox\": {\"image\": {\"base\": \"oci:/srv/x\"}}}")};
	auto_agent_synced struct agent_synced out = {0};
	struct err err = {0};

	check_err(try_sync(store, sync, &out, &err), &err, ERR_INVALID);
	assert_string_equal(err.path, "sandbox.image.base");
	sync.host_files = true;
	check_ok(try_sync(store, sync, &out, &err), &err);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(the_same_content_appends_nothing_however_it_is_written),
		STORE_TEST(a_change_in_anything_appends_a_version),
		STORE_TEST(any_version_is_there_by_id_and_by_slug),
		STORE_TEST(a_slug_is_found_whatever_else_its_record_says),
		STORE_TEST(what_is_not_there_is_not_found),
		STORE_TEST(an_agent_is_told_with_its_spec_as_it_was_synced),
		STORE_TEST(a_version_knows_its_subagents),
		cmocka_unit_test(a_version_says_who_makes_its_machines),
		STORE_TEST(warnings_come_back_each_time),
		STORE_TEST(a_rename_is_a_version_and_frees_the_slug),
		STORE_TEST(a_slug_that_another_agent_has_is_a_conflict),
		STORE_TEST(what_is_put_beside_a_version_is_there_if_it_is),
		STORE_TEST(a_sync_that_is_killed_appended_all_or_nothing),
		STORE_TEST(agents_are_listed_newest_first),
		STORE_TEST(an_agents_history_is_listed_newest_first),
		STORE_TEST(hostile_specs_are_refused_and_leave_nothing),
		STORE_TEST(a_spec_too_long_or_too_deep_is_refused),
		STORE_TEST(only_a_sync_of_this_host_may_name_its_files),
	};

	return cmocka_run_group_tests_name("bake/agent", tests, NULL, NULL);
}
