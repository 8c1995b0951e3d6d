/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "layers/base/clock.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/base/nearest.h"
#include "layers/digest.h"

#define ROUTE_RETRY_MS 1000 /* when a request that was refused as too many may be tried again */
#define ROUTE_RETRY_S "1"
#define ROUTE_ETAG_DIGITS ((size_t)32) /* of the digest's */

static const char *const route_expected[] = {
	[ROUTE_STRING] = "a string",  [ROUTE_INT] = "an integer", [ROUTE_BOOL] = "true or false",
	[ROUTE_OBJECT] = "an object", [ROUTE_ARRAY] = "an array",
};

const struct route_param route_id[1] = {
	{"id", ROUTE_STRING, true},
};

const struct route_param route_page[2] = {
	{"limit", ROUTE_INT, false},
	{"cursor", ROUTE_STRING, false},
};

const struct route_param route_agent_page[3] = {
	{"limit", ROUTE_INT, false},
	{"cursor", ROUTE_STRING, false},
	{"agentId", ROUTE_STRING, false},
};

const struct route *route_find(const struct routes *const *tables, struct str name)
{
	for (; *tables; tables++) {
		for (size_t i = 0; i < (*tables)->count; i++) {
			if (str_equal(str_of((*tables)->at[i].name), name))
				return &(*tables)->at[i];
		}
	}
	return NULL;
}

int route_refuse(const struct routes *const *tables, struct str name, struct err *err)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (; *tables; tables++) {
		for (size_t i = 0; i < (*tables)->count; i++)
			nearest_offer(&nearest, str_of((*tables)->at[i].name));
	}
	return err_set(err, ERR_NO_METHOD, "there is no method %.*s%s%s%s",
		       (int)(name.len < 100 ? name.len : 100), name.ptr,
		       nearest.name[0] ? "; did you mean " : "", nearest.name,
		       nearest.name[0] ? "?" : "");
}

void route_add_detail(struct call *call, const char *name, json_t *value)
{
	if (!call->details)
		call->details = json_object();
	(void)json_object_set_new(call->details, name, value);
}

static int route_refuse_arg(const struct route_param *param, struct err *err)
{
	const char *expected = route_expected[param->type];

	(void)err_wrong(err, expected, "expected %s", expected);
	return err_at(err, param->name, NULL);
}

static int route_refuse_twice(const struct route_param *param, struct err *err)
{
	(void)err_set(err, ERR_INVALID, "it is given twice");
	return err_at(err, param->name, NULL);
}

static const struct route_param *route_find_param(const struct route *route, const char *name)
{
	for (size_t i = 0; i < route->param_count; i++) {
		if (strcmp(route->params[i].name, name) == 0)
			return &route->params[i];
	}
	return NULL;
}

static int route_unknown_param(const struct route *route, const char *name, struct err *err)
{
	struct nearest nearest;

	nearest_init(&nearest, str_of(name));
	for (size_t i = 0; i < route->param_count; i++)
		nearest_offer(&nearest, str_of(route->params[i].name));
	(void)err_set(err, ERR_INVALID, "%s has no such parameter%s%s%s", route->name,
		      nearest.name[0] ? "; did you mean " : "", nearest.name,
		      nearest.name[0] ? "?" : "");
	return err_at(err, name, NULL);
}

static bool route_fits(const struct route_param *param, const json_t *value)
{
	switch (param->type) {
	case ROUTE_STRING:
		return json_is_string(value);
	case ROUTE_INT:
		return json_is_integer(value);
	case ROUTE_BOOL:
		return json_is_boolean(value);
	case ROUTE_OBJECT:
		return json_is_object(value);
	case ROUTE_ARRAY:
		return json_is_array(value);
	}
	return false;
}

static int route_check_args(struct call *call, struct err *err)
{
	const struct route *route = call->route;
	const char *name;
	json_t *value;

	json_object_foreach(call->args, name, value)
	{
		const struct route_param *param = route_find_param(route, name);

		if (!param)
			return route_unknown_param(call->route, name, err);
		if (!json_is_null(value) && !route_fits(param, value))
			return route_refuse_arg(param, err);
	}
	for (size_t i = 0; i < route->param_count; i++) {
		const struct route_param *param = &route->params[i];
		const json_t *found = json_object_get(call->args, param->name);

		if (param->required && (!found || json_is_null(found)))
			return route_refuse_arg(param, err);
	}
	return 0;
}

/* A number as JSON has it; NULL for anything else. */
static json_t *route_integer(struct str text)
{
	bool negative = str_starts(text, STR("-"));
	struct str digits = negative ? str_skip(text, 1) : text;
	uint64_t value;

	if (!str_parse_number(digits, &value) || value > INT64_MAX)
		return NULL;
	return json_integer(negative ? -(json_int_t)value : (json_int_t)value);
}

