/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/status_push.h"

#include "layers/base/clock.h"
#include "layers/digest_json.h"

#define STATUS_PUSHES "pushes"

static json_t *status_push_format(const struct status_push *push)
{
	json_t *value = json_object();
	char text[CLOCK_TEXT_MAX];

	(void)json_object_set_new(value, "reference", json_from_str(push->reference));
	json_set_text(value, "status", push->state);
	digest_json_set(value, "digest", push->image);
	json_set_text(value, "bakeId", push->bake_id);
	json_set_text(value, "at", clock_format(push->at_ms, text));
	if (push->attempt > 0)
		json_set_int(value, "attempt", push->attempt);
	if (push->retry_ms > 0)
		json_set_text(value, "retryAt", clock_format(push->retry_ms, text));
	if (push->error)
		(void)json_object_set(value, "error", push->error);
	return value;
}

static bool status_push_says(const json_t *value, const char *name, struct str text)
{
	const json_t *member = json_object_get(value, name);

	return json_is_string(member) && str_equal(json_str(member), text);
}

void status_push_begin(json_t *status, const json_t *references, const struct digest *image,
		       const char *bake_id, int64_t at_ms)
{
	struct status_push push = {
		.image = image, .bake_id = bake_id, .state = "pushing", .at_ms = at_ms};
	json_t *pushes;
	const json_t *reference;
	size_t i;

	if (json_array_size(references) == 0) {
		(void)json_object_del(status, STATUS_PUSHES);
		return;
	}
	pushes = json_array();
	json_array_foreach(references, i, reference)
	{
		push.reference = json_str(reference);
		(void)json_array_append_new(pushes, status_push_format(&push));
	}
	(void)json_object_set_new(status, STATUS_PUSHES, pushes);
}

/* Whether it is about this image, which that bake made. */
static bool status_push_is_of(const json_t *value, const char *bake_id, const struct digest *image)
{
	char text[DIGEST_TEXT_MAX];

	return status_push_says(value, "bakeId", str_of(bake_id)) &&
	       status_push_says(value, "digest", str_of(digest_format(image, text)));
}

bool status_push_set(json_t *status, const struct status_push *push)
{
	json_t *pushes = json_object_get(status, STATUS_PUSHES);
	const json_t *value;
	size_t i;

	json_array_foreach(pushes, i, value)
	{
		if (status_push_is_of(value, push->bake_id, push->image) &&
		    status_push_says(value, "reference", push->reference)) {
			(void)json_array_set_new(pushes, i, status_push_format(push));
			return true;
		}
	}
	return false;
}

json_t *status_push_references(const json_t *status)
{
	json_t *references = json_array();
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(status, STATUS_PUSHES), i, value)(void)
		json_array_append(references, json_object_get(value, "reference"));
	return references;
}

json_t *status_push_of_bake(const json_t *status, const char *bake_id, const struct digest *image)
{
	json_t *pushes = json_array();
	json_t *value;
	size_t i;

	json_array_foreach(json_object_get(status, STATUS_PUSHES), i, value)
	{
		if (status_push_is_of(value, bake_id, image))
			(void)json_array_append(pushes, value);
	}
	return pushes;
}
