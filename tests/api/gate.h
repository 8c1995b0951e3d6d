/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - what stands before /v2/, asked without a server. */
#pragma once

#include "api/door_v2.h"
#include "tests/layers/store_fixture.h"

#include <openssl/evp.h>

/* A daemon that has what the checks need, and its store. */
struct gate {
	struct store_fixture *fixture;
	struct cli cli;
	struct daemon daemon;
	const char *open[1]; /* registry.anonymous */
	char field[8192];    /* Authorization; "" for none */
	char secret[64];
	char id[TOKEN_ID_MAX];
};

/* What requests say beside their path: tests run one at a time. */
static const char *gate_field;
static const char *gate_host = "127.0.0.1:7460";
static const char *gate_proto;

static inline const char *gate_find(const struct http_request *request, const char *name)
{
	(void)request;
	if (strcmp(name, "Host") == 0)
		return gate_host;
	if (strcmp(name, "X-Forwarded-Proto") == 0)
		return gate_proto;
	return strcmp(name, "Authorization") == 0 ? gate_field : NULL;
}

static inline int gate_open(void **state)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	assert_non_null(gate);
	(void)store_fixture_open((void **)&gate->fixture);
	gate_host = "127.0.0.1:7460";
	gate_proto = NULL;
	gate->open[0] = "open/*";
	gate->cli.config = CONFIG_INIT;
	gate->daemon = (struct daemon){
		.cli = &gate->cli,
		.store = gate->fixture->store,
		.auth = auth_new(gate->fixture->store),
		.metrics = metrics_new(),
		.v2 = {.store = gate->fixture->store},
	};
	*state = gate;
	return 0;
}

static inline int gate_close(void **state)
{
	struct gate *gate = *state;
	void *fixture = gate->fixture;

	auth_free(gate->daemon.auth);
	metrics_free(gate->daemon.metrics);
	(void)store_fixture_close(&fixture);
	free(gate);
	return 0;
}

/* From now on requests come with a new token of these scopes. */
static inline void gate_login(struct gate *gate, const char *scope, const char *other)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *scopes = json_pack("[s,s]", scope, other);
	auto_secret struct secret secret = {0};
	auto_token struct token token = TOKEN_INIT;
	struct err err = {0};

	check_ok(meta_begin(gate->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(token_create(meta, STR("t"), scopes, &secret, &token, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	(void)snprintf(gate->secret, sizeof(gate->secret), "%s", secret_reveal(&secret));
	(void)snprintf(gate->field, sizeof(gate->field), "Bearer %s", gate->secret);
	memcpy(gate->id, token.id, sizeof(gate->id));
}

static inline void gate_use_basic(struct gate *gate, const char *user, const char *password)
{
	unsigned char coded[256];
	char plain[128];
	int n = snprintf(plain, sizeof(plain), "%s:%s", user, password);

	(void)EVP_EncodeBlock(coded, (const unsigned char *)plain, n);
	(void)snprintf(gate->field, sizeof(gate->field), "Basic %s", (const char *)coded);
}

static inline const char *gate_header(const struct http_response *response, const char *name)
{
	for (size_t i = 0; i < response->header_count; i++) {
		if (strcmp(response->headers[i].name, name) == 0)
			return response->headers[i].value;
	}
	return "";
}

/* What a request says, and what came of it. */
struct gate_ask {
	enum http_method method;
	const char *path;
	const char *ns;      /* or NULL */
	const char *code;    /* that a refusal's body must have, or NULL */
	bool answered;       /* what is taken is answered, too, and that may refuse it */
	char challenge[512]; /* of a refusal */
};

/* 0 where the request is taken, else the refusal's status. */
static inline unsigned gate_try(struct gate *gate, struct gate_ask *ask)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	const char *ns = ask->ns ? ask->ns : "";
	const struct http_field query = {STR("ns"), {ns, strlen(ns)}};
	const struct http_request request = {.method = ask->method,
					     .path = {ask->path, strlen(ask->path)},
					     .query = &query,
					     .query_count = *ns ? 1 : 0,
					     .find_header = gate_find};
	struct door_v2 visit = {.daemon = NULL};
	struct http_terms terms;
	bool taken;

	gate_field = gate->field[0] ? gate->field : NULL;
	taken = door_v2_admit(&visit, &gate->daemon, &request, &terms, &response);
	if (taken && ask->answered) {
		door_v2_answer(&visit, &response);
		taken = response.status < 400;
	}
	door_v2_done(&visit, &response);
	if (taken)
		return 0;
	if (ask->code && !strstr(buf_str(&response.body).ptr, ask->code))
		fail_msg("%s: %s", ask->path, buf_str(&response.body).ptr);
	(void)snprintf(ask->challenge, sizeof(ask->challenge), "%s",
		       gate_header(&response, "WWW-Authenticate"));
	assert_int_equal(response.status == 401, ask->challenge[0] != 0);
	return response.status;
}

static inline unsigned gate_ask_from(struct gate *gate, enum http_method method, const char *path,
				     const char *ns, const char *code)
{
	struct gate_ask ask = {.method = method, .path = path, .ns = ns, .code = code};

	return gate_try(gate, &ask);
}

static inline unsigned gate_ask(struct gate *gate, enum http_method method, const char *path)
{
	return gate_ask_from(gate, method, path, NULL, NULL);
}

#define gate_test(test) cmocka_unit_test_setup_teardown(test, gate_open, gate_close)
