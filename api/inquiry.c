/* SPDX-License-Identifier: Apache-2.0 */
#include "api/inquiry.h"

#include "bake/asker.h"

static json_t *inquiry_format(const struct inquiry *inquiry)
{
	json_t *value = json_object();
	bool plain = cli_has(inquiry->cli, "plain-http") ||
		     config_is_insecure(&inquiry->cli->config, inquiry->host);

	json_set(value, "host", json_from_str(inquiry->host));
	json_set(value, "path", json_from_str(inquiry->path));
	json_set(value, "after", json_from_str(inquiry->after));
	json_set_size(value, "limit", inquiry->limit);
	json_set_bool(value, "plainHttp", plain);
	json_set_text(value, "caFile", cli_text(inquiry->cli, "ca-file"));
	json_set_text(value, "user", inquiry->credentials->user);
	json_set(value, "password", json_from_str(secret_bytes(&inquiry->credentials->password)));
	return value;
}

static void inquiry_hear(void *ctx, const json_t *progress)
{
	const struct inquiry *inquiry = ctx;

	inquiry->hear(inquiry->ctx, json_object_get(progress, "names"));
}

static int inquiry_ask(const struct inquiry *inquiry, const json_t *request, json_t **out,
		       struct err *err)
{
	struct inquiry ours = *inquiry;
	const struct asker asker = {.worker_path = inquiry->cli->puller_path,
				    .progress = inquiry_hear,
				    .ctx = &ours,
				    .cancel = inquiry->cli->cancel};

	return asker_call(&asker, "survey", request, out, err);
}

int inquiry_names(const struct inquiry *inquiry, struct err *err)
{
	AUTO(json) json_t *request = inquiry_format(inquiry);
	AUTO(json) json_t *answer = NULL;

	return inquiry_ask(inquiry, request, &answer, err);
}

int inquiry_login(const struct inquiry *inquiry, struct err *err)
{
	AUTO(json) json_t *request = inquiry_format(inquiry);
	AUTO(json) json_t *answer = NULL;

	json_set_bool(request, "check", true);
	if (inquiry_ask(inquiry, request, &answer, err) < 0)
		return -1;
	return json_is_true(json_object_get(answer, "asked"));
}
