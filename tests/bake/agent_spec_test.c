/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/agent_spec_priv.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define SANDBOX(members) "{\"slug\": \"a\", \"sandbox\": {" members "}}"
#define IMAGE(members) SANDBOX("\"image\": {" members "}")
#define SUBAGENT(members) "{\"slug\": \"a\", \"subagents\": [{\"kind\": \"derived\", " members "}]}"

static const struct agent_spec_rules ours = {.path = "", .host_files = true};
static const struct agent_spec_rules by_http = {.path = ""};

static int check(const char *text, const struct agent_spec_rules *rules, json_t *warnings,
		 struct err *err)
{
	AUTO(json) json_t *agent = NULL;

	check_ok(json_parse(str_of(text), (size_t)1 << 20, &agent, err), err);
	return agent_spec_check(agent, rules, warnings, err);
}

static void check_right(const char *text, const struct agent_spec_rules *rules)
{
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	if (check(text, rules, warnings, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(json_array_size(warnings), 0);
}

static void check_wrong(const char *text, const struct agent_spec_rules *rules, const char *path,
			const char *expected)
{
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	if (check(text, rules, warnings, &err) == 0)
		fail_msg("%s: accepted", text);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.path, path);
	if (!strstr(err.expected, expected))
		fail_msg("%s: expected \"%s\", not \"%s\"", text, err.expected, expected);
	assert_true(str_starts(str_of(err.text), str_of(path)));
}

static void every_key_of_the_contract_is_known(void **state)
{
	(void)state;
	check_right("{\"slug\": \"a\"}", &by_http);
	check_right("{\"slug\": \"a\", \"model\": \"m\"}", &by_http);
	check_right("{\"slug\": \"repo-bot\", \"model\": {\"provider\": \"gateway\","
		    " \"model\": \"m\", \"temperature\": 1}, \"system\": \"x\","
		    " \"sandbox\": null, \"subagents\": []}",
		    &by_http);
	check_right(SANDBOX("\"provider\": \"modal\","
			    "\"resources\": {\"cpu\": 0.5, \"memoryMb\": 4096, \"pids\": 10,"
			    " \"diskMb\": 1}, \"network\": {\"egress\": {\"mode\": \"allow\","
			    " \"allow\": [\"github.com\"], \"deny\": []}},"
			    "\"lifecycle\": {\"idleAfterMs\": 900000, \"onIdle\": \"release\","
			    " \"snapshotEveryMs\": 0, \"keepSnapshots\": 2,"
			    " \"maxSnapshotAgeMs\": 86400000}, \"scope\": \"session\","
			    "\"serializeTools\": true, \"runtime\": \"runc\","
			    "\"tools\": {\"preset\": \"read-only\", \"allow\": [\"read\"],"
			    " \"deny\": [\"fetch\"]}"),
		    &by_http);
}

static void all_thirteen_tools_can_be_named(void **state)
{
	(void)state;
	check_right(SANDBOX("\"tools\": {\"allow\": [\"read\", \"write\", \"edit\", \"glob\","
			    " \"grep\", \"bash\", \"process_start\", \"process_list\","
			    " \"process_logs\", \"process_kill\", \"preview\", \"deploy\","
			    " \"fetch\"]}"),
		    &by_http);
}

static const struct {
	const char *text;
	const char *path;
	const char *expected;
} wrong_cases[] = {
	{"{}", "slug", "a string"},
	{"{\"slug\": 5}", "slug", "a string"},
	{"{\"slug\": \"No\"}", "slug", "lower-case letters"},
	{"{\"slug\": \"a\", \"model\": 1}", "model", "an object or a string"},
	{"{\"slug\": \"a\", \"model\": {\"model\": 1}}", "model.model", "a string"},
	{"{\"slug\": \"a\", \"system\": []}", "system", "a string"},
	{"{\"slug\": \"a\", \"sandbox\": []}", "sandbox", "an object"},
	{"{\"slug\": \"a\", \"subagents\": {}}", "subagents", "an array"},
	{SANDBOX("\"provder\": 1"), "sandbox.provder", "one of provider, image"},
	{SANDBOX("\"provider\": \"kubernetes\""), "sandbox.provider",
	 "one of container, docker, local, modal"},
	{SANDBOX("\"resources\": {\"cpu\": 0}"), "sandbox.resources.cpu", "0.001 to 4096"},
	{SANDBOX("\"resources\": {\"cpu\": \"2\"}"), "sandbox.resources.cpu", "a number"},
	{SANDBOX("\"resources\": {\"memoryMb\": -1}"), "sandbox.resources.memoryMb", "at least 1"},
	{SANDBOX("\"resources\": {\"memoryMb\": 1073741825}"), "sandbox.resources.memoryMb",
	 "at most 1073741824"},
	{SANDBOX("\"resources\": {\"pids\": 4194305}"), "sandbox.resources.pids",
	 "at most 4194304"},
	{SANDBOX("\"resources\": {\"diskMb\": 0.5}"), "sandbox.resources.diskMb", "an integer"},
	{SANDBOX("\"network\": {\"egres\": {}}"), "sandbox.network.egres", "one of egress"},
	{SANDBOX("\"network\": {\"egress\": {\"mode\": \"alow\"}}"), "sandbox.network.egress.mode",
	 "one of open, allow, deny"},
	{SANDBOX("\"network\": {\"egress\": {\"allow\": [\"a\", 1]}}"),
	 "sandbox.network.egress.allow[1]", "a string"},
	{SANDBOX("\"lifecycle\": {\"onIdle\": \"sleep\"}"), "sandbox.lifecycle.onIdle",
	 "one of snapshot, release"},
	{SANDBOX("\"lifecycle\": {\"idleAfterMs\": 9007199254740992}"),
	 "sandbox.lifecycle.idleAfterMs", "at most"},
	{SANDBOX("\"lifecycle\": {\"keepSnapshots\": 1001}"), "sandbox.lifecycle.keepSnapshots",
	 "at most 1000"},
	{SANDBOX("\"scope\": \"all\""), "sandbox.scope", "one of tree, session"},
	{SANDBOX("\"serializeTools\": \"yes\""), "sandbox.serializeTools", "true or false"},
	{SANDBOX("\"tools\": {\"preset\": \"readonly\"}"), "sandbox.tools.preset",
	 "one of read-only"},
	{SANDBOX("\"tools\": {\"deny\": [\"read\", \"Bash\"]}"), "sandbox.tools.deny[1]",
	 "one of read, write"},
	{SANDBOX("\"tools\": {\"allow\": [\"*\"]}"), "sandbox.tools.allow[0]", "one of read"},
	{SANDBOX("\"runtime\": \"/bin/sh\""), "sandbox.runtime", "a runtime's name"},
	{SANDBOX("\"runtime\": \"-x\""), "sandbox.runtime", "a runtime's name"},
	{SANDBOX("\"runtime\": \"\""), "sandbox.runtime", "a runtime's name"},
	{IMAGE("\"steps\": []"), "sandbox.image.base", "a string"},
	{IMAGE("\"base\": \"scratch\", \"baze\": 1"), "sandbox.image.baze", "one of base"},
	{IMAGE("\"base\": \"scratch\", \"steps\": [\"RUN a\", 1]"), "sandbox.image.steps[1]",
	 "a string"},
	{IMAGE("\"base\": \"scratch\", \"rebake\": {\"cron\": \"x\"}"), "sandbox.image.rebake.cron",
	 ""},
	{SUBAGENT("\"name\": \"r\""), "subagents[0].extends", "a string"},
	{SUBAGENT("\"extends\": \"parent\""), "subagents[0].name", "a string"},
	{SUBAGENT("\"name\": \"parent\", \"extends\": \"parent\""), "subagents[0].name",
	 "and not \"parent\""},
	{SUBAGENT("\"name\": \"a/b\", \"extends\": \"parent\""), "subagents[0].name", "letters"},
	{SUBAGENT("\"name\": \"r\", \"extends\": \"r\""), "subagents[0].extends", "an earlier"},
	{"{\"slug\": \"a\", \"subagents\": [{\"name\": \"r\", \"extends\": \"parent\"}]}",
	 "subagents[0].kind", "a string"},
	{"{\"slug\": \"a\", \"subagents\": [{\"kind\": \"own\"}]}", "subagents[0].kind",
	 "one of derived"},
	{"{\"slug\": \"a\", \"subagents\": [1]}", "subagents[0]", "an object"},
	{SUBAGENT("\"name\": \"r\", \"extends\": \"parent\"}, {\"kind\": \"derived\","
		  " \"name\": \"r\", \"extends\": \"parent\""),
	 "subagents[1].name", "a name that no other has"},
	{SUBAGENT("\"name\": \"r\", \"extends\": \"parent\", \"overrides\": {\"sandbox\":"
		  " {\"image\": {}}}"),
	 "subagents[0].overrides.sandbox.image", "one of tools, scope, serializeTools"},
	{SUBAGENT("\"name\": \"r\", \"extends\": \"parent\", \"overrides\": {\"sandbox\":"
		  " {\"tools\": {\"deny\": [\"shell\"]}}}"),
	 "subagents[0].overrides.sandbox.tools.deny[0]", "one of read"},
	{SUBAGENT("\"name\": \"r\", \"extends\": \"parent\", \"overrides\": {\"model\":"
		  " {\"model\": 1}}"),
	 "subagents[0].overrides.model.model", "a string"},
};

static void what_is_wrong_has_a_path_and_what_belongs_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(wrong_cases); i++)
		check_wrong(wrong_cases[i].text, &ours, wrong_cases[i].path,
			    wrong_cases[i].expected);
}

