/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job here is this very program in the role `bake`: it plays what a spec's
 * model says, or bakes for real what needs no worker.
 */
#include "bake/image.h"
#include "bake/job.h"
#include "bake/job_work.h"
#include "bake/pushes.h"
#include "bake/wire.h"
#include "bake/work.h"
#include "registry/tag.h"
#include "tests/layers/store_fixture.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ENV_SPEC \
	"{\"slug\":\"a\",\"sandbox\":{\"image\":{\"base\":\"scratch\",\"steps\":[\"ENV A=1\"]}}}"

static int play_access(void *ctx, struct str reference, const struct cancel *cancel,
		       struct job_access *out, struct err *err)
{
	(void)ctx, (void)reference, (void)cancel, (void)err;
	*out = (struct job_access){0};
	return 0;
}

/* What came as the request, and after it. */
static int play_echo(const json_t *request)
{
	auto_buf struct buf secret = BUF_WIPED(SECRET_FILE_MAX);
	enum wire_type type;
	struct err err;

	for (size_t i = 0; i < json_array_size(json_object_get(request, "secrets")); i++) {
		if (wire_receive(WORK_FD_ASKER, NULL, &type, &secret, &err) != 1 ||
		    type != WIRE_SECRET ||
		    wire_send(WORK_FD_ASKER, WIRE_LOG, buf_str(&secret), &err) < 0)
			return 3;
	}
	(void)raise(SIGKILL);
	return 3;
}

/* Until the parent leaves; then a last word. */
static int play_wait(void)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	AUTO(json) json_t *answer = NULL;
	struct err why = {0};
	enum wire_type type;
	struct err err;

	if (wire_send(WORK_FD_ASKER, WIRE_LOG, STR("waiting"), &err) < 0 ||
	    wire_receive(WORK_FD_ASKER, NULL, &type, &payload, &err) != 0)
		return 3;
	(void)err_set(&why, ERR_CANCELLED, "cleaned up");
	answer = wire_error(&why, 0);
	return wire_send_json(WORK_FD_ASKER, WIRE_ERROR, answer, &err) < 0 ? 3 : 0;
}

/* A log of a megabyte that is a pattern, in frames of every size. */
static int play_log(void)
{
	auto_buf struct buf bytes = BUF_INIT(1 << 20);
	size_t size = 1;
	struct err err;

	for (size_t i = 0; i < 1 << 20; i++) {
		if (buf_add(&bytes, (struct str){&"0123456789"[i % 10], 1}, &err) < 0)
			return 3;
	}
	for (size_t at = 0; at < bytes.len; size = size * 3 + 1) {
		size_t n = size < bytes.len - at ? size : bytes.len - at;

		if (wire_send(WORK_FD_ASKER, WIRE_LOG, (struct str){bytes.ptr + at, n}, &err) < 0)
			return 3;
		at += n;
	}
	return 0;
}

/* A registry that has nothing, unless it is not reached: a base called away is. */
static int play_pull(void)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	AUTO(json) json_t *answer = NULL;
	struct err why = {0};
	enum wire_type type;
	struct err err;

	if (wire_receive(WORK_FD_ASKER, NULL, &type, &payload, &err) != 1)
		return 3;
	if (memmem(payload.ptr, payload.len, "away", 4))
		(void)err_set(&why, ERR_REMOTE, "nobody answers");
	else
		(void)err_set(&why, ERR_UNAUTHORIZED, "no such repository");
	answer = wire_error(&why, 0);
	return wire_send_json(WORK_FD_ASKER, WIRE_ERROR, answer, &err) < 0 ? 3 : 0;
}

static int play_job(void)
{
	static const struct job_host host = {.access = play_access,
					     .puller_path = "/proc/self/exe"};
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	AUTO(json) json_t *request = NULL;
	char peek[4096];
	const char *spec;
	enum wire_type type;
	ssize_t n = recv(WORK_FD_ASKER, peek, sizeof(peek), MSG_PEEK);
	struct err err;

	if (n > 0 && !memmem(peek, (size_t)n, "play ", 5))
		return job_work(&host);
	if (wire_receive(WORK_FD_ASKER, NULL, &type, &payload, &err) != 1 ||
	    json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &request, &err) < 0)
		return 3;
	spec = json_string_value(json_object_get(request, "spec"));
	if (spec && strcmp(spec, "play wait") == 0)
		return play_wait();
	if (spec && strcmp(spec, "play log") == 0)
		return play_log();
	return play_echo(request);
}

