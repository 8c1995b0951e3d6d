/* SPDX-License-Identifier: Apache-2.0 */
/* work_pull.c - the role that brings an image into the store. */
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/digest_json.h"
#include "registry/pull.h"

#define LOG_MODULE "bake"
#include "layers/base/log.h"

struct pull_work {
	struct work_call *call;
	json_t *names;     /* what it is called here */
	json_t *referrers; /* digests of what is about it */
};

static void pull_hear(void *ctx, const struct pull_event *event)
{
	static const char *const names[] = {
		[PULL_RESOLVED] = "resolved", [PULL_LAYER] = "layer", [PULL_LAYER_HELD] = "held",
		[PULL_LAYER_DONE] = "done",   [PULL_NAMED] = "named", [PULL_REFERRER] = NULL,
		[PULL_WARNING] = NULL,
	};
	const struct pull_work *work = ctx;
	const struct work_progress progress = {.event = names[event->kind],
					       .digest = &event->digest,
					       .done = event->done,
					       .size = event->size,
					       .often = event->kind == PULL_LAYER};

	if (event->kind == PULL_WARNING) {
		work_call_warn(work->call, event->text);
		return;
	}
	if (event->kind == PULL_REFERRER) {
		char text[DIGEST_TEXT_MAX];

		(void)json_array_append_new(work->referrers,
					    json_string(digest_format(&event->digest, text)));
		return;
	}
	if (event->kind == PULL_NAMED)
		(void)json_array_append_new(work->names, json_from_str(event->text));
	work_call_tell(work->call, &progress);
}

/* 0, or -1 and what this mirror lacks. */
static int pull_from_mirror(struct pull_work *work, const json_t *mirror,
			    const struct pull_spec *spec, struct tag *out, struct err *err)
{
	auto_secret struct secret hidden = {0};
	struct pull_spec there = *spec;
	struct reference reference;
	struct str text;
	struct str password = STR("");

	if (json_need_string(mirror, "mirrors", "reference", &text, err) < 0 ||
	    json_get_bool(mirror, "mirrors", "plainHttp", &there.plain_http, err) < 0 ||
	    json_get_string(mirror, "mirrors", "user", &there.user, err) < 0 ||
	    json_get_string(mirror, "mirrors", "password", &password, err) < 0 ||
	    secret_put(&hidden, password, err) < 0 || reference_parse(text, &reference, err) < 0)
		return -1;
	there.mirror = &reference;
	there.password = &hidden;
	return pull_image(work->call->store, &there, out, err);
}

/* Whether no other place would help. */
static bool pull_is_ours(const struct err *err)
{
	return err->kind == ERR_CANCELLED || err->kind == ERR_FULL || err->kind == ERR_OS ||
	       err->kind == ERR_LIMIT;
}

/*
 * Ask the mirrors in their order, then the registry. The error has the first
 * and the last failure.
 */
static int pull_from_all(struct pull_work *work, const struct pull_spec *spec, struct tag *out,
			 struct err *err)
{
	json_t *mirrors = json_object_get(work->call->request, "mirrors");
	const json_t *mirror;
	struct err first = {0};
	struct err last;
	size_t i;

	json_array_foreach(mirrors, i, mirror)
	{
		if (pull_from_mirror(work, mirror, spec, out, err) == 0)
			return 0;
		if (pull_is_ours(err))
			return -1;
		log_debug("mirror failed error=%s", err->text);
		if (i == 0)
			first = *err;
	}
	if (pull_image(work->call->store, spec, out, &last) == 0)
		return 0;
	*err = last;
	if (first.kind != ERR_NONE && !pull_is_ours(&last))
		(void)err_set(err, last.kind, "%s; before that, %s", last.text, first.text);
	return -1;
}

static int pull_run(struct pull_work *work, struct tag *out, struct err *err)
{
	const json_t *request = work->call->request;
	struct reference reference;
	struct pull_spec spec = {
		.reference = &reference,
		.event = pull_hear,
		.event_ctx = work,
		.cancel = &work->call->cancel,
	};
	struct str text;
	struct str platform;
	struct str ca_file = {0};
	struct str password = STR("");
	auto_secret struct secret hidden = {0};
	int64_t max_layer_bytes = 0;
	bool stream = false;

	if (json_need_string(request, "", "reference", &text, err) < 0 ||
	    json_need_string(request, "", "platform", &platform, err) < 0 ||
	    json_get_string(request, "", "name", &spec.name, err) < 0 ||
	    json_get_bool(request, "", "unnamed", &spec.unnamed, err) < 0 ||
	    json_get_bool(request, "", "nameAsThere", &spec.name_as_there, err) < 0 ||
	    json_get_bool(request, "", "stream", &stream, err) < 0 ||
	    json_get_bool(request, "", "bare", &spec.bare, err) < 0 ||
	    json_get_bool(request, "", "allPlatforms", &spec.all_platforms, err) < 0 ||
	    json_get_bool(request, "", "referrers", &spec.referrers, err) < 0 ||
	    json_get_bool(request, "", "anyArchive", &spec.any_archive, err) < 0 ||
	    json_get_bool(request, "", "plainHttp", &spec.plain_http, err) < 0 ||
	    json_get_string(request, "", "caFile", &ca_file, err) < 0 ||
	    json_get_int(request, "", "maxLayerBytes", &max_layer_bytes, err) < 0 ||
	    json_get_string(request, "", "user", &spec.user, err) < 0 ||
	    json_get_string(request, "", "password", &password, err) < 0 ||
	    secret_put(&hidden, password, err) < 0 || reference_parse(text, &reference, err) < 0 ||
	    platform_parse(platform, &spec.platform, err) < 0)
		return -1;
	spec.streamfd = stream ? WORK_FD_STREAM : 0;
	spec.ca_file = ca_file.ptr;
	spec.password = &hidden;
	spec.limits.max_bytes = (uint64_t)max_layer_bytes;
	return pull_from_all(work, &spec, out, err);
}

static int pull_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(json) json_t *names = json_array();
	AUTO(json) json_t *referrers = json_array();
	struct pull_work work = {call, names, referrers};
	struct tag tag;
	bool bare = false;

	if (json_get_bool(call->request, "", "bare", &bare, err) < 0 ||
	    (!bare && work_need_root(err) < 0) ||
	    store_sweep(call->store, &call->cancel, err) < 0 || pull_run(&work, &tag, err) < 0)
		return -1;
	*out = json_object();
	digest_json_set(*out, "target", &tag.target);
	digest_json_set(*out, "manifest", &tag.manifest);
	(void)json_object_set(*out, "names", names);
	if (json_array_size(referrers) > 0)
		(void)json_object_set(*out, "referrers", referrers);
	return 0;
}

int work_pull(void)
{
	return work_call_run(pull_answer);
}
