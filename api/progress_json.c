/* SPDX-License-Identifier: Apache-2.0 */
/* progress_json.c - each event as one line of JSON; its names are of our interface. */
#include "api/human.h"
#include "api/progress.h"
#include "layers/base/clock.h"

static const char *const json_names[] = {
	[BAKE_BASE] = "base",          [BAKE_PULL] = "pull",
	[BAKE_BASE_DONE] = "baseDone", [BAKE_STEP] = "step",
	[BAKE_STEP_MADE] = "stepMade", [BAKE_LOG] = "log",
	[BAKE_STEP_DONE] = "stepDone", [BAKE_STEP_FAILED] = "stepFailed",
	[BAKE_EXPORT] = "export",      [BAKE_EXPORT_DONE] = "exportDone",
	[BAKE_PUSH] = "push",          [BAKE_PUSH_BLOB] = "pushBlob",
	[BAKE_PUSH_DONE] = "pushDone", [BAKE_DONE] = "done",
	[BAKE_WARNING] = "warning",
};

static void set_new(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

static json_t *json_event(const struct bake_event *event)
{
	json_t *value = json_object();
	char digest[DIGEST_TEXT_MAX];
	char when[CLOCK_TEXT_MAX];

	set_new(value, "event", json_string(json_names[event->kind]));
	set_new(value, "at", json_string(clock_format(clock_now_ms(), when)));
	if (event->step > 0) {
		set_new(value, "step", json_integer((json_int_t)event->step));
		set_new(value, "of", json_integer((json_int_t)event->of));
	}
	if (event->text.ptr)
		set_new(value, "text", json_from_str(event->text));
	if (event->digest)
		set_new(value, "digest", json_string(digest_format(event->digest, digest)));
	if (event->kind == BAKE_PULL || event->kind == BAKE_PUSH_BLOB)
		set_new(value, "doneBytes", json_integer((json_int_t)event->done));
	if (event->kind == BAKE_PULL || event->kind == BAKE_PUSH_BLOB || event->size > 0)
		set_new(value, "sizeBytes", json_integer((json_int_t)event->size));
	if (event->kind == BAKE_STEP_DONE) {
		set_new(value, "durationMs", json_integer(event->duration_ms));
		set_new(value, "empty", json_boolean(event->empty));
		set_new(value, "cutOff", json_boolean(event->cut_off));
		set_new(value, "shared", json_boolean(event->shared));
		if (event->linked > 0)
			set_new(value, "linkedBytes", json_integer((json_int_t)event->linked));
	}
	if (event->kind == BAKE_STEP_DONE || event->kind == BAKE_BASE_DONE)
		set_new(value, "cached", json_boolean(event->cached));
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