struct scene {
	struct job_request request;
	char self[PATH_MAX];
	struct job *job;
	struct buf log;
	size_t progresses;
	struct job_progress last;
	struct job_event end;
};

static void scene_open(struct scene *scene, const struct store_fixture *fixture, const char *spec)
{
	*scene = (struct scene){.log = BUF_INIT(2 << 20)};
	assert_true(readlink("/proc/self/exe", scene->self, sizeof(scene->self) - 1) > 0);
	scene->request = (struct job_request){.program = scene->self,
					      .bake_id = "bak_1",
					      .store = fixture->store,
					      .spec = str_of(spec)};
}

static void scene_start(struct scene *scene)
{
	struct err err = {0};

	check_ok(job_start(&scene->request, &scene->job, &err), &err);
}

/* The next event, however long it takes. */
static struct job_event scene_next(struct scene *scene)
{
	struct pollfd came = {.fd = job_fd(scene->job), .events = POLLIN};
	struct job_event event;

	while (job_read(scene->job, &event) == 0)
		assert_true(poll(&came, 1, -1) == 1);
	return event;
}

/* To the last event. */
static void scene_listen(struct scene *scene)
{
	struct job_event event = scene_next(scene);
	struct err err = {0};

	for (; event.kind == JOB_PROGRESS || event.kind == JOB_LOG; event = scene_next(scene)) {
		scene->progresses += event.kind == JOB_PROGRESS;
		if (event.kind == JOB_PROGRESS)
			scene->last = event.progress;
		else
			check_ok(buf_add(&scene->log, event.log, &err), &err);
	}
	scene->end = event;
	assert_int_equal(job_read(scene->job, &event), 0);
}

static void scene_close(struct scene *scene)
{
	job_end(scene->job);
	buf_done(&scene->log);
}

static void publish(const struct scene *scene, struct job_names names)
{
	struct store *store = scene->request.store;
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(job_publish(meta, scene->end.result, &names, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

/* Whether the name stands for the image. */
static bool is_named(const struct scene *scene, const char *name)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};
	struct tag tag;

	check_ok(meta_begin(scene->request.store, META_READ, &meta, &err), &err);
	return tag_find_only(meta, str_of(name), &tag, &err) == 1 &&
	       digest_equal(&tag.manifest, &scene->end.result->image);
}

static int find_image(const struct scene *scene, struct image *out)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(scene->request.store, META_READ, &meta, &err), &err);
	return image_find(meta, &scene->end.result->image, out, &err);
}

static void a_job_bakes_and_its_image_is_known_when_it_is_published(void **state)
{
	auto_image struct image image = {0};
	struct scene scene;

	scene_open(&scene, *state, ENV_SPEC);
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.end.kind, JOB_RESULT);
	assert_int_equal(scene.end.result->steps, 1);
	assert_int_equal(scene.end.result->cached_steps, 1);
	assert_int_equal(scene.end.result->counts.all[INSTRUCTION_ENV], 1);
	assert_int_equal(scene.end.result->counts.cached[INSTRUCTION_ENV], 1);
	assert_int_equal(scene.end.result->counts.all[INSTRUCTION_RUN], 0);
	assert_false(scene.end.result->unchanged);
	assert_int_equal(json_array_size(scene.end.result->pushes), 0);
	assert_int_equal(scene.last.step, 1);
	assert_int_equal(scene.last.of, 1);
	assert_true(scene.last.done && scene.last.cached);
	assert_int_equal(find_image(&scene, &image), 0);

	publish(&scene, (struct job_names){STR("a"), 3, true});
	assert_int_equal(find_image(&scene, &image), 1);
	assert_int_equal(image.size, scene.end.result->size);
	assert_true(str_equal(image.slug, STR("a")));
	assert_true(str_equal(image.base, STR("scratch")));
	assert_true(is_named(&scene, "localhost/a:3"));
	assert_true(is_named(&scene, "localhost/a:latest"));
	scene_close(&scene);
}

