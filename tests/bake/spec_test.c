/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/spec.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char seed[] =
	"{\"slug\": \"repo-bot\",\n"
	" \"model\": {\"provider\": \"gateway\", \"model\": \"some/model\"},\n"
	" \"system\": \"You work in /workspace.\",\n"
	" \"sandbox\": {\"provider\": \"modal\",\n"
	"  \"image\": {\"base\": \"ghcr.io/acme/agent-base:1.4\",\n"
	"   \"steps\": [\"RUN apt-get update\", \"RUN git clone x /workspace\"]},\n"
	"  \"resources\": {\"cpu\": 2, \"memoryMb\": 4096},\n"
	"  \"network\": {\"egress\": {\"mode\": \"allow\", \"allow\": [\"github.com\"]}},\n"
	"  \"lifecycle\": {\"idleAfterMs\": 900000, \"onIdle\": \"snapshot\", \"keepSnapshots\": "
	"2}},\n"
	" \"subagents\": [{\"kind\": \"derived\", \"name\": \"review\", \"extends\": "
	"\"parent\"}]}";

static void check_seed(const struct spec *spec)
{
	assert_true(str_equal(spec->slug, STR("repo-bot")));
	assert_true(str_equal(spec->base, STR("ghcr.io/acme/agent-base:1.4")));
	assert_int_equal(spec->step_count, 2);
	assert_true(str_equal(spec->steps[1], STR("RUN git clone x /workspace")));
	assert_int_equal(spec->timeout_ms, SPEC_TIMEOUT_DEFAULT_MS);
	assert_int_equal(spec->resources.memory_mb, 0); /* the sandbox's, not the bake's */
	assert_int_equal(json_array_size(spec->warnings), 1);
	assert_non_null(strstr(json_string_value(json_array_get(spec->warnings, 0)),
			       "sandbox: a bake uses image alone, not provider, resources, "
			       "network, lifecycle"));
	assert_string_equal(spec->platform.os, "linux");
}

static void an_agent_is_read_bare_or_wrapped(void **state)
{
	auto_buf struct buf wrapped = BUF_INIT(4096);
	auto_spec struct spec bare = {0};
	auto_spec struct spec inner = {0};
	struct err err = {0};

	(void)state;
	check_ok(spec_parse(str_of(seed), &bare, &err), &err);
	check_seed(&bare);
	check_ok(buf_addf(&wrapped, &err, "{\"agent\": %s}", seed), &err);
	check_ok(spec_parse(buf_str(&wrapped), &inner, &err), &err);
	check_seed(&inner);
}

static void an_image_alone_will_do(void **state)
{
	static const char text[] =
		"{\"base\": \"scratch\", \"platform\": \"linux/arm64/v8\", \"context\": \"src\","
		" \"timeoutMs\": 5000, \"compression\": \"gzip\", \"reproducible\": true,"
		" \"resources\": {\"cpu\": 1.5, \"memoryMb\": 512, \"pids\": 100,"
		" \"diskMb\": 7},"
		" \"secrets\": [], \"push\": [\"r.com/a:1\"], \"cache\": {}, \"steps\": null,"
		" \"network\": {\"egress\": {\"mode\": \"open\"}},"
		" \"rebake\": {\"cron\": \"0 3 * * *\", \"jitterMs\": 60000}}";
	auto_spec struct spec spec = {0};
	struct err err = {0};

	(void)state;
	check_ok(spec_parse(str_of(text), &spec, &err), &err);
	assert_int_equal(spec.step_count, 0);
	assert_int_equal(spec.slug.len, 0);
	assert_true(str_equal(spec.context, STR("src")));
	assert_string_equal(spec.platform.architecture, "arm64");
	assert_string_equal(spec.platform.variant, "v8");
	assert_int_equal(spec.timeout_ms, 5000);
	assert_int_equal(spec.compression, LAYER_GZIP);
	assert_true(spec.reproducible);
	assert_int_equal(spec.source_date_epoch, SPEC_EPOCH_OF_BASE);
	assert_true(str_equal(spec.rebake.cron, STR("0 3 * * *")));
	assert_int_equal(spec.rebake.jitter_ms, 60000);
	assert_int_equal(spec.resources.memory_mb, 512);
	assert_int_equal(spec.resources.pids, 100);
	assert_int_equal(spec.resources.disk_mb, 7);
	assert_true(spec.resources.cpu > 1.4 && spec.resources.cpu < 1.6);
}

