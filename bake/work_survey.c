/* SPDX-License-Identifier: Apache-2.0 */
/* work_survey.c - the role that asks a registry what it has, and whether it knows us. */
#include "bake/wire.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "registry/survey.h"

/* Names on their way to the asker, a page at a time. */
struct survey_work {
	struct work_call *call;
	json_t *page; /* owned */
};

static void auto_survey_work_release(struct survey_work *work)
{
	json_decref(work->page);
}

static int survey_send(struct survey_work *work, struct err *err)
{
	AUTO(json) json_t *value = json_object();

	if (json_array_size(work->page) == 0)
		return 0;
	json_set(value, "names", work->page);
	work->page = json_array();
	return wire_send_json(WORK_FD_ASKER, WIRE_PROGRESS, value, err);
}

static int survey_hear(void *ctx, struct str name, struct err *err)
{
	struct survey_work *work = ctx;

	(void)json_array_append_new(work->page, json_from_str(name));
	return json_array_size(work->page) < SURVEY_PAGE ? 0 : survey_send(work, err);
}

static int survey_read(const struct work_call *call, struct survey_spec *out,
		       struct secret *password, struct err *err)
{
	const json_t *request = call->request;
	struct str ca_file = {0};
	struct str hidden = STR("");
	int64_t limit = 0;

	if (json_need_string(request, "", "host", &out->host, err) < 0 ||
	    json_get_string(request, "", "path", &out->path, err) < 0 ||
	    json_get_string(request, "", "after", &out->after, err) < 0 ||
	    json_get_int(request, "", "limit", &limit, err) < 0 ||
	    json_get_bool(request, "", "plainHttp", &out->plain_http, err) < 0 ||
	    json_get_string(request, "", "caFile", &ca_file, err) < 0 ||
	    json_get_string(request, "", "user", &out->user, err) < 0 ||
	    json_get_string(request, "", "password", &hidden, err) < 0 ||
	    secret_put(password, hidden, err) < 0)
		return -1;
	out->limit = (size_t)limit;
	out->ca_file = ca_file.ptr;
	out->password = password;
	out->cancel = &call->cancel;
	return 0;
}

static int survey_answer(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(survey_work) struct survey_work work = {call, json_array()};
	struct survey_spec spec = {0};
	auto_secret struct secret password = {0};
	bool check = false;
	int result;

	if (survey_read(call, &spec, &password, err) < 0 ||
	    json_get_bool(call->request, "", "check", &check, err) < 0)
		return -1;
	result = check ? survey_login(&spec, err) : survey_names(&spec, survey_hear, &work, err);
	if (result >= 0 && survey_send(&work, err) < 0)
		result = -1;
	if (result < 0)
		return -1;
	*out = json_object();
	json_set_bool(*out, "asked", result == 1);
	return 0;
}

int work_survey(void)
{
	return work_call_run(survey_answer);
}