static void publish_agent(struct scene *scene, const struct store_fixture *fixture,
			  const char *slug)
{
	scene_open(scene, fixture, ENV_SPEC);
	scene_start(scene);
	scene_listen(scene);
	publish(scene, (struct job_names){str_of(slug), 1, true});
}

static void bake_on(struct scene *scene, const struct store_fixture *fixture, const char *base)
{
	static char spec[256];

	(void)snprintf(spec, sizeof(spec),
		       "{\"slug\":\"b\",\"sandbox\":{\"image\":{\"base\":\"%s\"}}}", base);
	scene_open(scene, fixture, spec);
	scene_start(scene);
	scene_listen(scene);
}

static void a_base_is_an_agents_image_by_its_own_name(void **state)
{
	struct scene first;
	struct scene second;

	publish_agent(&first, *state, "a");
	bake_on(&second, *state, "localhost/a:1");
	assert_int_equal(second.end.kind, JOB_RESULT);
	assert_true(digest_equal(&second.end.result->base, &first.end.result->image));
	scene_close(&first);
	scene_close(&second);
}

static void a_short_name_is_an_agents_where_the_registry_has_none(void **state)
{
	struct scene first;
	struct scene second;

	publish_agent(&first, *state, "a");
	bake_on(&second, *state, "a");
	assert_int_equal(second.end.kind, JOB_RESULT);
	assert_true(digest_equal(&second.end.result->base, &first.end.result->image));
	scene_close(&second);
	bake_on(&second, *state, "a:2");
	assert_int_equal(second.end.kind, JOB_ERROR);
	assert_int_equal(second.end.error->why.kind, ERR_UNAUTHORIZED);
	scene_close(&second);
	bake_on(&second, *state, "docker.io/other/a:1");
	assert_int_equal(second.end.error->why.kind, ERR_UNAUTHORIZED);
	scene_close(&first);
	scene_close(&second);
}

static void an_agent_takes_no_registrys_name_while_that_is_not_reached(void **state)
{
	struct scene first;
	struct scene second;

	publish_agent(&first, *state, "away");
	bake_on(&second, *state, "away");
	assert_int_equal(second.end.kind, JOB_ERROR);
	assert_int_equal(second.end.error->why.kind, ERR_REMOTE);
	assert_non_null(strstr(second.end.error->why.text, "localhost/away:latest"));
	scene_close(&first);
	scene_close(&second);
}

static void publishing_twice_is_as_once(void **state)
{
	auto_image struct image first = {0};
	auto_image struct image second = {0};
	struct scene scene;

	scene_open(&scene, *state, ENV_SPEC);
	scene_start(&scene);
	scene_listen(&scene);
	publish(&scene, (struct job_names){STR("a"), 1, true});
	assert_int_equal(find_image(&scene, &first), 1);
	publish(&scene, (struct job_names){STR("a"), 1, true});
	assert_int_equal(find_image(&scene, &second), 1);
	assert_int_equal(first.baked_ms, second.baked_ms);
	scene_close(&scene);
}

static void an_older_version_does_not_become_latest(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, ENV_SPEC);
	scene_start(&scene);
	scene_listen(&scene);
	publish(&scene, (struct job_names){STR("a"), 1, false});
	assert_true(is_named(&scene, "localhost/a:1"));
	assert_false(is_named(&scene, "localhost/a:latest"));
	scene_close(&scene);
}

static void a_slug_may_be_what_a_transport_is_called(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, ENV_SPEC);
	scene_start(&scene);
	scene_listen(&scene);
	publish(&scene, (struct job_names){STR("oci"), 1, true});
	assert_true(is_named(&scene, "localhost/oci:1"));
	scene_close(&scene);
}

