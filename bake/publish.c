/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/publish.h"

#include "bake/base.h"

struct publish {
	bake_event_fn *event;
	void *ctx;
};

static json_t *publish_format(struct store *store, const struct publish_request *request)
{
	json_t *value = asker_request_new(store);
	char digest[DIGEST_TEXT_MAX];

	(void)json_object_set_new(value, "reference", json_from_str(request->reference));
	(void)json_object_set_new(value, "manifest",
				  json_string(digest_format(&request->manifest, digest)));
	(void)json_object_set_new(value, "plainHttp", json_boolean(request->plain_http));
	if (request->ca_file)
		(void)json_object_set_new(value, "caFile", json_string(request->ca_file));
	(void)json_object_set_new(value, "user", json_from_str(request->user));
	(void)json_object_set_new(value, "password",
				  json_from_str(str_of(secret_reveal(request->password))));
	return value;
}

static void publish_hear(void *ctx, const json_t *progress)
{
	const struct publish *publish = ctx;
	struct bake_event event = {.kind = BAKE_PUSH_BLOB};
	struct digest digest;

	if (base_read_progress(progress, &digest, &event))
		publish->event(publish->ctx, &event);
}

int publish_image(const struct asker *asker, const struct publish_request *request,
		  bake_event_fn *event, void *event_ctx, struct err *err)
{
	struct publish publish = {event, event_ctx};
	struct bake_event told = {.kind = BAKE_PUSH, .text = request->reference};
	struct asker ours = *asker;
	AUTO(json) json_t *json = publish_format(asker->store, request);
	AUTO(json) json_t *answer = NULL;

	ours.progress = publish_hear;
	ours.ctx = &publish;
	event(event_ctx, &told);
	if (asker_call(&ours, "push", json, &answer, err) < 0)
		return -1;
	told = (struct bake_event){.kind = BAKE_PUSH_DONE, .digest = &request->manifest};
	event(event_ctx, &told);
	return 0;
}