static void processors_are_counted_in_thousandths(void **state)
{
	static const char *const fine[] = {"0.001", "1", "4096", "4096.0", "null"};

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		auto_spec struct spec spec = {0};
		char text[128];
		struct err err = {0};

		(void)snprintf(text, sizeof(text),
			       "{\"base\": \"scratch\", \"resources\": {\"cpu\": %s}}", fine[i]);
		check_ok(spec_parse(str_of(text), &spec, &err), &err);
	}
}

static void unknown_keys_of_an_agent_are_warnings(void **state)
{
	static const char text[] =
		"{\"agent\": {\"slug\": \"a\", \"colour\": 1, \"sandbox\": {\"image\": {\"base\": "
		"\"scratch\"}}}, \"extra\": 2}";
	auto_spec struct spec spec = {0};
	struct err err = {0};

	(void)state;
	check_ok(spec_parse(str_of(text), &spec, &err), &err);
	assert_int_equal(json_array_size(spec.warnings), 2);
	assert_string_equal(json_string_value(json_array_get(spec.warnings, 0)),
			    "extra: unknown key, kept and not used");
	assert_string_equal(json_string_value(json_array_get(spec.warnings, 1)),
			    "agent.colour: unknown key, kept and not used");
}

#define IMAGE(members) "{\"base\": \"scratch\", " members "}"
#define AGENT(members) \
	"{\"slug\": \"a\", \"sandbox\": {\"image\": {\"base\": \"scratch\"}, " members "}}"