static void the_image_that_is_served_is_unchanged(void **state)
{
	struct scene scene;
	struct digest served;

	scene_open(&scene, *state, ENV_SPEC);
	scene_start(&scene);
	scene_listen(&scene);
	served = scene.end.result->image;
	scene_close(&scene);

	scene_open(&scene, *state, ENV_SPEC);
	scene.request.previous = &served;
	scene_start(&scene);
	scene_listen(&scene);
	assert_true(scene.end.result->unchanged);
	scene_close(&scene);
}

/* Each fails with this kind, for good. */
static void check_refused(void **state, const char *image, enum err_kind kind, const char *phrase)
{
	struct scene scene;
	char spec[1024];

	(void)snprintf(spec, sizeof(spec), "{\"slug\":\"a\",\"sandbox\":{\"image\":%s}}", image);
	scene_open(&scene, *state, spec);
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.end.kind, JOB_ERROR);
	if (scene.end.error->why.kind != kind || !strstr(scene.end.error->why.text, phrase))
		fail_msg("%s: %s", image, scene.end.error->why.text);
	assert_true(scene.end.error->terminal);
	scene_close(&scene);
}

static void nothing_in_a_spec_names_a_file_of_the_host(void **state)
{
	check_refused(state, "{\"base\":\"oci:/srv\"}", ERR_INVALID, "base: a file of this host");
	check_refused(state, "{\"base\":\"oci-archive:/srv/a.tar\"}", ERR_INVALID, "a file of");
	check_refused(state, "{\"base\":\"docker-archive:a.tar\"}", ERR_INVALID, "a file of");
	check_refused(state, "{\"base\":\"scratch\",\"context\":\"/etc\"}", ERR_INVALID,
		      "expected a digest");
	check_refused(state,
		      "{\"base\":\"scratch\",\"steps\":[\"ENV A=1\",\"COPY --from=oci:/srv a b\"]}",
		      ERR_INVALID, "step 2: --from: a file of this host");
}

static void where_an_image_goes_is_judged_before_it_is_baked(void **state)
{
	check_refused(state, "{\"base\":\"gone.test/a\",\"push\":[\"oci:/srv\"]}", ERR_INVALID,
		      "push: oci:/srv: expected HOST/NAME[:TAG]");
	check_refused(state, "{\"base\":\"gone.test/a\",\"push\":[\"r.test/a:1\",\"scratch\"]}",
		      ERR_INVALID, "push: scratch: expected HOST/NAME[:TAG]");
}

static void what_is_to_be_pushed_is_noted_when_it_is_published(void **state)
{
	auto_pushes_record struct pushes_record record = {.error = NULL};
	AUTO(meta) struct meta *meta = NULL;
	struct scene scene;
	struct err err = {0};

	scene_open(&scene, *state,
		   "{\"slug\":\"a\",\"sandbox\":{\"image\":{\"base\":\"scratch\",\"steps\":[\"ENV "
		   "A=1\"],\"push\":[\"r.test/a\"]}}}");
	scene_start(&scene);
	scene_listen(&scene);
	publish(&scene, (struct job_names){STR("a"), 1, true});
	check_ok(meta_begin(scene.request.store, META_READ, &meta, &err), &err);
	assert_int_equal(pushes_find(meta, STR("r.test/a:latest"), &record, &err), 1);
	assert_true(digest_equal(&record.image, &scene.end.result->image));
	assert_string_equal(record.bake_id, "bak_1");
	scene_close(&scene);
}

static void a_step_that_is_refused_is_told_with_its_number(void **state)
{
	struct scene scene;

	scene_open(&scene, *state,
		   "{\"slug\":\"a\",\"sandbox\":{\"image\":{\"base\":\"scratch\",\"steps\":[\"ENV "
		   "A=1\",\"ADD a "
		   "b\"]}}}");
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.end.kind, JOB_ERROR);
	assert_int_equal(scene.end.error->why.kind, ERR_REFUSED);
	assert_true(scene.end.error->terminal);
	assert_int_equal(scene.end.error->step, 2);
	scene_close(&scene);
}

