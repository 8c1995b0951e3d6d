/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/appended.h"

/* The base's name and the platform: a digest is inherited only where both are the same. */
static int appended_base(const json_t *image, struct buf *out, struct err *err)
{
	struct str base = STR("");
	struct str platform = STR("");

	if (json_get_string(image, "image", "base", &base, err) < 0 ||
	    json_get_string(image, "image", "platform", &platform, err) < 0 ||
	    buf_add(out, base, err) < 0)
		return -1;
	return platform.len > 0 ? buf_addf(out, err, " " STR_FMT, STR_ARG(platform)) : 0;
}

static int appended_rebake(const json_t *image, struct spec_rebake *out, struct err *err)
{
	json_t *rebake = NULL;
	int found = json_get_object(image, "image", "rebake", &rebake, err);

	if (found != 1)
		return found;
	if (json_get_string(rebake, "rebake", "cron", &out->cron, err) < 0 ||
	    json_get_int(rebake, "rebake", "jitterMs", &out->jitter_ms, err) < 0)
		return -1;
	return 0;
}

int appended_version(void *ctx, struct meta *meta, const struct agent *agent,
		     const struct agent_version *version, struct err *err)
{
	const struct appended *appended = ctx;
	const json_t *image = json_object_get(json_object_get(version->spec, "sandbox"), "image");
	auto_buf struct buf base = BUF_INIT(AGENT_SPEC_MAX);
	struct spec_rebake rebake = {.cron = STR("")};
	struct queue_version put = {.agent_id = str_of(agent->id),
				    .slug = str_of(agent->slug),
				    .version = version->number};

	if (json_is_object(image) &&
	    (appended_base(image, &base, err) < 0 || appended_rebake(image, &rebake, err) < 0))
		return -1;
	put.base = buf_str(&base);
	if (queue_put(appended->queue, meta, &put, err) < 0)
		return -1;
	return schedule_put(appended->schedule, meta, put.agent_id, &rebake, err);
}