static const struct {
	const char *text;
	enum err_kind kind;
	const char *says;
} wrong_cases[] = {
	{"", ERR_INVALID, "line 1 column"},
	{"{\"base\": \"a\",\n \"steps\": [}", ERR_INVALID, "line 2 column"},
	{"[]", ERR_INVALID, "expected an object, found an array"},
	{"{\"base\": \"a\", \"base\": \"b\"}", ERR_INVALID, "duplicate"},
	{IMAGE("\"steps\": [\"a\\u0000b\"]"), ERR_INVALID, "\\u0000 is not allowed"},
	{IMAGE("\"steps\": [\"RUN a\", \"RUN b\", 3]"), ERR_INVALID,
	 "steps[2]: expected a string, found an integer"},
	{IMAGE("\"steps\": [null]"), ERR_INVALID, "steps[0]: expected a string, found null"},
	{IMAGE("\"steps\": \"RUN a\""), ERR_INVALID, "steps: expected an array, found a string"},
	{IMAGE("\"stpes\": []"), ERR_INVALID, "stpes: unknown key; did you mean steps?"},
	{IMAGE("\"timeoutMs\": \"5\""), ERR_INVALID,
	 "timeoutMs: expected an integer, found a string"},
	{IMAGE("\"timeoutMs\": 0"), ERR_INVALID, "timeoutMs: expected at least 1"},
	{IMAGE("\"resources\": {\"memory\": 1}"), ERR_INVALID,
	 "resources.memory: unknown key; did you mean memoryMb?"},
	{IMAGE("\"resources\": {\"cpu\": 0}"), ERR_INVALID,
	 "resources.cpu: expected 0.001 to 4096, found 0"},
	{IMAGE("\"resources\": {\"cpu\": 0.0004}"), ERR_INVALID,
	 "resources.cpu: expected 0.001 to 4096"},
	{IMAGE("\"resources\": {\"cpu\": 4096.5}"), ERR_INVALID, "resources.cpu: expected 0.001"},
	{IMAGE("\"resources\": {\"cpu\": 1e300}"), ERR_INVALID, "resources.cpu: expected 0.001"},
	{IMAGE("\"resources\": {\"memoryMb\": 2000000000}"), ERR_INVALID, "resources.memoryMb"},
	{IMAGE("\"compression\": \"lz4\""), ERR_INVALID,
	 "compression: expected one of zstd, gzip, found \"lz4\""},
	{IMAGE("\"reproducible\": 1"), ERR_INVALID,
	 "reproducible: expected true or false, found an integer"},
	{IMAGE("\"rebake\": {\"cron\": 5}"), ERR_INVALID, "rebake.cron: expected a string"},
	{IMAGE("\"rebake\": {}"), ERR_INVALID, "rebake.cron: missing"},
	{IMAGE("\"rebake\": {\"cron\": \"0 25 * * *\"}"), ERR_INVALID,
	 "rebake.cron: the hour: expected"},
	{IMAGE("\"rebake\": {\"cron\": \"0 0 30 2 *\"}"), ERR_INVALID,
	 "rebake.cron: no day is ever like that"},
	{IMAGE("\"rebake\": {\"cron\": \"@daily\"}"), ERR_INVALID,
	 "rebake.cron: expected five fields"},
	{IMAGE("\"rebake\": {\"cron\": \"0 0 * * *\", \"jitterMs\": 86400001}"), ERR_INVALID,
	 "rebake.jitterMs: expected at most 86400000"},
	{IMAGE("\"secrets\": [\"x\"]"), ERR_INVALID, "secrets[0]: expected an object"},
	{IMAGE("\"platform\": \"amd64\""), ERR_INVALID, "platform: "},
	{"{\"steps\": []}", ERR_INVALID, "base: missing"},
	{"{\"base\": 5}", ERR_INVALID, "base: expected a string, found an integer"},
	{"{\"base\": \"\"}", ERR_INVALID, "base: "},
	{"{\"base\": \"UPPER/Case\"}", ERR_INVALID, "base: "},
	{"{}", ERR_INVALID, "base: missing"},
	{"{\"agent\": 1}", ERR_INVALID, "agent: expected an object, found an integer"},
	{"{\"image\": {}}", ERR_INVALID, "image: give the agent"},
	{"{\"slug\": \"a\"}", ERR_INVALID, "sandbox: missing"},
	{"{\"slug\": \"a\", \"sandbox\": {}}", ERR_INVALID, "sandbox.image: missing"},
	{"{\"sandbox\": {\"image\": {\"base\": \"scratch\"}}}", ERR_INVALID, "slug: missing"},
	{"{\"slug\": \"A b\", \"sandbox\": {\"image\": {\"base\": \"scratch\"}}}", ERR_INVALID,
	 "slug: expected lower-case"},
	{"{\"slug\": \"a\", \"sandbox\": {\"image\": {\"base\": \"scratch\", \"steps\": "
	 "[1]}}}",
	 ERR_INVALID, "sandbox.image.steps[0]: expected a string, found an integer"},
	{"{\"agent\": {\"slug\": \"a\", \"sandbox\": {\"image\": {\"baze\": \"x\"}}}}", ERR_INVALID,
	 "agent.sandbox.image.baze: unknown key; did you mean base?"},
	{AGENT("\"lifecycle\": {\"idleAfter\": 1}"), ERR_INVALID,
	 "sandbox.lifecycle.idleAfter: unknown key; did you mean idleAfterMs?"},
	{AGENT("\"scope\": \"planet\""), ERR_INVALID, "expected one of tree, session"},
	{AGENT("\"tools\": {\"preset\": 1}"), ERR_INVALID, "sandbox.tools.preset"},
	{"{\"slug\": \"a\", \"subagents\": [1], \"sandbox\": {\"image\": {\"base\": "
	 "\"scratch\"}}}",
	 ERR_INVALID, "subagents[0]: expected an object"},
	/* legal, and later */
	{IMAGE("\"secrets\": [{\"id\": 1}]"), ERR_INVALID, "secrets[0].id: expected a string"},
	{IMAGE("\"secrets\": [{}]"), ERR_INVALID, "secrets[0].id"},
	{IMAGE("\"secrets\": [{\"id\": \"x\", \"src\": \"/f\"}]"), ERR_INVALID,
	 "secrets[0].src: unknown key"},
	{IMAGE("\"push\": \"x\""), ERR_INVALID, "push: expected an array, found a string"},
	{IMAGE("\"cache\": {\"from\": [\"x\"]}"), ERR_UNSUPPORTED,
	 "cache: not supported yet, leave it out; steps are cached in the data directory alone"},
	{IMAGE("\"network\": {\"egress\": {\"mode\": \"deny\"}}"), ERR_UNSUPPORTED,
	 "network.egress.mode"},
	{IMAGE("\"network\": {\"egress\": {\"mode\": \"open\", \"deny\": [\"x\"]}}"),
	 ERR_UNSUPPORTED, "network.egress.deny"},
	{"{\"slug\": \"a\", \"sandbox\": {\"image\": {\"base\": \"scratch\", \"cache\": "
	 "{\"to\": [\"x\"]}}}}",
	 ERR_UNSUPPORTED, "sandbox.image.cache: not supported yet"},
};

