/* SPDX-License-Identifier: Apache-2.0 */
#include "api/config.h"
#include "tests/check.h"

#include <arpa/inet.h>

#define ALL                                                                                        \
	"{\"data\": \"/srv/hearth\", \"listen\": \"[::1]:0\","                                     \
	" \"origins\": [\"https://ui.example\", \"http://localhost:5173\"],"                       \
	" \"tls\": {\"cert\": \"/c\", \"key\": \"/k\"}, \"preview\": {\"host\": \"p.example\"},"   \
	" \"bakes\": {\"parallel\": 3, \"timeoutMs\": 60000},"                                     \
	" \"gc\": {\"keepVersions\": 5, \"unusedMs\": 86400000, \"maxBytes\": 1000,"               \
	" \"minFreeBytes\": 0},"                                                                   \
	" \"registry\": {\"anonymous\": [\"public/*\"], \"insecure\": [\"r.example:5000\"],"       \
	" \"mirrors\": {\"docker.io\": [\"http://m.example/hub/\", \"https://10.0.0.1:5000\"]}},"  \
	" \"mirror\": {\"upstreams\": {\"docker.io\": {\"url\": \"https://registry-1.docker.io\"," \
	" \"tagTtlMs\": 1, \"maxBytes\": 2, \"ca\": \"/ca\"}}, \"default\": \"docker.io\"},"       \
	" \"egress\": {\"hosts\": {\"git.example\": \"10.0.0.2:9418\"}},"                          \
	" \"secrets\": {\"token\": {\"env\": \"TOKEN\"}, \"key\": {\"src\": \"/k\"}},"             \
	" \"runtime\": \"runc\", \"production\": true, \"events\": {\"keepMs\": 9, \"keep\": 8}}"

static void every_key_reaches_its_field(void **state)
{
	auto_config struct config config = CONFIG_INIT;
	struct err err = {0};
	const struct sockaddr_in *host;

	(void)state;
	check_ok(config_parse(STR(ALL), &config, &err), &err);
	assert_string_equal(config.data, "/srv/hearth");
	assert_string_equal(config.listen, "[::1]:0");
	assert_int_equal(config.origins.count, 2);
	assert_string_equal(config.origins.at[1], "http://localhost:5173");
	assert_string_equal(config.tls_cert, "/c");
	assert_string_equal(config.tls_key, "/k");
	assert_string_equal(config.preview_host, "p.example");
	assert_string_equal(config.runtime, "runc");
	assert_true(config.production);
	assert_int_equal(config.bakes_parallel, 3);
	assert_int_equal(config.bakes_timeout_ms, 60000);
	assert_int_equal(config.gc.keep, 5);
	assert_int_equal(config.gc.unused_ms, 86400000);
	assert_int_equal(config.gc.max_bytes, 1000);
	assert_int_equal(config.gc.min_free_bytes, 0);
	assert_int_equal(config.events_keep_ms, 9);
	assert_int_equal(config.events_keep, 8);
	assert_int_equal(config.host_count, 1);
	assert_string_equal(config.hosts[0].name, "git.example");
	host = (const struct sockaddr_in *)&config.hosts[0].address;
	assert_int_equal(ntohs(host->sin_port), 9418);
}

static void registries_and_secrets_are_lists_in_the_files_order(void **state)
{
	auto_config struct config config = CONFIG_INIT;
	struct err err = {0};

	(void)state;
	check_ok(config_parse(STR(ALL), &config, &err), &err);
	assert_int_equal(config.anonymous.count, 1);
	assert_string_equal(config.anonymous.at[0], "public/*");
	assert_true(config_is_insecure(&config, STR("r.example:5000")));
	assert_false(config_is_insecure(&config, STR("r.example")));
	assert_int_equal(config.mirror_count, 2);
	assert_string_equal(config.mirrors[0].host, "docker.io");
	assert_true(str_equal(config.mirrors[0].place, STR("m.example/hub")));
	assert_true(config.mirrors[0].plain_http);
	assert_true(str_equal(config.mirrors[1].place, STR("10.0.0.1:5000")));
	assert_false(config.mirrors[1].plain_http);
	assert_int_equal(config.upstream_count, 1);
	assert_true(str_equal(config.upstreams[0].place, STR("registry-1.docker.io")));
	assert_false(config.upstreams[0].plain_http);
	assert_int_equal(config.upstreams[0].tag_ttl_ms, 1);
	assert_int_equal(config.upstreams[0].max_bytes, 2);
	assert_string_equal(config.upstreams[0].ca, "/ca");
	assert_string_equal(config.default_upstream, "docker.io");
	assert_int_equal(config.secret_count, 2);
	assert_string_equal(config.secrets[0].id, "token");
	assert_string_equal(config.secrets[0].env, "TOKEN");
	assert_null(config.secrets[0].file);
	assert_string_equal(config.secrets[1].file, "/k");
}

static void what_is_not_said_limits_nothing(void **state)
{
	auto_config struct config config = CONFIG_INIT;
	struct err err = {0};

	(void)state;
	check_ok(config_parse(STR("{\"gc\": {}, \"listen\": null}"), &config, &err), &err);
	assert_null(config.data);
	assert_null(config.listen);
	assert_int_equal(config.gc.keep, GC_NEVER);
	assert_int_equal(config.gc.unused_ms, GC_NEVER);
	assert_int_equal(config.gc.max_bytes, UINT64_MAX);
	assert_int_equal(config.gc.min_free_bytes, 0);
	assert_int_equal(config.mirror_count, 0);
}

