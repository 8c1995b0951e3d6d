/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/journal.h"
#include "sandbox/session.h"
#include "tests/layers/store_fixture.h"

#include <inttypes.h>

#define NOW ((int64_t)1700000000000)
#define AGENT "agt_01hf7yat000000000000000000"
#define OTHER "agt_01hf7yat000000000000000001"

static struct session create(struct store *store, const char *agent, const struct session *parent,
			     const char *subagent)
{
	struct session_request request = {.agent_id = str_of(agent),
					  .version = parent ? 0 : 3,
					  .parent_id = parent ? str_of(parent->id) : STR(""),
					  .subagent = str_of(subagent),
					  .now_ms = NOW};
	struct session session;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(session_create(meta, &request, &session, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	return session;
}

static struct session get(struct store *store, const char *id)
{
	AUTO(meta) struct meta *meta = NULL;
	struct session session;
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(session_need(meta, str_of(id), &session, &err), &err);
	return session;
}

static int end(struct store *store, const char *id, int64_t now_ms)
{
	struct session session;
	struct meta *meta;
	struct err err = {0};
	int ended;

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	ended = session_end(meta, str_of(id), now_ms, &session, &err);
	check_ok(ended, &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_string_equal(session.id, id);
	assert_true(session.ended_ms > 0);
	return ended;
}

static void check_refused(struct store *store, struct session_request request, enum err_kind kind,
			  const char *path)
{
	AUTO(meta) struct meta *meta = NULL;
	struct session session;
	struct err err = {0};

	request.now_ms = NOW;
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_err(session_create(meta, &request, &session, &err), &err, kind);
	assert_string_equal(err.path, path);
}

static int take_event(void *ctx, const struct event *event, struct err *err)
{
	AUTO(json) json_t *json = journal_format(event);
	auto_buf struct buf data = BUF_INIT(1024);

	check_ok(json_format(json_object_get(json, "data"), &data, err), err);
	return buf_addf(ctx, err, STR_FMT "%s ", STR_ARG(event->type), data.ptr);
}

static void check_events(struct store *store, const char *expected)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_buf struct buf text = BUF_INIT(4096);
	struct err err = {0};

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(journal_read(meta, 0, take_event, &text, &err), &err);
	assert_string_equal(text.ptr, expected);
}

static void a_session_without_a_parent_is_a_root(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session again;

	assert_true(ulid_is_id(STR("ses_"), str_of(root.id)));
	assert_string_equal(root.root_id, root.id);
	assert_string_equal(root.parent_id, "");
	assert_int_equal(root.version, 3);
	(void)store_fixture_reopen(fixture, false);
	again = get(fixture->store, root.id);
	assert_memory_equal(&again, &root, sizeof(root));
	check_events(fixture->store, "session.created{} ");
}

static void children_have_their_roots_agent_version_and_id(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session child = create(fixture->store, AGENT, &root, "review");
	struct session grandchild = create(fixture->store, "", &child, "");
	auto_buf struct buf expected = BUF_INIT(512);
	struct err err = {0};

	assert_string_equal(child.root_id, root.id);
	assert_string_equal(child.parent_id, root.id);
	assert_string_equal(child.subagent, "review");
	assert_int_equal(child.version, 3);
	assert_string_equal(grandchild.root_id, root.id);
	assert_string_equal(grandchild.parent_id, child.id);
	assert_string_equal(grandchild.agent_id, AGENT);
	check_ok(buf_addf(&expected, &err,
			  "session.created{} session.created{\"parentId\":\"%s\",\"subagent\":"
			  "\"review\"} session.created{\"parentId\":\"%s\"} ",
			  root.id, child.id),
		 &err);
	check_events(fixture->store, expected.ptr);
}

static void a_child_of_something_else_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session_request request = {.parent_id = str_of(root.id), .subagent = STR("")};
	char name[SESSION_NAME_MAX + 1];

	request.agent_id = STR(OTHER);
	check_refused(fixture->store, request, ERR_INVALID, "agent");
	request.agent_id = STR(AGENT);
	request.version = 2;
	check_refused(fixture->store, request, ERR_INVALID, "version");
	request.version = 3;
	request.parent_id = STR("ses_01hf7yat000000000000000000");
	check_refused(fixture->store, request, ERR_NOT_FOUND, "parent");
	request.parent_id = STR("nonsense");
	check_refused(fixture->store, request, ERR_NOT_FOUND, "parent");
	request.parent_id = STR("");
	memset(name, 'n', sizeof(name));
	request.subagent = (struct str){name, sizeof(name)};
	check_refused(fixture->store, request, ERR_INVALID, "subagent");
}

static void a_session_ends_once(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");

	assert_int_equal(end(fixture->store, root.id, NOW + 5), 1);
	assert_int_equal(end(fixture->store, root.id, NOW + 9), 0);
	assert_int_equal(get(fixture->store, root.id).ended_ms, NOW + 5);
	check_events(fixture->store, "session.created{} session.ended{\"reason\":\"ended\"} ");
}

static void a_root_ends_all_that_is_below_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session other = create(fixture->store, AGENT, NULL, "");
	struct session child = create(fixture->store, AGENT, &root, "");
	struct session grandchild = create(fixture->store, AGENT, &child, "");
	struct session_request request = {
		.agent_id = STR(AGENT), .parent_id = str_of(child.id), .subagent = STR("")};

	(void)end(fixture->store, root.id, NOW + 1);
	assert_int_equal(get(fixture->store, child.id).ended_ms, NOW + 1);
	assert_int_equal(get(fixture->store, grandchild.id).ended_ms, NOW + 1);
	assert_int_equal(get(fixture->store, other.id).ended_ms, 0);
	check_refused(fixture->store, request, ERR_GONE, "");
	request.parent_id = str_of(root.id);
	check_refused(fixture->store, request, ERR_GONE, "");
}

