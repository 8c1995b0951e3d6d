/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/publish.h"

#include "bake/base.h"
#include "layers/digest_json.h"

struct publish {
	bake_event_fn *event;
	void *ctx;
};

static json_t *publish_referrers(const struct publish_request *request)
{
	json_t *list = json_array();

	for (size_t i = 0; i < request->referrer_count; i++) {
		char text[DIGEST_TEXT_MAX];

		(void)json_array_append_new(
			list, json_string(digest_format(&request->referrers[i], text)));
	}
	return list;
}

static json_t *publish_tags(const struct publish_request *request)
{
	json_t *list = json_array();

	for (size_t i = 0; i < request->tag_count; i++)
		(void)json_array_append_new(list, json_from_str(request->tags[i]));
	return list;
}

static json_t *publish_format(struct store *store, const struct publish_request *request)
{
	json_t *value = asker_request_new(store);

	(void)json_object_set_new(value, "reference", json_from_str(request->reference));
	digest_json_set(value, "manifest", &request->manifest);
	json_set(value, "tags", publish_tags(request));
	json_set(value, "referrers", publish_referrers(request));
	json_set(value, "from", json_from_str(request->from));
	json_set_bool(value, "plainHttp", request->plain_http);
	if (request->ca_file)
		json_set_text(value, "caFile", request->ca_file);
	(void)json_object_set_new(value, "user", json_from_str(request->user));
	json_set_text(value, "password", secret_reveal(request->password));
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