static void what_is_wrong_is_named_by_its_path(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"[]", "expected an object, found an array"},
		{"{\"dta\": \"/x\"}", "dta: unknown key; did you mean data?"},
		{"{\"gc\": {\"keepVersion\": 1}}",
		 "gc.keepVersion: unknown key; did you mean keepVersions?"},
		{"{\"gc\": {\"maxBytes\": \"20G\"}}", "gc.maxBytes: expected an integer"},
		{"{\"gc\": {\"maxBytes\": 0}}", "gc.maxBytes: expected at least 1"},
		{"{\"gc\": {\"unusedMs\": 9000000000000000000}}", "gc.unusedMs: expected at most"},
		{"{\"bakes\": {\"parallel\": 100000}}", "bakes.parallel: expected at most 1024"},
		{"{\"bakes\": {\"timeoutMs\": 1.5}}", "bakes.timeoutMs: expected an integer"},
		{"{\"data\": \"x\"}", "data: expected an absolute path"},
		{"{\"runtime\": \"\"}", "runtime: expected a text that is not empty"},
		{"{\"listen\": \"localhost\"}", "listen: expected HOST:PORT"},
		{"{\"listen\": \":80\"}", "listen: expected HOST:PORT"},
		{"{\"listen\": \"h:65536\"}", "listen: expected HOST:PORT"},
		{"{\"origins\": [\"*\"]}", "origins[0]: expected https://HOST[:PORT]"},
		{"{\"origins\": [\"https://a\", \"https://a/\"]}", "origins[1]: expected"},
		{"{\"origins\": [\"https://A\"]}", "in lower case, found https://A"},
		{"{\"tls\": {\"cert\": \"/c\"}}", "tls: cert and key go together"},
		{"{\"registry\": {\"insecure\": [1]}}", "registry.insecure[0]: expected a string"},
		{"{\"registry\": {\"mirrors\": {\"h\": \"x\"}}}",
		 "registry.mirrors.h: expected an array of URLs"},
		{"{\"registry\": {\"mirrors\": {\"h\": [1]}}}",
		 "registry.mirrors.h[0]: expected a string"},
		{"{\"registry\": {\"mirrors\": {\"h\": [\"ftp://x\"]}}}",
		 "registry.mirrors.h[0]: expected http:// or https://"},
		{"{\"registry\": {\"mirrors\": {\"h\": [\"http://x\"]}}}",
		 "expected a host with a dot or a port"},
		{"{\"registry\": {\"mirrors\": {\"h\": [\"http://x:5000/A\"]}}}",
		 "registry.mirrors.h[0]: http://x:5000/A"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {}}}}",
		 "mirror.upstreams.h: it needs a url"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {\"url\": \"h.example\"}}}}",
		 "mirror.upstreams.h.url: expected http:// or https://, found h.example"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {\"url\": \"http://h.example\", \"listen\": "
		 "\"x\"}}}}",
		 "mirror.upstreams.h: listen: expected HOST:PORT, found x"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {\"url\": \"https://h.example\", \"ca\": "
		 "\"x.pem\"}}}}",
		 "mirror.upstreams.h.ca: expected an absolute path, found x.pem"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {\"url\": \"http://h.example\", \"ca\": "
		 "\"/x\"}}}}",
		 "mirror.upstreams.h.ca: it goes with an https:// url"},
		{"{\"mirror\": {\"upstreams\": {\"h\": {\"ulr\": \"x\"}}}}",
		 "mirror.upstreams.h.ulr: unknown key; did you mean url?"},
		{"{\"mirror\": {\"default\": \"h\"}}", "mirror.default: h is none of"},
		{"{\"egress\": {\"hosts\": {\"h\": \"nowhere\"}}}", "egress.hosts.h: "},
		{"{\"egress\": {\"hosts\": {\"h\": 1}}}", "egress.hosts.h: expected a string"},
		{"{\"secrets\": {\"s\": {}}}", "secrets.s: expected src or env"},
		{"{\"secrets\": {\"s\": {\"src\": \"/a\", \"env\": \"B\"}}}", "and one of them"},
		{"{\"secrets\": {\"s\": \"value\"}}", "secrets.s: expected an object"},
		{"{\"data\": \"/a\", \"data\": \"/b\"}", "duplicate"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config config = {.data = "untouched"};
		struct err err = {0};

		check_err(config_parse(str_of(cases[i].text), &config, &err), &err, ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_string_equal(config.data, "untouched");
	}
}

static void lists_have_a_ceiling(void **state)
{
	auto_buf struct buf text = BUF_INIT(CONFIG_MAX);
	struct config config;
	struct err err = {0};

	(void)state;
	check_ok(buf_add(&text, STR("{\"registry\": {\"insecure\": [\"h\""), &err), &err);
	for (size_t i = 0; i < CONFIG_LIST_MAX; i++)
		check_ok(buf_add(&text, STR(", \"h\""), &err), &err);
	check_ok(buf_add(&text, STR("]}}"), &err), &err);
	check_err(config_parse(buf_str(&text), &config, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "registry.insecure: expected at most 256, found 257"));
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct config config;
	struct err err = {0};

	(void)state;
	check_err(config_read("/proc/nothing/hearth.json", NULL, &config, &err), &err,
		  ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "configuration /proc/nothing/hearth.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_reaches_its_field),
		cmocka_unit_test(registries_and_secrets_are_lists_in_the_files_order),
		cmocka_unit_test(what_is_not_said_limits_nothing),
		cmocka_unit_test(what_is_wrong_is_named_by_its_path),
		cmocka_unit_test(lists_have_a_ceiling),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests_name("api/config", tests, NULL, NULL);
}