/* A query's value as JSON of the parameter's type; NULL where it is not of that type. */
static json_t *route_query_value(const struct route_param *param, struct str text)
{
	switch (param->type) {
	case ROUTE_STRING:
		return json_stringn(text.ptr, text.len); /* NULL where it is not UTF-8 */
	case ROUTE_INT:
		return route_integer(text);
	case ROUTE_BOOL:
		if (str_equal(text, STR("true")) || str_equal(text, STR("1")))
			return json_true();
		if (str_equal(text, STR("false")) || str_equal(text, STR("0")))
			return json_false();
		return NULL;
	case ROUTE_OBJECT:
	case ROUTE_ARRAY:
		break;
	}
	return NULL;
}

static int route_read_query(struct call *call, struct err *err)
{
	call->args = json_object();
	for (size_t i = 0; i < call->request->query_count; i++) {
		const struct http_field *field = &call->request->query[i];
		const struct route_param *param = route_find_param(call->route, field->name.ptr);
		json_t *value;

		if (!param)
			return route_unknown_param(call->route, field->name.ptr, err);
		if (json_object_get(call->args, param->name))
			return route_refuse_twice(param, err);
		value = route_query_value(param, field->value);
		if (!value)
			return route_refuse_arg(param, err);
		(void)json_object_set_new(call->args, param->name, value);
	}
	return 0;
}

static int route_read_body(struct call *call, struct err *err)
{
	struct str body = call->request->body;

	if (call->request->query_count > 0)
		return err_set(err, ERR_INVALID,
			       "parameters of a POST stand in its body, not in the URL");
	if (body.len == 0) {
		call->args = json_object();
		return 0;
	}
	if (json_parse(body, body.len, &call->args, err) < 0)
		return err_ctx(err, "the request's body");
	if (!json_is_object(call->args))
		return err_set(err, ERR_INVALID, "the request's body: expected an object, found %s",
			       json_type_name(json_typeof(call->args)));
	return 0;
}

int route_read_args(struct call *call, struct err *err)
{
	const struct route *route = call->route;
	bool in_body = call->request->method == HTTP_POST && !route->streamed && !route->whole;

	if ((in_body ? route_read_body(call, err) : route_read_query(call, err)) < 0)
		return -1;
	return route_check_args(call, err);
}

void route_clear(struct call *call)
{
	json_decref(call->args);
	json_decref(call->result);
	json_decref(call->details);
	call->args = call->result = call->details = NULL;
}

static void route_write_json(const json_t *value, struct http_response *out)
{
	auto_buf struct buf text = BUF_INIT(HTTP_ANSWER_MAX);
	struct err err;

	if (json_format(value, &text, &err) < 0) {
		out->status = (unsigned)err_http_status(err.kind);
		return;
	}
	http_set_body(out, "application/json", buf_str(&text));
}

void route_write_error(const struct err *why, const json_t *details, struct http_response *out)
{
	AUTO(json) json_t *error = json_object();
	AUTO(json) json_t *value = json_object();

	if (why->kind == ERR_BUSY || why->kind == ERR_UNAVAILABLE) {
		http_add_header(out, "Retry-After", STR(ROUTE_RETRY_S));
		(void)json_object_set_new(error, "retryAfterMs", json_integer(ROUTE_RETRY_MS));
	}
	if (why->path[0])
		(void)json_object_set_new(error, "path", json_from_str(str_of(why->path)));
	if (why->expected[0])
		(void)json_object_set_new(error, "expected", json_from_str(str_of(why->expected)));
	if (details)
		(void)json_object_update(error, drop_const(details));
	(void)json_object_set_new(error, "code", json_string(err_name(why->kind)));
	(void)json_object_set_new(error, "message", json_from_str(str_of(why->text)));
	(void)json_object_set(value, "error", error);
	out->status = (unsigned)err_http_status(why->kind);
	route_write_json(value, out);
}

static void route_fail(struct call *call, const struct err *why)
{
	int status = err_http_status(why->kind);

	if (status >= 500)
		log_error("request failed method=%s token=%s status=%d why=\"%s\"",
			  call->route->name, call->who.token_id, status, why->text);
	http_response_clear(call->response);
	route_write_error(why, call->details, call->response);
}

void route_answer(struct call *call)
{
	struct err err = {0};

	route_clear(call);
	if (route_read_args(call, &err) < 0 || call->route->run(call, &err) < 0)
		route_fail(call, &err);
	else if (call->result)
		route_write_json(call->result, call->response);
}

void route_set_deadline(struct call *call, int64_t wait_ms)
{
	if (call->until_ms == 0)
		call->until_ms = clock_monotonic_ms() + wait_ms;
}

struct str route_make_etag(struct str text, char out[static HTTP_ETAG_MAX])
{
	struct digest digest;
	char hex[DIGEST_HEX_MAX];

	digest_of(text, &digest);
	return http_etag((struct str){digest_hex(&digest, hex), ROUTE_ETAG_DIGITS}, out);
}

void route_answer_tagged(struct call *call, struct str json, struct str etag,
			 const struct http_wait *wait)
{
	if (wait && !call->request->over &&
	    http_etag_matches(http_find_header(call->request, "If-None-Match"), etag)) {
		call->response->wait = *wait;
		return;
	}
	http_add_header(call->response, "Cache-Control", STR("no-cache"));
	if (!http_add_etag(call->request, call->response, etag))
		http_set_body(call->response, "application/json", json);
}
