/* SPDX-License-Identifier: Apache-2.0 */
/* work_push.c - the role that sends an image to a registry. */
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/digest_json.h"
#include "registry/push.h"

static void push_hear(void *ctx, const struct push_event *event)
{
	static const char *const names[] = {
		[PUSH_BLOB] = "layer",           [PUSH_BLOB_HELD] = "held",
		[PUSH_BLOB_MOUNTED] = "mounted", [PUSH_BLOB_DONE] = "done",
		[PUSH_DOCUMENT] = "manifest",    [PUSH_DOCUMENT_HELD] = "manifestHeld",
		[PUSH_WARNING] = NULL,
	};
	const struct work_progress progress = {.event = names[event->kind],
					       .digest = &event->digest,
					       .done = event->done,
					       .size = event->size,
					       .often = event->kind == PUSH_BLOB};

	if (event->kind == PUSH_WARNING)
		work_call_warn(ctx, event->text);
	else
		work_call_tell(ctx, &progress);
}

/* What a request lists beside the image. */
struct push_lists {
	struct str tags[PUSH_TAGS_MAX];
	struct digest *referrers; /* owned */
};

static void auto_push_lists_release(struct push_lists *lists)
{
	free(lists->referrers);
}

static int push_read_tags(const json_t *list, struct push_lists *lists, struct push_spec *spec,
			  struct err *err)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (i == PUSH_TAGS_MAX)
			return err_set(err, ERR_LIMIT, "more than %zu tags", PUSH_TAGS_MAX);
		lists->tags[i] = json_str(item);
	}
	spec->tags = lists->tags;
	spec->tag_count = json_array_size(list);
	return 0;
}

static int push_read_lists(const json_t *request, struct push_lists *lists, struct push_spec *spec,
			   struct err *err)
{
	const json_t *list = json_object_get(request, "referrers");
	const json_t *item;
	size_t i;

	if (push_read_tags(json_object_get(request, "tags"), lists, spec, err) < 0)
		return -1;
	lists->referrers = calloc(json_array_size(list) + 1, sizeof(*lists->referrers));
	if (!lists->referrers)
		abort();
	json_array_foreach(list, i, item)
	{
		if (digest_parse(json_str(item), &lists->referrers[i], err) < 0)
			return -1;
	}
	spec->referrers = lists->referrers;
	spec->referrer_count = json_array_size(list);
	return 0;
}

static int push_answer(struct work_call *call, json_t **out, struct err *err)
{
	struct reference reference;
	AUTO(push_lists) struct push_lists lists = {0};
	struct push_spec spec = {
		.reference = &reference,
		.event = push_hear,
		.event_ctx = call,
		.cancel = &call->cancel,
	};
	struct str text;
	struct str manifest;
	struct str ca_file = {0};
	struct str password = STR("");
	auto_secret struct secret hidden = {0};

	if (json_need_string(call->request, "", "reference", &text, err) < 0 ||
	    json_need_string(call->request, "", "manifest", &manifest, err) < 0 ||
	    json_get_string(call->request, "", "from", &spec.from, err) < 0 ||
	    push_read_lists(call->request, &lists, &spec, err) < 0 ||
	    json_get_bool(call->request, "", "plainHttp", &spec.plain_http, err) < 0 ||
	    json_get_string(call->request, "", "caFile", &ca_file, err) < 0 ||
	    json_get_string(call->request, "", "user", &spec.user, err) < 0 ||
	    json_get_string(call->request, "", "password", &password, err) < 0 ||
	    secret_put(&hidden, password, err) < 0 || reference_parse(text, &reference, err) < 0 ||
	    digest_parse(manifest, &spec.manifest, err) < 0)
		return -1;
	spec.ca_file = ca_file.ptr;
	spec.password = &hidden;
	if (push_image(call->store, &spec, &spec.manifest, err) < 0)
		return -1;
	*out = json_object();
	digest_json_set(*out, "digest", &spec.manifest);
	return 0;
}

int work_push(void)
{
	return work_call_run(push_answer);
}
