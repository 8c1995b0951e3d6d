/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane.c - the image side of a daemon without its front end: agents, the
 * queue, and jobs that are processes.
 *
 *	plane HEARTH DATA PARALLEL
 *
 * A line on standard input is a call, and a line on standard output its answer,
 * "error CODE TEXT" where it failed:
 *
 *	sync FILE             ID VERSION appended|same
 *	status AGENT VERSION  what imageStatus says
 *	wait AGENT            the same, once neither its latest version nor a rebake bakes
 *	rebake AGENT          BAKE new|joined
 *	rollback AGENT        DIGEST
 *	cancel BAKE           ok
 *	bakes AGENT           an array, newest first
 *	events                an array of types, and of which bake
 *	log BAKE              its log, as a JSON string
 *	stop MS               ok; the plane ends
 */
#include "bake/appended.h"
#include "bake/bake_log.h"
#include "bake/maker_job.h"
#include "bake/publish.h"
#include "layers/base/lock.h"
#include "layers/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PLANE_ANSWER_MAX ((size_t)32 * 1024 * 1024)

struct plane {
	struct store *store;
	struct maker *maker;
	struct pusher *pusher;
	char puller_path[PATH_MAX]; /* beside HEARTH */
	struct appended appended;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	uint64_t changes;
};

static void plane_hear(void *ctx, struct str agent_id)
{
	struct plane *plane = ctx;

	(void)agent_id;
	lock_take(&plane->lock);
	plane->changes++;
	pthread_cond_broadcast(&plane->changed);
	lock_drop(&plane->lock);
}

static int plane_find(const struct plane *plane, struct str name, char id[static ID_TEXT_MAX],
		      struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(plane->store, META_READ, &meta, err) < 0)
		return -1;
	found = agent_find_id(meta, name, id, err);
	return found == 0 ? err_set(err, ERR_NOT_FOUND, "no agent " STR_FMT, STR_ARG(name)) : found;
}

static int plane_sync(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(AGENT_SPEC_MAX);
	auto_free char *path = str_dup(argument);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_agent_synced struct agent_synced synced = {.warnings = NULL};
	struct agent_sync sync = {.id = STR(""),
				  .now_ms = clock_now_ms(),
				  .appended = appended_version,
				  .ctx = &plane->appended};

	if (fd < 0 || fd_read_all(fd, &text, err) < 0)
		return err_set(err, ERR_NOT_FOUND, "%s", path);
	sync.text = buf_str(&text);
	if (agent_sync(plane->store, &sync, &synced, err) < 0)
		return -1;
	return buf_addf(out, err, "%s %" PRId64 " %s", synced.agent.id, synced.agent.latest,
			synced.appended ? "appended" : "same");
}

static int plane_status_of(struct plane *plane, struct str name, int64_t version, struct buf *out,
			   struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];
	char etag[STATUS_ETAG_MAX];
	int found;

	if (plane_find(plane, name, id, err) < 0 ||
	    meta_begin(plane->store, META_READ, &meta, err) < 0)
		return -1;
	found = queue_status(plane->appended.queue, meta, str_of(id), version, out, etag, err);
	return found == 0 ? err_set(err, ERR_NOT_FOUND, "no such version") : found;
}

static int plane_status(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	uint64_t version = 0;
	struct str name;

	if (str_cut(&argument, ' ', &name))
		(void)str_take_number(&argument, &version);
	return plane_status_of(plane, name, (int64_t)version, out, err);
}

static bool plane_says_baking(const json_t *object)
{
	const json_t *state = json_object_get(object, "status");

	return json_is_string(state) && strcmp(json_string_value(state), "baking") == 0;
}

static int plane_wait(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	bool baking = true;

	while (baking) {
		AUTO(json) json_t *status = NULL;
		uint64_t seen;

		lock_take(&plane->lock);
		seen = plane->changes;
		lock_drop(&plane->lock);
		buf_clear(out);
		if (plane_status_of(plane, argument, 0, out, err) < 0 ||
		    json_parse(buf_str(out), PLANE_ANSWER_MAX, &status, err) < 0)
			return -1;
		baking = plane_says_baking(status) ||
			 plane_says_baking(json_object_get(status, "rebake"));
		lock_take(&plane->lock);
		while (baking && plane->changes == seen)
			pthread_cond_wait(&plane->changed, &plane->lock.os);
		lock_drop(&plane->lock);
	}
	return 0;
}

static int plane_rebake(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	struct queue_ticket ticket;
	char id[ID_TEXT_MAX];

	if (plane_find(plane, argument, id, err) < 0 ||
	    queue_rebake(plane->appended.queue, str_of(id), 0, &ticket, err) < 0)
		return -1;
	return buf_addf(out, err, "%s %s", ticket.bake_id, ticket.joined ? "joined" : "new");
}

static int plane_rollback(struct plane *plane, struct str argument, struct buf *out,
			  struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	char id[ID_TEXT_MAX];
	struct digest digest;

	if (plane_find(plane, argument, id, err) < 0 ||
	    queue_rollback(plane->appended.queue, str_of(id), &digest, err) < 0)
		return -1;
	return buf_add(out, str_of(digest_format(&digest, text)), err);
}

static int plane_cancel(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	if (queue_cancel(plane->appended.queue, argument, err) < 0)
		return -1;
	return buf_add(out, STR("ok"), err);
}

static int plane_add_bake(void *ctx, const struct bakes_record *record, struct err *err)
{
	(void)err;
	return json_array_append_new(ctx, bakes_format(record));
}

