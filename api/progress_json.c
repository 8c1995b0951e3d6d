/* SPDX-License-Identifier: Apache-2.0 */
/* progress_json.c - each event as one line of JSON; its names are of our interface. */
#include "api/human.h"
#include "api/progress.h"
#include "layers/base/clock.h"
#include "layers/digest_json.h"

static const char *const json_names[] = {
	[BAKE_BASE] = "base",          [BAKE_PULL] = "pull",
	[BAKE_BASE_DONE] = "baseDone", [BAKE_STEP] = "step",
	[BAKE_STEP_MADE] = "stepMade", [BAKE_LOG] = "log",
	[BAKE_STEP_DONE] = "stepDone", [BAKE_STEP_FAILED] = "stepFailed",
	[BAKE_EXPORT] = "export",      [BAKE_EXPORT_DONE] = "exportDone",
	[BAKE_PUSH] = "push",          [BAKE_PUSH_BLOB] = "pushBlob",
	[BAKE_PUSH_DONE] = "pushDone", [BAKE_DONE] = "done",
	[BAKE_WARNING] = "warning",    [BAKE_PUSH_WARNING] = "warning",
};

static json_t *json_event(const struct bake_event *event)
{
	json_t *value = json_object();
	char when[CLOCK_TEXT_MAX];

	json_set_text(value, "event", json_names[event->kind]);
	json_set_text(value, "at", clock_format(clock_now_ms(), when));
	if (event->step > 0) {
		json_set_size(value, "step", event->step);
		json_set_size(value, "of", event->of);
	}
	if (event->text.ptr)
		(void)json_object_set_new(value, "text", json_from_str(event->text));
	if (event->digest)
		digest_json_set(value, "digest", event->digest);
	if (event->kind == BAKE_PULL || event->kind == BAKE_PUSH_BLOB)
		json_set_size(value, "doneBytes", event->done);
	if (event->kind == BAKE_PULL || event->kind == BAKE_PUSH_BLOB || event->size > 0)
		json_set_size(value, "sizeBytes", event->size);
	if (event->kind == BAKE_STEP_DONE) {
		json_set_int(value, "durationMs", event->duration_ms);
		json_set_bool(value, "empty", event->empty);
		json_set_bool(value, "cutOff", event->cut_off);
		json_set_bool(value, "shared", event->shared);
		if (event->linked > 0)
			json_set_size(value, "linkedBytes", event->linked);
	}
	if (event->kind == BAKE_STEP_DONE || event->kind == BAKE_BASE_DONE)
		json_set_bool(value, "cached", event->cached);
	return value;
}

static void json_progress_event(struct progress *progress, const struct bake_event *event)
{
	AUTO(json) json_t *value = json_event(event);

	human_json(value, progress->out);
}

static void json_progress_close(struct progress *progress)
{
	free(progress);
}

int progress_open_json(FILE *stream, struct progress **out, struct err *err)
{
	static const struct progress_type type = {json_progress_event, json_progress_close};
	struct progress *progress = malloc(sizeof(*progress));

	if (!progress)
		return err_os(err, ENOMEM, "open the display");
	*progress = (struct progress){&type, stream};
	*out = progress;
	return 0;
}