static void what_is_wrong_is_named_by_its_path(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(wrong_cases); i++) {
		struct spec spec = {0};
		struct err err = {0};

		if (spec_parse(str_of(wrong_cases[i].text), &spec, &err) == 0)
			fail_msg("%s: accepted", wrong_cases[i].text);
		if (err.kind != wrong_cases[i].kind || !strstr(err.text, wrong_cases[i].says))
			fail_msg("%s: said \"%s\", not \"%s\"", wrong_cases[i].text, err.text,
				 wrong_cases[i].says);
	}
}

static void secrets_are_named_and_never_given_in_a_spec(void **state)
{
	auto_spec struct spec spec = {0};
	struct err err = {0};

	(void)state;
	check_ok(spec_parse(STR("{\"base\": \"scratch\", \"secrets\": [{\"id\": \"a\"}, "
				"{\"id\": \"b\", \"required\": true}]}"),
			    &spec, &err),
		 &err);
	assert_int_equal(spec.secret_count, 2);
	assert_true(str_equal(spec.secrets[0].id, STR("a")));
	assert_false(spec.secrets[0].required);
	assert_true(str_equal(spec.secrets[1].id, STR("b")));
	assert_true(spec.secrets[1].required);
}

static void slugs_are_judged(void **state)
{
	static const struct {
		const char *slug;
		bool good;
	} cases[] = {
		{"a", true},
		{"repo-bot", true},
		{"a.b_c-d9", true},
		{"0", true},
		{"", false},
		{"-a", false},
		{"a-", false},
		{"a--b", false},
		{"A", false},
		{"a/b", false},
		{"\xc3\xbc", false},
		{"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg", true},
		{"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_buf struct buf text = BUF_INIT(4096);
		auto_spec struct spec spec = {0};
		struct err err = {0};

		check_ok(buf_addf(&text, &err,
				  "{\"slug\": \"%s\", \"sandbox\": {\"image\": {\"base\": "
				  "\"scratch\"}}}",
				  cases[i].slug),
			 &err);
		assert_int_equal(spec_parse(buf_str(&text), &spec, &err), cases[i].good ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_is_read_bare_or_wrapped),
		cmocka_unit_test(an_image_alone_will_do),
		cmocka_unit_test(processors_are_counted_in_thousandths),
		cmocka_unit_test(unknown_keys_of_an_agent_are_warnings),
		cmocka_unit_test(what_is_wrong_is_named_by_its_path),
		cmocka_unit_test(secrets_are_named_and_never_given_in_a_spec),
		cmocka_unit_test(slugs_are_judged),
	};

	return cmocka_run_group_tests_name("bake/spec", tests, NULL, NULL);
}