static int plane_bakes(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	AUTO(json) json_t *list = json_array();
	AUTO(meta) struct meta *meta = NULL;
	char id[ID_TEXT_MAX];

	if (plane_find(plane, argument, id, err) < 0 ||
	    meta_begin(plane->store, META_READ, &meta, err) < 0 ||
	    bakes_each(meta, str_of(id), STR(""), plane_add_bake, list, err) < 0)
		return -1;
	return json_format(list, out, err);
}

static int plane_add_event(void *ctx, const struct event *event, struct err *err)
{
	(void)err;
	return json_array_append_new(ctx, journal_format(event));
}

static int plane_events(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	AUTO(json) json_t *list = json_array();
	AUTO(meta) struct meta *meta = NULL;

	(void)argument;
	if (meta_begin(plane->store, META_READ, &meta, err) < 0 ||
	    journal_read(meta, 0, plane_add_event, list, err) < 0)
		return -1;
	return json_format(list, out, err);
}

static int plane_log(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	auto_buf struct buf log = BUF_INIT((size_t)1024 * 1024);
	AUTO(json) json_t *text = NULL;

	if (bake_log_read(plane->store, argument, 0, &log, err) < 0)
		return -1;
	text = json_from_str(buf_str(&log));
	return json_format(text, out, err);
}

static int plane_stop(struct plane *plane, struct str argument, struct buf *out, struct err *err)
{
	uint64_t grace_ms = 0;

	(void)str_take_number(&argument, &grace_ms);
	schedule_stop(plane->appended.schedule);
	queue_stop(plane->appended.queue, (int)grace_ms);
	plane->appended = (struct appended){.queue = NULL};
	return buf_add(out, STR("ok"), err);
}

static int plane_call(struct plane *plane, struct str line, struct buf *out, struct err *err)
{
	static const struct {
		const char *name;
		int (*call)(struct plane *plane, struct str argument, struct buf *out,
			    struct err *err);
	} calls[] = {
		{"sync", plane_sync},         {"status", plane_status}, {"wait", plane_wait},
		{"rebake", plane_rebake},     {"cancel", plane_cancel}, {"bakes", plane_bakes},
		{"rollback", plane_rollback}, {"events", plane_events}, {"log", plane_log},
		{"stop", plane_stop},
	};
	struct str name;

	(void)str_cut(&line, ' ', &name);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (str_equal(name, str_of(calls[i].name)))
			return calls[i].call(plane, line, out, err);
	}
	return err_set(err, ERR_INVALID, "no such call");
}

static void plane_answer(struct plane *plane, struct str line)
{
	auto_buf struct buf out = BUF_INIT(PLANE_ANSWER_MAX);
	struct err err = {0};

	if (plane_call(plane, line, &out, &err) < 0)
		(void)printf("error %s %s\n", err_name(err.kind), err.text);
	else
		(void)printf("%s\n", out.ptr);
	(void)fflush(stdout);
}

static void plane_serve(struct plane *plane)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (plane->appended.queue && (n = getline(&line, &room, stdin)) > 0)
		plane_answer(plane, (struct str){line, (size_t)n - 1});
	free(line);
}

static void plane_hear_push(void *ctx, const struct bake_event *event)
{
	(void)ctx, (void)event;
}

static int plane_push(void *ctx, struct str reference, const struct digest *image,
		      const struct cancel *cancel, struct err *err)
{
	const struct plane *plane = ctx;
	const struct asker asker = {
		.store = plane->store, .worker_path = plane->puller_path, .cancel = cancel};
	const struct publish_request request = {.reference = reference, .manifest = *image};

	return publish_image(&asker, &request, plane_hear_push, NULL, err);
}

static int plane_start_pusher(struct plane *plane, const char *program, struct err *err)
{
	const struct pusher_options options = {
		.store = plane->store, .push = plane_push, .push_ctx = plane};

	(void)snprintf(plane->puller_path, sizeof(plane->puller_path), "%s-puller", program);
	return pusher_start(&options, &plane->pusher, err);
}

static int plane_run(struct plane *plane, const char *program, uint64_t parallel, struct err *err)
{
	struct maker_job_options options = {.request = {.program = program, .store = plane->store}};
	struct queue_options queue = {.store = plane->store,
				      .parallel = (size_t)parallel,
				      .changed = plane_hear,
				      .changed_ctx = plane};

	if (plane_start_pusher(plane, program, err) < 0)
		return -1;
	options.pusher = plane->pusher;
	plane->maker = queue.maker = maker_job_new(&options);
	if (queue_start(&queue, &plane->appended.queue, err) < 0 ||
	    schedule_start(plane->store, plane->appended.queue, NULL, &plane->appended.schedule,
			   err) < 0)
		return -1;
	plane_serve(plane);
	return 0;
}

int main(int argc, char **argv)
{
	struct plane plane = {.lock = LOCK_INIT, .changed = PTHREAD_COND_INITIALIZER};
	struct store_options options = {.path = argc == 4 ? argv[2] : NULL, .create = true};
	uint64_t parallel = 1;
	struct str number = argc == 4 ? str_of(argv[3]) : STR("");
	struct err err = {0};
	int result = -1;

	if (argc != 4 || !str_take_number(&number, &parallel))
		return 64;
	if (store_open(&options, &plane.store, &err) == 0)
		result = plane_run(&plane, argv[1], parallel, &err);
	schedule_stop(plane.appended.schedule);
	queue_stop(plane.appended.queue, 0);
	pusher_stop(plane.pusher);
	maker_job_free(plane.maker);
	store_close(plane.store);
	if (result < 0)
		(void)fprintf(stderr, "plane: %s\n", err.text);
	return result < 0 ? err_exit_code(err.kind) : 0;
}
