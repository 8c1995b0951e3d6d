/* SPDX-License-Identifier: Apache-2.0 */
/* work_pull.c - the role that brings an image into the store. */
#include "bake/wire.h"
#include "bake/work.h"
#include "layers/base/clock.h"
#include "layers/base/thread.h"
#include "registry/pull.h"

#include <poll.h>
#include <sys/socket.h>

#define PULL_TELL_MS 50 /* progress is for people */

struct pull_work {
	json_t *request; /* owned */
	json_t *names;   /* owned: what it is called here */
	struct store *store;
	struct cancel cancel;
	struct cancel ended; /* tells the watcher to go */
	int64_t told_ms;
};

static void work_tell(void *ctx, const struct pull_event *event)
{
	static const char *const names[] = {
		[PULL_RESOLVED] = "resolved", [PULL_LAYER] = "layer", [PULL_LAYER_HELD] = "held",
		[PULL_LAYER_DONE] = "done",   [PULL_NAMED] = "named",
	};
	struct pull_work *work = ctx;
	AUTO(json) json_t *progress = NULL;
	char text[DIGEST_TEXT_MAX];
	int64_t now = clock_monotonic_ms();
	struct err err;

	if (event->kind == PULL_NAMED)
		(void)json_array_append_new(work->names, json_from_str(event->name));
	if (event->kind == PULL_LAYER && now - work->told_ms < PULL_TELL_MS)
		return;
	work->told_ms = now;
	progress = json_object();
	(void)json_object_set_new(progress, "event", json_string(names[event->kind]));
	(void)json_object_set_new(progress, "digest",
				  json_string(digest_format(&event->digest, text)));
	(void)json_object_set_new(progress, "done", json_integer((json_int_t)event->done));
	(void)json_object_set_new(progress, "size", json_integer((json_int_t)event->size));
	if (wire_send_json(WORK_FD_ASKER, WIRE_PROGRESS, progress, &err) < 0)
		cancel_raise(&work->cancel);
}

/* An asker that says anything, or is gone, has left. */
static void *work_watch(void *ctx)
{
	struct pull_work *work = ctx;
	struct pollfd fds[] = {{.fd = WORK_FD_ASKER, .events = POLLIN},
			       {.fd = cancel_fd(&work->ended), .events = POLLIN}};

	while (poll(fds, 2, -1) < 0)
		continue;
	if (fds[0].revents)
		cancel_raise(&work->cancel);
	return NULL;
}

static int work_receive_request(struct pull_work *work, struct err *err)
{
	auto_buf struct buf payload = BUF_WIPED(WIRE_PAYLOAD_MAX);

	if (work_receive(&payload, err) < 0)
		return -1;
	return json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &work->request, err);
}

static int work_open_store(struct pull_work *work, struct err *err)
{
	struct store_options options = {0};
	struct str path;
	int64_t map_bytes;

	if (json_need_string(work->request, "", "store", &path, err) < 0 ||
	    json_need_int(work->request, "", "mapBytes", &map_bytes, err) < 0)
		return -1;
	options.path = path.ptr;
	options.map_bytes = (uint64_t)map_bytes;
	if (store_open(&options, &work->store, err) < 0)
		return -1;
	return store_sweep(work->store, &work->cancel, err);
}

static int work_pull_image(struct pull_work *work, struct tag *out, struct err *err)
{
	struct reference reference;
	struct pull_spec spec = {
		.reference = &reference,
		.event = work_tell,
		.event_ctx = work,
		.cancel = &work->cancel,
	};
	struct str text;
	struct str platform;
	struct str ca_file = {0};
	struct str password = STR("");
	auto_secret struct secret hidden = {0};
	int64_t max_layer_bytes = 0;
	bool stream = false;

	if (json_need_string(work->request, "", "reference", &text, err) < 0 ||
	    json_need_string(work->request, "", "platform", &platform, err) < 0 ||
	    json_get_string(work->request, "", "name", &spec.name, err) < 0 ||
	    json_get_bool(work->request, "", "nameAsThere", &spec.name_as_there, err) < 0 ||
	    json_get_bool(work->request, "", "stream", &stream, err) < 0 ||
	    json_get_bool(work->request, "", "anyArchive", &spec.any_archive, err) < 0 ||
	    json_get_bool(work->request, "", "plainHttp", &spec.plain_http, err) < 0 ||
	    json_get_string(work->request, "", "caFile", &ca_file, err) < 0 ||
	    json_get_int(work->request, "", "maxLayerBytes", &max_layer_bytes, err) < 0 ||
	    json_get_string(work->request, "", "user", &spec.user, err) < 0 ||
	    json_get_string(work->request, "", "password", &password, err) < 0 ||
	    secret_put(&hidden, password, err) < 0 || reference_parse(text, &reference, err) < 0 ||
	    platform_parse(platform, &spec.platform, err) < 0)
		return -1;
	spec.streamfd = stream ? WORK_FD_STREAM : 0;
	spec.ca_file = ca_file.ptr;
	spec.password = &hidden;
	spec.limits.max_bytes = (uint64_t)max_layer_bytes;
	return pull_image(work->store, &spec, out, err);
}

static int work_watched(struct pull_work *work, struct tag *out, struct err *err)
{
	pthread_t watcher;
	int result;

	if (thread_start(&watcher, work_watch, work, err) < 0)
		return -1;
	result = work_pull_image(work, out, err);
	cancel_raise(&work->ended);
	(void)pthread_join(watcher, NULL);
	return result;
}

static json_t *work_result(const struct tag *tag, json_t *names)
{
	json_t *value = json_object();
	char text[DIGEST_TEXT_MAX];

	(void)json_object_set_new(value, "target", json_string(digest_format(&tag->target, text)));
	(void)json_object_set_new(value, "manifest",
				  json_string(digest_format(&tag->manifest, text)));
	(void)json_object_set(value, "names", names);
	return value;
}

int work_pull(void)
{
	struct pull_work work = {.names = json_array()};
	struct err err = {0};
	struct err gone;
	struct tag tag;
	int result = -1;

	if (cancel_init(&work.cancel, &err) == 0 && cancel_init(&work.ended, &err) == 0 &&
	    work_receive_request(&work, &err) == 0 && work_need_root(&err) == 0 &&
	    work_open_store(&work, &err) == 0)
		result = work_watched(&work, &tag, &err);

	AUTO(json)
	json_t *answer = result == 0 ? work_result(&tag, work.names) : wire_error(&err, 0);

	store_close(work.store);
	json_decref(work.request);
	json_decref(work.names);
	if (wire_send_json(WORK_FD_ASKER, result == 0 ? WIRE_RESULT : WIRE_ERROR, answer, &gone) <
	    0)
		return 1;
	return result == 0 ? 0 : 1;
}
