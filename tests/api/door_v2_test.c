/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door_v2.h"
#include "tests/layers/store_fixture.h"

#include <openssl/evp.h>

/* A daemon that has what the checks need, and its store. */
struct gate {
	struct store_fixture *fixture;
	struct cli cli;
	struct daemon daemon;
	const char *open[1]; /* registry.anonymous */
	char field[512];     /* Authorization; "" for none */
	char secret[64];
	char id[TOKEN_ID_MAX];
};

/* What the request says in Authorization: tests run one at a time. */
static const char *gate_field;

static const char *gate_find(const struct http_request *request, const char *name)
{
	(void)request;
	if (strcmp(name, "Host") == 0)
		return "127.0.0.1:7460";
	return strcmp(name, "Authorization") == 0 ? gate_field : NULL;
}

static int gate_open(void **state)
{
	struct gate *gate = calloc(1, sizeof(*gate));

	assert_non_null(gate);
	(void)store_fixture_open((void **)&gate->fixture);
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

static int gate_close(void **state)
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
static void gate_login(struct gate *gate, const char *scope, const char *other)
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

static void gate_use_basic(struct gate *gate, const char *user, const char *password)
{
	unsigned char coded[256];
	char plain[128];
	int n = snprintf(plain, sizeof(plain), "%s:%s", user, password);

	(void)EVP_EncodeBlock(coded, (const unsigned char *)plain, n);
	(void)snprintf(gate->field, sizeof(gate->field), "Basic %s", (const char *)coded);
}

static const char *gate_header(const struct http_response *response, const char *name)
{
	for (size_t i = 0; i < response->header_count; i++) {
		if (strcmp(response->headers[i].name, name) == 0)
			return response->headers[i].value;
	}
	return "";
}

/* 0 where the request is taken, else the refusal's status; its body must have the code. */
static unsigned gate_ask_from(struct gate *gate, enum http_method method, const char *path,
			      const char *ns, const char *code)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	const struct http_field query = {STR("ns"), {ns, strlen(ns)}};
	const struct http_request request = {.method = method,
					     .path = {path, strlen(path)},
					     .query = &query,
					     .query_count = *ns ? 1 : 0,
					     .find_header = gate_find};
	struct door_v2 visit = {.daemon = NULL};
	struct http_terms terms;
	bool taken;

	gate_field = gate->field[0] ? gate->field : NULL;
	taken = door_v2_admit(&visit, &gate->daemon, &request, &terms, &response);
	door_v2_done(&visit);
	if (taken)
		return 0;
	if (code && !strstr(buf_str(&response.body).ptr, code))
		fail_msg("%s: %s", path, buf_str(&response.body).ptr);
	assert_int_equal(response.status == 401, *gate_header(&response, "WWW-Authenticate") != 0);
	return response.status;
}

static unsigned gate_ask(struct gate *gate, enum http_method method, const char *path)
{
	return gate_ask_from(gate, method, path, "", NULL);
}

static void who_says_nothing_is_challenged_for_all(void **state)
{
	struct gate *gate = *state;

	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/", "", "UNAUTHORIZED"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/x"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/tags/list"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 401);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/a/manifests/x"), 401);
	assert_int_equal(gate_ask(gate, HTTP_POST, "/v2/a/blobs/uploads/"), 401);
}

static void what_is_open_is_pulled_by_anybody_and_nothing_more(void **state)
{
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/tags/list"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/closed/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/open/x/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/open/x/manifests/1"), 401);
	/* Another registry's open/x is another repository. */
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/open/x/manifests/1", "docker.io", NULL),
			 401);
	/* A client without a password may say so by an empty one. */
	gate_use_basic(gate, "", "");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	/* A ping is how clients find out that they may have to log in. */
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
}

static void a_scope_opens_its_repositories(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull:team/*", "push:team/app");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/team/app/manifests/1"), 0);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/other/manifests/1", "", "DENIED"), 403);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/team/x/manifests/1"), 403);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/team/app/manifests/1"), 403);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/team/x/manifests/1", "docker.io", NULL),
			 403);
}

static void levels_include_what_they_need(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "operate", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/any/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_POST, "/v2/any/blobs/uploads/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/any/manifests/1"), 403);
	gate_login(gate, "admin", "read");
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/any/manifests/1"), 0);
	gate_login(gate, "read", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/any/manifests/1"), 403);
}

static void a_token_is_the_password_of_any_user(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull", "read");
	gate_use_basic(gate, "whoever", gate->secret);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 0);
	gate_use_basic(gate, "", gate->secret);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
}

static void wrong_credentials_are_challenged_even_where_none_are_needed(void **state)
{
	static const char *const fields[] = {
		"Basic !!!!",
		"Basic YQ==", /* no colon */
		"Basic",
		"Digest x",
		"Bearer hth_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	};
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		(void)snprintf(gate->field, sizeof(gate->field), "%s", fields[i]);
		assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 401);
	}
	gate_use_basic(gate, "user", "wrong");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
	gate_use_basic(gate, "user", "");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
}

static void a_revoked_token_opens_nothing(void **state)
{
	struct gate *gate = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	gate_login(gate, "pull", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 0);
	check_ok(meta_begin(gate->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(token_revoke(meta, (struct str){gate->id, strlen(gate->id)}, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 401);
}

#define gate_test(test) cmocka_unit_test_setup_teardown(test, gate_open, gate_close)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		gate_test(who_says_nothing_is_challenged_for_all),
		gate_test(what_is_open_is_pulled_by_anybody_and_nothing_more),
		gate_test(a_scope_opens_its_repositories),
		gate_test(levels_include_what_they_need),
		gate_test(a_token_is_the_password_of_any_user),
		gate_test(wrong_credentials_are_challenged_even_where_none_are_needed),
		gate_test(a_revoked_token_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
