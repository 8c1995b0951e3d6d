/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: arguments that are accepted fit the parameters; tokens lie in their
 * field; decoding makes nothing longer, and no NUL.
 *
 * The input is fields with a NUL behind each: Authorization, Host, If-None-Match, a
 * query, a body.
 */
#include "api/host.h"
#include "api/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct route_param params[] = {
	{"id", ROUTE_STRING, true},    {"version", ROUTE_INT, false},  {"pull", ROUTE_BOOL, false},
	{"spec", ROUTE_OBJECT, false}, {"scopes", ROUTE_ARRAY, false},
};
static const struct route route = {
	.name = "test", .params = params, .param_count = sizeof(params) / sizeof(params[0])};

static struct str take(struct str *rest)
{
	struct str field;

	return str_cut(rest, '\0', &field) ? field : STR("");
}

static void check_args(const struct http_request *request)
{
	struct call call = {.route = &route, .request = request};
	struct err err = {0};
	struct str id;
	int64_t version;
	bool pull;

	if (route_read_args(&call, &err) == 0 &&
	    (json_need_string(call.args, "", "id", &id, &err) < 0 ||
	     json_get_int(call.args, "", "version", &version, &err) < 0 ||
	     json_get_bool(call.args, "", "pull", &pull, &err) < 0))
		abort();
	route_clear(&call);
}

/* As the server hands it over: names and values decoded, with a NUL behind each. */
static void check_query(struct str text)
{
	auto_free char *copy = str_dup(text);
	struct http_field fields[HTTP_QUERY_MAX];
	struct http_request request = {.method = HTTP_GET, .query = fields};
	struct str rest = str_of(copy);
	struct str pair;

	while (request.query_count < HTTP_QUERY_MAX && str_cut(&rest, '&', &pair)) {
		struct str name;
		char *key;
		char *value;
		size_t key_len;
		size_t value_len;

		(void)str_cut(&pair, '=', &name);
		key = str_dup(name);
		value = str_dup(pair.ptr ? pair : STR(""));
		key_len = strlen(key);
		value_len = strlen(value);
		(void)http_unescape(key, &key_len, true);
		if (http_unescape(value, &value_len, true) && memchr(value, '\0', value_len))
			abort();
		key[key_len] = '\0';
		fields[request.query_count++] =
			(struct http_field){{key, key_len}, {value, value_len}};
	}
	check_args(&request);
	for (size_t i = 0; i < request.query_count; i++) {
		free(drop_const(fields[i].name.ptr));
		free(drop_const(fields[i].value.ptr));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"hearth.test"};
	struct str rest = {(const char *)data, size};
	struct str authorization = take(&rest);
	struct str host = take(&rest);
	auto_free char *tags = str_dup(take(&rest));
	struct http_request request = {.method = HTTP_POST};
	struct str token;

	if (auth_parse(authorization, &token) &&
	    (token.len == 0 || token.ptr < authorization.ptr ||
	     token.ptr + token.len > authorization.ptr + authorization.len))
		abort();
	(void)host_is_ours(host, names, 1);
	(void)http_etag_matches(tags, STR("\"tag\""));
	check_query(take(&rest));
	request.body = rest.ptr ? rest : STR("");
	check_args(&request);
	return 0;
}