static void secrets_come_by_the_socket_in_their_order(void **state)
{
	auto_secrets struct secrets secrets = {0};
	auto_buf struct buf one = BUF_WIPED(SECRET_FILE_MAX);
	auto_buf struct buf two = BUF_WIPED(SECRET_FILE_MAX);
	struct scene scene;
	struct err err = {0};

	check_ok(buf_add(&one, STR("first\0"), &err), &err);
	check_ok(secrets_add(&secrets, "a", &one, &err), &err);
	check_ok(buf_add(&two, STR("second"), &err), &err);
	check_ok(secrets_add(&secrets, "b", &two, &err), &err);
	scene_open(&scene, *state, "play echo");
	scene.request.secrets = &secrets;
	scene_start(&scene);
	scene_listen(&scene);
	assert_true(str_equal(buf_str(&scene.log), STR("first\0second")));
	scene_close(&scene);
}

static void a_job_that_dies_may_be_tried_again(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, "play echo");
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.end.kind, JOB_ERROR);
	assert_int_equal(scene.end.error->why.kind, ERR_UNAVAILABLE);
	assert_false(scene.end.error->terminal);
	scene_close(&scene);
}

static void a_program_that_is_not_there_is_a_job_that_died(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, "play echo");
	scene.request.program = "/nowhere/hearth";
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.end.error->why.kind, ERR_UNAVAILABLE);
	scene_close(&scene);
}

static void a_cancelled_job_cleans_up_before_its_last_word(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, "play wait");
	scene_start(&scene);
	assert_int_equal(scene_next(&scene).kind, JOB_LOG);
	job_cancel(scene.job);
	scene_listen(&scene);
	assert_int_equal(scene.end.kind, JOB_ERROR);
	assert_int_equal(scene.end.error->why.kind, ERR_CANCELLED);
	assert_string_equal(scene.end.error->why.text, "cleaned up");
	scene_close(&scene);
}

static void a_job_that_is_ended_early_is_waited_for(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, "play wait");
	scene_start(&scene);
	assert_int_equal(scene_next(&scene).kind, JOB_LOG);
	scene_close(&scene);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void frames_of_every_size_come_whole(void **state)
{
	struct scene scene;

	scene_open(&scene, *state, "play log");
	scene_start(&scene);
	scene_listen(&scene);
	assert_int_equal(scene.log.len, 1 << 20);
	for (size_t i = 0; i < scene.log.len; i++)
		assert_int_equal(scene.log.ptr[i], '0' + (int)(i % 10));
	scene_close(&scene);
}

#define fixture_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		fixture_test(a_job_bakes_and_its_image_is_known_when_it_is_published),
		fixture_test(a_base_is_an_agents_image_by_its_own_name),
		fixture_test(a_short_name_is_an_agents_where_the_registry_has_none),
		fixture_test(an_agent_takes_no_registrys_name_while_that_is_not_reached),
		fixture_test(publishing_twice_is_as_once),
		fixture_test(an_older_version_does_not_become_latest),
		fixture_test(a_slug_may_be_what_a_transport_is_called),
		fixture_test(the_image_that_is_served_is_unchanged),
		fixture_test(nothing_in_a_spec_names_a_file_of_the_host),
		fixture_test(where_an_image_goes_is_judged_before_it_is_baked),
		fixture_test(what_is_to_be_pushed_is_noted_when_it_is_published),
		fixture_test(a_step_that_is_refused_is_told_with_its_number),
		fixture_test(secrets_come_by_the_socket_in_their_order),
		fixture_test(a_job_that_dies_may_be_tried_again),
		fixture_test(a_program_that_is_not_there_is_a_job_that_died),
		fixture_test(a_cancelled_job_cleans_up_before_its_last_word),
		fixture_test(a_job_that_is_ended_early_is_waited_for),
		fixture_test(frames_of_every_size_come_whole),
	};

	if (argc == 3 && strcmp(argv[1], "role") == 0)
		return play_job();
	if (argc == 2 && strcmp(argv[1], "pull") == 0)
		return play_pull();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