static void a_subagent_extends_the_parent_or_an_earlier_one(void **state)
{
	(void)state;
	check_right(SUBAGENT("\"name\": \"review\", \"extends\": \"parent\","
			     " \"description\": \"Reads.\", \"overrides\": {\"system\": \"x\","
			     " \"sandbox\": {\"tools\": {\"preset\": \"read-only\"},"
			     " \"scope\": \"session\", \"serializeTools\": true}}},"
			     " {\"kind\": \"derived\", \"name\": \"lens.B_2\","
			     " \"extends\": \"review\""),
		    &by_http);
	check_wrong(SUBAGENT("\"name\": \"b\", \"extends\": \"c\"}, {\"kind\": \"derived\","
			     " \"name\": \"c\", \"extends\": \"parent\""),
		    &by_http, "subagents[0].extends", "an earlier");
}

static void subagents_have_an_end(void **state)
{
	AUTO(json) json_t *agent = json_pack("{s:s, s:[]}", "slug", "a", "subagents");
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 101; i++)
		(void)json_array_append_new(json_object_get(agent, "subagents"), json_object());
	check_err(agent_spec_check(agent, &ours, warnings, &err), &err, ERR_LIMIT);
	assert_string_equal(err.path, "subagents");
}

static void unknown_keys_are_warnings_at_the_agents_level_alone(void **state)
{
	AUTO(json) json_t *warnings = json_array();
	struct err err = {0};

	(void)state;
	check_ok(check("{\"slug\": \"a\", \"colour\": {\"deep\": [1]}, \"subagents\": [{"
		       "\"kind\": \"derived\", \"name\": \"r\", \"extends\": \"parent\","
		       " \"mood\": 1, \"overrides\": {\"systm\": 2}}]}",
		       &ours, warnings, &err),
		 &err);
	assert_int_equal(json_array_size(warnings), 3);
	assert_string_equal(json_string_value(json_array_get(warnings, 0)),
			    "colour: unknown key, kept and not used");
	assert_string_equal(json_string_value(json_array_get(warnings, 1)),
			    "subagents[0].mood: unknown key, kept and not used");
	assert_string_equal(json_string_value(json_array_get(warnings, 2)),
			    "subagents[0].overrides.systm: unknown key, kept and not used; did "
			    "you mean system?");
}

