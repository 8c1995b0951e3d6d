/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_call.h"

#include "bake/work.h"
#include "bake/work_watch_priv.h"
#include "layers/base/clock.h"
#include "layers/digest_json.h"

#define CALL_TELL_MS 50

static void call_send(struct work_call *call, const json_t *value)
{
	struct err err;

	if (wire_send_json(WORK_FD_ASKER, WIRE_PROGRESS, value, &err) < 0)
		cancel_raise(&call->cancel);
}

void work_call_warn(struct work_call *call, struct str text)
{
	AUTO(json) json_t *value = json_object();

	(void)json_object_set_new(value, "warning", json_from_str(text));
	call_send(call, value);
}

void work_call_tell(struct work_call *call, const struct work_progress *progress)
{
	AUTO(json) json_t *value = NULL;
	int64_t now = clock_monotonic_ms();

	if (progress->often && now - call->told_ms < CALL_TELL_MS)
		return;
	call->told_ms = now;
	value = json_object();
	json_set_text(value, "event", progress->event);
	digest_json_set(value, "digest", progress->digest);
	json_set_size(value, "done", progress->done);
	json_set_size(value, "size", progress->size);
	call_send(call, value);
}

static int call_receive(struct work_call *call, struct err *err)
{
	auto_buf struct buf payload = BUF_WIPED(WIRE_PAYLOAD_MAX);

	if (work_receive(&payload, err) < 0)
		return -1;
	return json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &call->request, err);
}

static int call_open_store(struct work_call *call, struct err *err)
{
	struct store_options options = {0};
	struct str path;
	int64_t map_bytes;
	int found = json_get_string(call->request, "", "store", &path, err);

	if (found <= 0)
		return found;
	if (json_need_int(call->request, "", "mapBytes", &map_bytes, err) < 0)
		return -1;
	options.path = path.ptr;
	options.map_bytes = (uint64_t)map_bytes;
	return store_open(&options, &call->store, err);
}

static int call_watched(struct work_call *call, work_call_fn *fn, json_t **out, struct err *err)
{
	struct work_watch watch;
	int result;

	if (work_watch_start(&watch, &call->cancel, err) < 0)
		return -1;
	result = fn(call, out, err);
	work_watch_stop(&watch);
	return result;
}

int work_call_run(work_call_fn *fn)
{
	struct work_call call = {0};
	AUTO(json) json_t *answer = NULL;
	struct err err = {0};
	struct err gone;
	int result = -1;

	if (cancel_init(&call.cancel, &err) == 0 && call_receive(&call, &err) == 0 &&
	    call_open_store(&call, &err) == 0)
		result = call_watched(&call, fn, &answer, &err);
	if (result < 0)
		answer = wire_error(&err, 0);
	store_close(call.store);
	json_decref(call.request);
	if (wire_send_json(WORK_FD_ASKER, result == 0 ? WIRE_RESULT : WIRE_ERROR, answer, &gone) <
	    0)
		return 1;
	return result == 0 ? 0 : 1;
}
