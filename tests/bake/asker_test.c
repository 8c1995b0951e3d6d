/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker here is this very program in another role: it speaks the wire and
 * does what the task's first word says.
 */
#include "bake/asker.h"
#include "bake/rendezvous.h"
#include "bake/work.h"
#include "layers/step.h"
#include "tests/layers/store_fixture.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

static int play_open_store(const struct task *task, struct store **out, struct err *err)
{
	const struct store_options options = {.path = task->store_path,
					      .map_bytes = task->store_map_bytes};

	return store_open(&options, out, err);
}

static int play_record(const struct task *task, struct err *err)
{
	struct step_record record = STEP_RECORD_INIT;
	AUTO(store) struct store *store = NULL;
	AUTO(meta) struct meta *meta = NULL;

	record.key = task->key;
	record.empty = true;
	if (play_open_store(task, &store, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0 || step_put(meta, &record, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* One request, answered as it asks. */
static int play_worker(void)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	auto_task struct task task = {0};
	AUTO(json) json_t *answer = json_object();
	struct err err = {0};
	enum wire_type type;

	if (wire_receive(WORK_FD_ASKER, NULL, &type, &payload, &err) != 1 ||
	    task_parse(buf_str(&payload), &task, &err) < 0)
		return 3;
	if (strcmp(task.argv[0], "die") == 0)
		(void)raise(SIGKILL);
	if (strcmp(task.argv[0], "fail") == 0) {
		struct err why = {0};
		AUTO(json) json_t *failure = NULL;

		(void)err_set(&why, ERR_STEP, "the command ended with exit code 42");
		failure = wire_error(&why, 42);
		return wire_send_json(WORK_FD_ASKER, WIRE_ERROR, failure, &err) < 0 ? 3 : 1;
	}
	if (strcmp(task.argv[0], "wait") == 0) /* until the asker leaves */
		return wire_receive(WORK_FD_ASKER, NULL, &type, &payload, &err) == 1 &&
				       type == WIRE_LEAVE
			       ? 0
			       : 3;
	if (wire_send(WORK_FD_ASKER, WIRE_LOG, STR("working\n"), &err) < 0 ||
	    play_record(&task, &err) < 0)
		return 3;
	return wire_send_json(WORK_FD_ASKER, WIRE_RESULT, answer, &err) < 0 ? 3 : 0;
}

/* The first of a pair dies; what it leaves tells the second to answer. */
static int play_call(void)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	AUTO(json) json_t *request = NULL;
	AUTO(json) json_t *answer = json_object();
	const char *mark;
	struct err err = {0};

	if (work_receive(&payload, &err) < 0 ||
	    json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &request, &err) < 0)
		return 3;
	mark = json_string_value(json_object_get(request, "mark"));
	if (!mark || mkdir(mark, 0700) == 0)
		(void)raise(SIGKILL);
	return wire_send_json(WORK_FD_ASKER, WIRE_RESULT, answer, &err) < 0 ? 3 : 0;
}

struct scene {
	struct asker asker;
	struct crew crew;
	struct task task;
	const char *argv[2];
	char self[PATH_MAX];
	char heard[256];
};

static void hear(void *ctx, struct str bytes)
{
	struct scene *scene = ctx;
	size_t used = strlen(scene->heard);

	assert_true(used + bytes.len < sizeof(scene->heard));
	memcpy(scene->heard + used, bytes.ptr, bytes.len);
}

static void scene_set(struct scene *scene, const struct store_fixture *fixture, const char *word)
{
	static const char *const env[] = {NULL};

	*scene = (struct scene){.argv = {word, NULL}};
	assert_true(readlink("/proc/self/exe", scene->self, sizeof(scene->self) - 1) > 0);
	scene->crew = CREW_INIT(scene->self);
	scene->asker = (struct asker){
		.store = fixture->store, .crew = &scene->crew, .log = hear, .ctx = scene};
	scene->task = (struct task){
		.argv = scene->argv,
		.argc = 1,
		.workdir = "/",
		.user = "",
		.agent_path = "",
		.store_path = fixture->path,
		.store_map_bytes = STORE_FIXTURE_MAP,
	};
	memcpy(&scene->task.env, &(const char *const *){env}, sizeof(scene->task.env));
	digest_of(str_of(word), &scene->task.key);
}

static int scene_run(struct scene *scene, int *exit_code, struct err *err)
{
	bool shared;

	*exit_code = 0;
	return asker_run_step(&scene->asker, &scene->task, -1, &shared, exit_code, err);
}

/* Nothing may stay in run/step: a name there is a worker that lives, or died. */
static void check_free(struct scene *scene)
{
	int lockfd = -1;
	int listener = -1;
	struct err err = {0};

	assert_int_equal(
		rendezvous_claim(scene->asker.store, &scene->task.key, &lockfd, &listener, &err),
		1);
	assert_int_equal(close(lockfd), 0);
	assert_int_equal(close(listener), 0);
}

static void scene_done(struct scene *scene)
{
	crew_close(&scene->crew);
}

static void a_step_is_made_by_a_worker_and_heard(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "work");
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	assert_string_equal(scene.heard, "working\n");
	check_free(&scene);
	scene_done(&scene);
}

static void a_step_that_has_a_record_starts_no_worker(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "work");
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	scene.heard[0] = '\0';
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	assert_string_equal(scene.heard, "");
	scene.task.fresh = true;
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	assert_string_equal(scene.heard, "working\n");
	scene_done(&scene);
}

static void a_command_that_fails_is_told_with_its_code(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "fail");
	check_err(scene_run(&scene, &exit_code, &err), &err, ERR_STEP);
	assert_int_equal(exit_code, 42);
	check_free(&scene);
	scene_done(&scene);
}