static void by_http_nothing_names_a_file_of_the_host(void **state)
{
	static const struct {
		const char *text;
		const char *path;
	} cases[] = {
		{IMAGE("\"base\": \"oci:/srv/images\""), "sandbox.image.base"},
		{IMAGE("\"base\": \"oci-archive:/srv/a.tar\""), "sandbox.image.base"},
		{IMAGE("\"base\": \"docker-archive:a.tar\""), "sandbox.image.base"},
		{IMAGE("\"base\": \"scratch\", \"context\": \"/etc\""), "sandbox.image.context"},
		{IMAGE("\"base\": \"scratch\", \"context\": \".\""), "sandbox.image.context"},
		{IMAGE("\"base\": \"scratch\", \"context\": \"\""), "sandbox.image.context"},
		{IMAGE("\"base\": \"scratch\", \"push\": [\"r.io/a\", \"oci:/srv/x\"]"),
		 "sandbox.image.push[1]"},
		{IMAGE("\"base\": \"scratch\", \"cache\": {\"from\": [\"oci:/srv/x\"]}"),
		 "sandbox.image.cache.from[0]"},
		{IMAGE("\"base\": \"scratch\", \"cache\": {\"to\": [\"oci:/srv/x\"]}"),
		 "sandbox.image.cache.to[0]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		check_right(cases[i].text, &ours);
		check_wrong(cases[i].text, &by_http, cases[i].path, "");
	}
	check_right(IMAGE("\"base\": \"scratch\", \"context\": \"sha256:0000000000000000000000000"
			  "000000000000000000000000000000000000000\""),
		    &by_http);
	check_right(IMAGE("\"base\": \"ghcr.io/a/b:1\", \"push\": [\"r.io/a\"]"), &by_http);
}

static void slugs_are_judged(void **state)
{
	static const char *const right[] = {
		"a",
		"0",
		"repo-bot",
		"a.b_c-d9",
		"agt_1",
		"agt_01hf7yat00000000000000000u",
		"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg",
	};
	static const char *const wrong[] = {
		"",
		"-a",
		"a-",
		"a--b",
		"a._b",
		"A",
		"a/b",
		"a b",
		"\xc3\xbc",
		"agt_01hf7yat000000000000000000", /* what it stood for would depend on the store */
		"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(right); i++)
		assert_true(agent_spec_is_slug(str_of(right[i])));
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(agent_spec_is_slug(str_of(wrong[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_the_contract_is_known),
		cmocka_unit_test(all_thirteen_tools_can_be_named),
		cmocka_unit_test(what_is_wrong_has_a_path_and_what_belongs_there),
		cmocka_unit_test(a_subagent_extends_the_parent_or_an_earlier_one),
		cmocka_unit_test(subagents_have_an_end),
		cmocka_unit_test(unknown_keys_are_warnings_at_the_agents_level_alone),
		cmocka_unit_test(by_http_nothing_names_a_file_of_the_host),
		cmocka_unit_test(slugs_are_judged),
	};

	return cmocka_run_group_tests_name("bake/agent_spec", tests, NULL, NULL);
}
