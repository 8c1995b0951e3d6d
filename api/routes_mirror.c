/* SPDX-License-Identifier: Apache-2.0 */
/* routes_mirror.c - mirror.status, mirror.warm: the registries that the daemon stands before. */
#include "api/daemon.h"
#include "api/routes.h"
#include "layers/digest_json.h"

#include <string.h>

static int mirror_status_run(struct call *call, struct err *err)
{
	(void)err;
	call->result = mirror_status(call->daemon->v2.mirror);
	return 0;
}

/* The platform that is asked for; else this host's. */
static int mirror_read_platform(const struct call *call, struct mirror_warm_spec *out,
				struct err *err)
{
	struct str text = STR("");

	platform_host(&out->platform);
	if (json_get_string(call->args, "", "platform", &text, err) < 0)
		return -1;
	out->all_platforms = str_equal(text, STR("all"));
	if (text.len == 0 || out->all_platforms)
		return 0;
	return platform_parse(text, &out->platform, err) < 0 ? err_ctx(err, "platform") : 0;
}

static int mirror_warm_run(struct call *call, struct err *err)
{
	struct mirror *mirror = call->daemon->v2.mirror;
	struct mirror_warm_spec spec = {.cancel = call->daemon->cli->cancel};
	struct mirror_warmed warmed;
	struct str reference;

	if (!mirror)
		return err_set(err, ERR_UNSUPPORTED,
			       "no upstream is configured: the daemon's configuration names them "
			       "as mirror.upstreams");
	if (json_need_string(call->args, "", "reference", &reference, err) < 0 ||
	    mirror_read_platform(call, &spec, err) < 0 ||
	    mirror_warm(mirror, reference, &spec, &warmed, err) < 0)
		return -1;
	call->result = json_object();
	json_set(call->result, "reference", json_from_str(reference));
	digest_json_set(call->result, "digest", &warmed.digest);
	json_set_size(call->result, "manifests", warmed.manifests);
	json_set_size(call->result, "blobs", warmed.blobs);
	json_set_size(call->result, "fetchedBlobs", warmed.fetched);
	json_set_size(call->result, "fetchedBytes", warmed.fetched_bytes);
	return 0;
}

static const struct route_param warm_params[] = {
	{"reference", ROUTE_STRING, true},
	{"platform", ROUTE_STRING, false},
};

static const struct route table[] = {
	{.name = "mirror.status",
	 .level = TOKEN_READ,
	 .kind = ROUTE_READ,
	 .run = mirror_status_run},
	{.name = "mirror.warm",
	 .level = TOKEN_OPERATE,
	 .kind = ROUTE_WRITE,
	 .params = warm_params,
	 .param_count = sizeof(warm_params) / sizeof(warm_params[0]),
	 .run = mirror_warm_run},
};

const struct routes routes_mirror = {table, sizeof(table) / sizeof(table[0])};