static void a_worker_that_dies_is_replaced_and_then_given_up(void **state)
{
	struct scene scene;
	struct err err = {0};
	char hex[DIGEST_HEX_MAX];
	char lock[DIGEST_HEX_MAX + 16];
	int exit_code;

	scene_set(&scene, *state, "die");
	(void)snprintf(lock, sizeof(lock), "step/%s.lock", digest_hex(&scene.task.key, hex));
	assert_int_equal(mkdirat(store_dirfd(scene.asker.store, STORE_MACHINES), "000", 0700), 0);
	check_err(scene_run(&scene, &exit_code, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "died 3 times"));
	/* What the last one left is gone with it. */
	assert_int_equal(faccessat(store_dirfd(scene.asker.store, STORE_MACHINES), "000", F_OK, 0),
			 -1);
	assert_int_equal(faccessat(store_dirfd(scene.asker.store, STORE_RUN), lock, F_OK, 0), -1);
	check_free(&scene);
	scene_done(&scene);
}

static void a_call_whose_worker_dies_is_made_once_more(void **state)
{
	const struct store_fixture *fixture = *state;
	AUTO(json) json_t *request = json_object();
	AUTO(json) json_t *answer = NULL;
	struct scene scene;
	char mark[128];
	struct err err = {0};

	scene_set(&scene, fixture, "call");
	scene.asker.worker_path = scene.self;
	check_err(asker_call(&scene.asker, "call", request, &answer, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "died 2 times"));
	assert_null(answer);

	(void)snprintf(mark, sizeof(mark), "%s/mark", fixture->parent);
	(void)json_object_set_new(request, "mark", json_string(mark));
	check_ok(asker_call(&scene.asker, "call", request, &answer, &err), &err);
	assert_true(json_is_object(answer));
	assert_int_equal(rmdir(mark), 0);
	scene_done(&scene);
}

static void a_program_that_is_missing_is_named(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "work");
	scene.crew.worker_path = "/nonexistent/hearth-worker";
	check_err(scene_run(&scene, &exit_code, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "/nonexistent/hearth-worker"));
	scene_done(&scene);
}

static void an_asker_that_is_cancelled_leaves(void **state)
{
	struct scene scene;
	struct cancel cancel;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "wait");
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	scene.asker.cancel = &cancel;
	check_err(scene_run(&scene, &exit_code, &err), &err, ERR_CANCELLED);
	cancel_done(&cancel);
	check_free(&scene);
	scene_done(&scene);
}

static void the_steps_of_a_bake_are_forked_from_one_crew(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;
	pid_t pid;

	scene_set(&scene, *state, "work");
	scene.task.fresh = true;
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	pid = scene.crew.proc.pid;
	assert_true(pid > 0);
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	assert_int_equal(scene.crew.proc.pid, pid);
	scene_done(&scene);
	assert_int_equal(kill(pid, 0), -1);
}

static void a_crew_that_was_killed_is_started_anew(void **state)
{
	struct scene scene;
	struct err err = {0};
	int exit_code;

	scene_set(&scene, *state, "work");
	scene.task.fresh = true;
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	assert_int_equal(kill(scene.crew.proc.pid, SIGKILL), 0);
	check_ok(scene_run(&scene, &exit_code, &err), &err);
	check_free(&scene);
	scene_done(&scene);
}

static void one_key_has_one_holder(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest key;
	struct err err = {0};
	int lockfd = -1;
	int listener = -1;
	int fd = -1;

	digest_of(STR("key"), &key);
	assert_int_equal(rendezvous_join(fixture->store, &key, &fd, &err), 0);
	assert_int_equal(rendezvous_claim(fixture->store, &key, &lockfd, &listener, &err), 1);
	assert_int_equal(rendezvous_claim(fixture->store, &key, &fd, &fd, &err), 0);
	assert_int_equal(rendezvous_join(fixture->store, &key, &fd, &err), 1);
	assert_int_equal(close(fd), 0);
	rendezvous_close(fixture->store, &key);
	assert_int_equal(rendezvous_join(fixture->store, &key, &fd, &err), 0);
	assert_int_equal(rendezvous_claim(fixture->store, &key, &fd, &fd, &err), 0);
	rendezvous_leave(fixture->store, &key);
	/* The old holder's lock is on a file that has no name any more. */
	assert_int_equal(close(listener), 0);
	assert_int_equal(rendezvous_claim(fixture->store, &key, &fd, &listener, &err), 1);
	assert_int_equal(close(lockfd), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(listener), 0);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_step_is_made_by_a_worker_and_heard),
		STORE_TEST(a_step_that_has_a_record_starts_no_worker),
		STORE_TEST(a_command_that_fails_is_told_with_its_code),
		STORE_TEST(a_worker_that_dies_is_replaced_and_then_given_up),
		STORE_TEST(a_call_whose_worker_dies_is_made_once_more),
		STORE_TEST(a_program_that_is_missing_is_named),
		STORE_TEST(an_asker_that_is_cancelled_leaves),
		STORE_TEST(the_steps_of_a_bake_are_forked_from_one_crew),
		STORE_TEST(a_crew_that_was_killed_is_started_anew),
		STORE_TEST(one_key_has_one_holder),
	};

	if (argc == 2 && strcmp(argv[1], "steps") == 0)
		return work_steps(play_worker);
	if (argc == 2 && strcmp(argv[1], "call") == 0)
		return play_call();
	return cmocka_run_group_tests_name("bake/asker", tests, NULL, NULL);
}