static void a_child_ends_what_is_below_it_and_no_other(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session first = create(fixture->store, AGENT, &root, "");
	struct session second = create(fixture->store, AGENT, &root, "");
	struct session below_first = create(fixture->store, AGENT, &first, "");
	struct session below_second = create(fixture->store, AGENT, &second, "");
	struct session deeper = create(fixture->store, AGENT, &below_first, "");

	(void)end(fixture->store, first.id, NOW + 1);
	assert_int_equal(get(fixture->store, root.id).ended_ms, 0);
	assert_int_equal(get(fixture->store, second.id).ended_ms, 0);
	assert_int_equal(get(fixture->store, below_second.id).ended_ms, 0);
	assert_int_equal(get(fixture->store, below_first.id).ended_ms, NOW + 1);
	assert_int_equal(get(fixture->store, deeper.id).ended_ms, NOW + 1);
}

static int take_id(void *ctx, const struct session *session, struct err *err)
{
	return buf_addf(ctx, err, "%s ", session->id);
}

static void the_open_sessions_of_a_tree_are_told_in_order(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session first = create(fixture->store, AGENT, &root, "");
	struct session second = create(fixture->store, AGENT, &root, "");
	AUTO(meta) struct meta *meta = NULL;
	auto_buf struct buf ids = BUF_INIT(512);
	char expected[256];
	struct err err = {0};

	(void)create(fixture->store, AGENT, NULL, "");
	(void)end(fixture->store, first.id, NOW);
	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	check_ok(session_each_open(meta, str_of(root.id), take_id, &ids, &err), &err);
	(void)snprintf(expected, sizeof(expected), "%s %s ", root.id, second.id);
	assert_string_equal(ids.ptr, expected);
}

static void a_tree_has_an_end(void **state)
{
	struct store_fixture *fixture = *state;
	struct session root = create(fixture->store, AGENT, NULL, "");
	struct session_request request = {.agent_id = STR(AGENT),
					  .parent_id = str_of(root.id),
					  .subagent = STR(""),
					  .now_ms = NOW};
	struct session session;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (int i = 1; i < SESSION_TREE_MAX; i++)
		check_ok(session_create(meta, &request, &session, &err), &err);
	check_err(session_create(meta, &request, &session, &err), &err, ERR_LIMIT);
	assert_int_equal(session_end(meta, str_of(root.id), NOW, &session, &err), 1);
	check_ok(meta_commit(meta, &err), &err);
}

static size_t list(struct store *store, const char *agent, size_t limit, char text[static 64])
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *out = NULL;
	struct page page = {.limit = limit, .cursor = STR("")};
	struct err err = {0};
	const json_t *items;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(session_list(meta, str_of(agent), &page, &out, &err), &err);
	items = json_object_get(out, "items");
	(void)snprintf(text, 64, "%s",
		       json_string_value(json_object_get(json_array_get(items, 0), "id")));
	return json_array_size(items);
}

static void sessions_are_listed_newest_first_and_by_agent(void **state)
{
	struct store_fixture *fixture = *state;
	struct session first = create(fixture->store, AGENT, NULL, "");
	struct session second = create(fixture->store, OTHER, NULL, "");
	struct session third = create(fixture->store, AGENT, &first, "");
	char newest[64];

	assert_int_equal(list(fixture->store, "", 50, newest), 3);
	assert_string_equal(newest, third.id);
	assert_int_equal(list(fixture->store, "", 2, newest), 2);
	assert_int_equal(list(fixture->store, AGENT, 50, newest), 2);
	assert_string_equal(newest, third.id);
	assert_int_equal(list(fixture->store, OTHER, 50, newest), 1);
	assert_string_equal(newest, second.id);
}

static void a_session_is_told_as_the_contract_has_it(void **state)
{
	struct session session = {.id = "ses_2",
				  .agent_id = "agt_1",
				  .version = 3,
				  .root_id = "ses_1",
				  .parent_id = "ses_1",
				  .subagent = "review",
				  .created_ms = NOW,
				  .ended_ms = NOW + 1};
	AUTO(json) json_t *json = session_format(&session);
	auto_buf struct buf text = BUF_INIT(1024);
	struct err err = {0};

	(void)state;
	check_ok(json_format(json, &text, &err), &err);
	assert_string_equal(text.ptr,
			    "{\"agentId\":\"agt_1\",\"createdAt\":\"2023-11-14T22:13:20.000Z\","
			    "\"endedAt\":\"2023-11-14T22:13:20.001Z\",\"id\":\"ses_2\","
			    "\"parentId\":\"ses_1\",\"rootId\":\"ses_1\",\"state\":\"ended\","
			    "\"subagent\":\"review\",\"version\":3}");
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_session_without_a_parent_is_a_root),
		STORE_TEST(children_have_their_roots_agent_version_and_id),
		STORE_TEST(a_child_of_something_else_is_refused),
		STORE_TEST(a_session_ends_once),
		STORE_TEST(a_root_ends_all_that_is_below_it),
		STORE_TEST(a_child_ends_what_is_below_it_and_no_other),
		STORE_TEST(the_open_sessions_of_a_tree_are_told_in_order),
		STORE_TEST(a_tree_has_an_end),
		STORE_TEST(sessions_are_listed_newest_first_and_by_agent),
		cmocka_unit_test(a_session_is_told_as_the_contract_has_it),
	};

	return cmocka_run_group_tests_name("sandbox/session", tests, NULL, NULL);
}
