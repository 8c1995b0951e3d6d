/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/state.h"
#include "bake/task.h"
#include "bake/wire.h"
#include "tests/check.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

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
	struct task_layer theirs[1] = {{.size = 11}};
	struct task_image image = {theirs, 1};
	const char *excludes[] = {"*.o", "a b"};
	struct digest content;
	struct network_host host;
	struct task task = {
		.layers = layers,
		.layer_count = 2,
		.images = &image,
		.image_count = 1,
		.image_name = "debian:12",
		.excludes = excludes,
		.exclude_count = 2,
		.parents = true,
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
		.limits = {.memory_bytes = 1 << 30,
			   .cpu_millis = 1500,
			   .pids = 9,
			   .disk_bytes = 5 << 20},
		.timeout_ms = 3600000,
		.codec = LAYER_GZIP,
		.agent_path = "/libexec/hearth-agent",
		.store_path = "/var/lib/hearth",
		.store_map_bytes = (uint64_t)1 << 40,
		.fresh = true,
		.draft = "bak_1",
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
	assert_string_equal(back.draft, "bak_1");
	assert_int_equal(*back.clamp, clamp);
	assert_int_equal(back.layer_count, 2);
	assert_true(digest_equal(&back.layers[0].blob, &layers[0].blob));
	assert_true(digest_equal(&back.layers[1].diff_id, &layers[1].diff_id));
	assert_int_equal(back.layers[1].size, UINT32_MAX);
	assert_int_equal(back.image_count, 1);
	assert_int_equal(back.images[0].layer_count, 1);
	assert_int_equal(back.images[0].layers[0].size, 11);
	assert_string_equal(back.image_name, "debian:12");
	assert_int_equal(back.exclude_count, 2);
	assert_string_equal(back.excludes[1], "a b");
	assert_true(back.parents);
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
	assert_int_equal(back.limits.disk_bytes, 5 << 20);
	assert_int_equal(back.store_map_bytes, task.store_map_bytes);
	assert_int_equal(back.codec, LAYER_GZIP);
	assert_true(back.fresh);
}

static void set_mount(struct task_mount *entry, const char *text)
{
	struct state state = {0};
	struct platform platform;
	struct err err = {0};

	platform_host(&platform);
	check_ok(state_from_scratch(&platform, &state, &err), &err);
	check_ok(mount_parse(str_of(text), &state, &entry->mount, &err), &err);
	state_done(&state);
}

static void check_text(const char *got, const char *wanted)
{
	if (wanted)
		assert_string_equal(got, wanted);
	else
		assert_null(got);
}

static void check_mount(const struct mount *got, const struct mount *wanted)
{
	assert_int_equal(got->type, wanted->type);
	assert_int_equal(got->sharing, wanted->sharing);
	assert_int_equal(got->mode, wanted->mode);
	assert_int_equal(got->uid, wanted->uid);
	assert_int_equal(got->gid, wanted->gid);
	assert_int_equal(got->size, wanted->size);
	assert_int_equal(got->read_only, wanted->read_only);
	check_text(got->target, wanted->target);
	check_text(got->source, wanted->source);
	check_text(got->id, wanted->id);
	check_text(got->env, wanted->env);
}

/* Over the wire, where secrets go by themselves. */
static void mounts_arrive_and_secrets_are_in_no_document(void **state)
{
	static const char *const texts[] = {
		"type=cache,target=/c,id=k,sharing=locked,mode=1777,uid=1,gid=2",
		"type=tmpfs,target=/t,size=64m,ro",
		"source=a,target=/b,rw",
		"type=secret,id=absent",
		"type=secret,id=s,env=TOKEN,target=/s",
	};
	enum { COUNT = sizeof(texts) / sizeof(texts[0]) };
	const char *none[] = {NULL};
	struct task_mount mounts[COUNT] = {0};
	auto_secret struct secret token = {0};
	struct task task = {.argv = none,
			    .env = none,
			    .mounts = mounts,
			    .mount_count = COUNT,
			    .platform = "linux/amd64",
			    .workdir = "/",
			    .user = "",
			    .agent_path = "",
			    .store_path = ""};
	auto_buf struct buf text = BUF_INIT((size_t)1024 * 1024);
	AUTO(json) json_t *json = NULL;
	auto_task struct task back = {0};
	struct err err = {0};
	int ends[2];

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		set_mount(&mounts[i], texts[i]);
	digest_of(STR("content"), &mounts[2].mount.content);
	check_ok(secret_put(&token, ((struct str){"hid\0den", 7}), &err), &err);
	mounts[4].secret = &token;
	json = task_format(&task);
	check_ok(json_format(json, &text, &err), &err);
	assert_null(strstr(text.ptr, "hid"));
	check_ok(task_parse(buf_str(&text), &back, &err), &err);
	assert_string_equal(back.platform, "linux/amd64");
	assert_int_equal(back.mount_count, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		check_mount(&back.mounts[i].mount, &mounts[i].mount);
	assert_true(digest_equal(&back.mounts[2].mount.content, &mounts[2].mount.content));

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	check_ok(task_send_secrets(&task, ends[0], &err), &err);
	check_ok(task_receive_secrets(&back, ends[1], &err), &err);
	assert_null(back.mounts[3].secret);
	assert_int_equal(secret_bytes(back.mounts[4].secret).len, 7);
	assert_memory_equal(secret_bytes(back.mounts[4].secret).ptr, "hid\0den", 7);
	check_ok(wire_send(ends[0], WIRE_LEAVE, STR(""), &err), &err);
	check_err(task_receive_secrets(&back, ends[1], &err), &err, ERR_UNAVAILABLE);
	assert_int_equal(close(ends[0]) + close(ends[1]), 0);
	for (size_t i = 0; i < COUNT; i++)
		mount_done(&mounts[i].mount);
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

static void a_draft_has_a_meeting_of_its_own(void **state)
{
	struct task task = {0};
	struct digest first;
	struct digest second;

	(void)state;
	digest_of(STR("key"), &task.key);
	task_meeting(&task, &first);
	assert_true(digest_equal(&first, &task.key));
	task.draft = "bak_1";
	task_meeting(&task, &first);
	assert_false(digest_equal(&first, &task.key));
	task_meeting(&task, &second);
	assert_true(digest_equal(&first, &second));
	task.draft = "bak_2";
	task_meeting(&task, &second);
	assert_false(digest_equal(&first, &second));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_arrives_as_it_was_sent),
		cmocka_unit_test(a_draft_has_a_meeting_of_its_own),
		cmocka_unit_test(mounts_arrive_and_secrets_are_in_no_document),
		cmocka_unit_test(what_is_no_task_is_refused),
	};

	return cmocka_run_group_tests_name("bake/task", tests, NULL, NULL);
}
