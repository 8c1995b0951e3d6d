/* SPDX-License-Identifier: Apache-2.0 */
/* work_doctor.c - the role that tries what this host can do. */
#include "bake/wire.h"
#include "bake/work.h"
#include "sandbox/host.h"

static json_t *doctor_check(const struct host_check *check)
{
	static const char *const verdicts[] = {
		[HOST_OK] = "ok",
		[HOST_WARN] = "warn",
		[HOST_FAIL] = "fail",
	};
	json_t *value = json_object();

	json_set_text(value, "name", check->name);
	json_set_text(value, "verdict", verdicts[check->verdict]);
	json_set_text(value, "found", check->found);
	json_set_text(value, "advice", check->advice);
	return value;
}

static int doctor_receive(json_t **out, struct str *out_data, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);

	if (work_receive(&payload, err) < 0 ||
	    json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, out, err) < 0)
		return -1;
	return json_need_string(*out, "", "data", out_data, err);
}

int work_doctor(void)
{
	struct host_check checks[HOST_CHECKS_MAX];
	AUTO(json) json_t *request = NULL;
	AUTO(json) json_t *answer = json_array();
	struct str data = {0};
	struct err err = {0};
	size_t count;

	if (doctor_receive(&request, &data, &err) < 0) {
		AUTO(json) json_t *why = wire_error(&err, 0);

		return wire_send_json(WORK_FD_ASKER, WIRE_ERROR, why, &err) < 0 ? 2 : 1;
	}
	count = host_examine(data.ptr, checks);
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(answer, doctor_check(&checks[i]));
	return wire_send_json(WORK_FD_ASKER, WIRE_RESULT, answer, &err) < 0 ? 1 : 0;
}
