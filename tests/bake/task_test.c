/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/task.h"
#include "tests/check.h"

#include <netinet/in.h>
#include <string.h>

static void fill_host(struct network_host *host)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(8080)};

	address.sin_addr.s_addr = htonl(0x7f000001);
	memset(host, 0, sizeof(*host));
	memcpy(host->name, "git.test", sizeof("git.test"));
	memcpy(&host->address, &address, sizeof(address));
}

static void a_task_arrives_as_it_was_sent(void **state)
{
	const char *argv[] = {"/bin/sh", "-c", "echo \xc3\xa9\n\"quoted\"", NULL};
	const char *env[] = {"A=b", "EMPTY=", NULL};
	struct task_layer layers[2] = {{.size = 7}, {.size = UINT32_MAX}};
	const int64_t clamp = 1700000000;
	struct digest content;
	struct network_host host;
	struct task task = {
		.layers = layers,
		.layer_count = 2,
		.kind = INSTRUCTION_RUN,
		.argv = argv,
		.argc = 3,
		.env = env,
		.env_count = 2,
		.workdir = "/srv",
		.user = "",
		.chown = "1:2",
		.content = &content,
		.clamp = &clamp,
		.network = NETWORK_OPEN,
		.hosts = &host,
		.host_count = 1,
		.limits = {.memory_bytes = 1 << 30, .cpu_millis = 1500, .pids = 9},
		.timeout_ms = 3600000,
		.codec = LAYER_GZIP,
		.agent_path = "/libexec/hearth-agent",
		.store_path = "/var/lib/hearth",
		.store_map_bytes = (uint64_t)1 << 40,
		.fresh = true,
	};
	auto_buf struct buf text = BUF_INIT((size_t)1024 * 1024);
	AUTO(json) json_t *json = NULL;
	auto_task struct task back = {0};
	struct err err = {0};

	(void)state;
	fill_host(&host);
	digest_of(STR("key"), &task.key);
	digest_of(STR("parent"), &task.parent);
	digest_of(STR("content"), &content);
	digest_of(STR("blob"), &layers[0].blob);
	digest_of(STR("tar"), &layers[1].diff_id);
	json = task_format(&task);
	check_ok(json_format(json, &text, &err), &err);
	check_ok(task_parse(buf_str(&text), &back, &err), &err);

	assert_true(digest_equal(&back.key, &task.key));
	assert_true(digest_equal(&back.parent, &task.parent));
	assert_true(digest_equal(back.content, &content));
	assert_int_equal(*back.clamp, clamp);
	assert_int_equal(back.layer_count, 2);
	assert_true(digest_equal(&back.layers[0].blob, &layers[0].blob));
	assert_true(digest_equal(&back.layers[1].diff_id, &layers[1].diff_id));
	assert_int_equal(back.layers[1].size, UINT32_MAX);
	assert_int_equal(back.argc, 3);
	assert_string_equal(back.argv[2], argv[2]);
	assert_null(back.argv[3]);
	assert_string_equal(back.env[1], "EMPTY=");
	assert_string_equal(back.workdir, "/srv");
	assert_string_equal(back.chown, "1:2");
	assert_null(back.chmod);
	assert_int_equal(back.network, NETWORK_OPEN);
	assert_int_equal(back.host_count, 1);
	assert_memory_equal(&back.hosts[0], &host, sizeof(host));
	assert_int_equal(back.limits.cpu_millis, 1500);
	assert_int_equal(back.store_map_bytes, task.store_map_bytes);
	assert_int_equal(back.codec, LAYER_GZIP);
	assert_true(back.fresh);
}

static void what_is_no_task_is_refused(void **state)
{
	static const char *const wrong[] = {"", "[]", "{}", "{\"key\":\"sha256:00\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct task task;
		struct err err = {0};

		check_err(task_parse(str_of(wrong[i]), &task, &err), &err, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_arrives_as_it_was_sent),
		cmocka_unit_test(what_is_no_task_is_refused),
	};

	return cmocka_run_group_tests_name("bake/task", tests, NULL, NULL);
}
