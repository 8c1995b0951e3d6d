/* SPDX-License-Identifier: Apache-2.0 */
/* token_flow_test.c - a token is exchanged, and what it gave is used at the gate. */
#include "api/access_token.h"
#include "api/token_flow.h"
#include "tests/api/gate.h"

#define QUERY_MAX 8

/* A request for a token; 0 and later requests come with it, or the refusal's status. */
struct flow {
	enum http_method method;
	const char *query[QUERY_MAX][2];
	const char *body;
};

static unsigned exchange(struct gate *gate, const struct flow *flow)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	AUTO(json) json_t *said = NULL;
	struct http_field query[QUERY_MAX];
	struct http_request request = {.method = flow->method,
				       .path = STR("/v2/token"),
				       .query = query,
				       .body = str_of(flow->body ? flow->body : ""),
				       .find_header = gate_find};
	struct door_v2 visit = {.daemon = NULL};
	struct http_terms terms;

	while (flow->query[request.query_count][0]) {
		query[request.query_count] =
			(struct http_field){str_of(flow->query[request.query_count][0]),
					    str_of(flow->query[request.query_count][1])};
		request.query_count++;
	}
	gate_field = gate->field[0] ? gate->field : NULL;
	if (door_v2_admit(&visit, &gate->daemon, &request, &terms, &response)) {
		assert_true(terms.blocks);
		door_v2_answer(&visit, &response);
	}
	door_v2_done(&visit, &response);
	if (response.status != 200) {
		assert_int_equal(response.status == 401,
				 *gate_header(&response, "WWW-Authenticate") != 0);
		return response.status;
	}
	said = json_loads(buf_str(&response.body).ptr, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(said, "token")),
			    json_string_value(json_object_get(said, "access_token")));
	assert_int_equal(json_integer_value(json_object_get(said, "expires_in")), 300);
	assert_non_null(json_object_get(said, "issued_at"));
	assert_string_equal(gate_header(&response, "Cache-Control"), "no-store");
	(void)snprintf(gate->field, sizeof(gate->field), "Bearer %s",
		       json_string_value(json_object_get(said, "token")));
	return 0;
}

/* As docker does after a challenge. */
static unsigned exchange_scope(struct gate *gate, const char *scope)
{
	const struct flow flow = {.method = HTTP_GET,
				  .query = {{"account", "who"},
					    {"client_id", "docker"},
					    {"service", "hearth"},
					    {"scope", scope}}};

	return exchange(gate, &flow);
}

static unsigned pull(struct gate *gate)
{
	return gate_ask(gate, HTTP_GET, "/v2/team/app/manifests/1");
}

static unsigned push(struct gate *gate)
{
	return gate_ask(gate, HTTP_PUT, "/v2/team/app/manifests/1");
}

static unsigned erase(struct gate *gate)
{
	return gate_ask(gate, HTTP_DELETE, "/v2/team/app/manifests/1");
}

static void a_login_needs_no_scope(void **state)
{
	const struct flow login = {.method = HTTP_GET,
				   .query = {{"account", "who"}, {"offline_token", "true"}}};
	struct gate *gate = *state;

	gate_login(gate, "pull:team/*", "read");
	gate_use_basic(gate, "who", gate->secret);
	assert_int_equal(exchange(gate, &login), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(pull(gate), 401); /* so that the client asks for more */
}

static void wrong_credentials_get_no_token(void **state)
{
	struct gate *gate = *state;

	gate_use_basic(gate, "who", "wrong");
	assert_int_equal(exchange_scope(gate, "repository:a:pull"), 401);
}

/* Docker shows its mirror the password that it has for the Hub. */
static void wrong_credentials_are_nobodys_for_what_is_open(void **state)
{
	const struct flow login = {.method = HTTP_GET, .query = {{"account", "who"}}};
	const struct flow both = {.method = HTTP_GET,
				  .query = {{"scope", "repository:open/x:pull"},
					    {"scope", "repository:closed:pull"}}};
	const struct flow form = {.method = HTTP_POST,
				  .body = "grant_type=password&username=a&password=wrong&scope="
					  "repository:open/x:pull"};
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	gate_use_basic(gate, "who", "wrong");
	assert_int_equal(exchange(gate, &login), 401);
	assert_int_equal(exchange(gate, &both), 401);
	assert_int_equal(exchange_scope(gate, "repository:open/x:pull,push"), 401);
	assert_int_equal(exchange_scope(gate, "registry:catalog:*"), 401);
	assert_int_equal(exchange_scope(gate, "repository:open/x:pull"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/closed/manifests/1"), 401);
	assert_int_equal(exchange(gate, &form), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
}

static void a_token_is_for_what_was_asked(void **state)
{
	struct gate *gate = *state;
	struct gate_ask narrow = {.method = HTTP_PUT, .path = "/v2/team/app/manifests/1"};

	gate_login(gate, "admin", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull"), 0);
	assert_int_equal(pull(gate), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/other/manifests/1"), 401);
	assert_int_equal(gate_try(gate, &narrow), 401);
	assert_non_null(strstr(narrow.challenge, ",scope=\"repository:team/app:pull,push\""));
	assert_non_null(strstr(narrow.challenge, ",error=\"insufficient_scope\""));
}

static void asking_for_more_than_one_may_is_no_error(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull:team/*", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull,push,delete,fly"), 0);
	assert_int_equal(pull(gate), 0);
	assert_int_equal(push(gate), 403);
	assert_int_equal(erase(gate), 403);
}

static void several_scopes_come_side_by_side_or_in_one(void **state)
{
	const struct flow both = {
		.method = HTTP_GET,
		.query = {{"scope", "repository:docker.io/library/alpine:pull"},
			  {"scope", "repository:team/app:pull,push repository:b:pull"},
			  {"scope", "registry:catalog:*"},
			  {"scope", "repository:localhost:5000/x:pull"},
			  {"scope", "nonsense"},
			  {"scope", "repository:"},
			  {"scope", ""}}};
	struct gate *gate = *state;

	gate_login(gate, "operate", "read");
	assert_int_equal(exchange(gate, &both), 0);
	assert_int_equal(push(gate), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/b/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/docker.io/library/alpine/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/c/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 0);
}

/* Whether a catalogue names it. */
static bool lists(struct gate *gate, const char *name)
{
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	struct http_request request = {
		.method = HTTP_GET, .path = STR("/v2/_catalog"), .find_header = gate_find};
	struct door_v2 visit = {.daemon = NULL};
	struct http_terms terms;
	bool named;

	gate_field = gate->field[0] ? gate->field : NULL;
	assert_true(door_v2_admit(&visit, &gate->daemon, &request, &terms, &response));
	named = visit.call.may(visit.call.may_ctx, str_of(name), V2_PULL);
	door_v2_done(&visit, &response);
	return named;
}

static void a_token_for_the_catalogue_lists_what_its_owner_may_pull(void **state)
{
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	assert_int_equal(exchange_scope(gate, "registry:catalog:*"), 0);
	assert_true(lists(gate, "open/x"));
	assert_false(lists(gate, "team/app"));
	gate_login(gate, "pull:team/*", "read");
	assert_int_equal(exchange_scope(gate, "registry:catalog:*"), 0);
	assert_true(lists(gate, "open/x"));
	assert_true(lists(gate, "team/app"));
	assert_false(lists(gate, "other/app"));
	assert_int_equal(pull(gate), 401);
}

/* A client that was told so comes again with the scope of the challenge. */
static void a_token_for_something_else_lists_nothing(void **state)
{
	struct gate *gate = *state;
	struct gate_ask list = {.method = HTTP_GET, .path = "/v2/_catalog"};

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	gate_login(gate, "pull:team/*", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull"), 0);
	assert_int_equal(gate_try(gate, &list), 401);
	assert_non_null(strstr(list.challenge, ",scope=\"registry:catalog:*\""));
	assert_non_null(strstr(list.challenge, ",error=\"insufficient_scope\""));
}

/* A client of a mirror asks for the name that it has in the path. */
static void a_mirrored_name_may_be_asked_for_without_its_host(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull:docker.io/*", "read");
	assert_int_equal(exchange_scope(gate, "repository:library/alpine:pull"), 0);
	assert_int_equal(
		gate_ask_from(gate, HTTP_GET, "/v2/library/alpine/manifests/1", "docker.io", NULL),
		0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/library/alpine/manifests/1"), 403);
}

static void all_actions_are_a_star(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "admin", "read");
	assert_int_equal(exchange_scope(gate, "repository(plugin):team/app:*"), 0);
	assert_int_equal(pull(gate), 0);
	assert_int_equal(push(gate), 0);
	assert_int_equal(erase(gate), 0);
}

static void nobody_gets_a_token_for_what_is_open(void **state)
{
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	assert_int_equal(exchange_scope(gate, "repository:open/x:pull,push"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/open/x/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/closed/manifests/1"), 401);
}

static void nobodys_token_is_nothing_where_nothing_is_open(void **state)
{
	struct gate *gate = *state;

	assert_int_equal(exchange_scope(gate, "repository:open/x:pull"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 401);
}

static void a_form_does_the_same(void **state)
{
	struct gate *gate = *state;
	char body[512];
	struct flow flow = {.method = HTTP_POST, .body = body};

	gate_login(gate, "operate", "read");
	gate->field[0] = '\0';
	(void)snprintf(body, sizeof(body),
		       "grant_type=password&username=a%%40b&password=%s&service=hearth&client_id="
		       "containerd&scope=repository%%3Ateam%%2Fapp%%3Apull+repository:b:push",
		       gate->secret);
	assert_int_equal(exchange(gate, &flow), 0);
	assert_int_equal(pull(gate), 0);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/b/manifests/1"), 0);
	assert_int_equal(push(gate), 401);
	(void)snprintf(body, sizeof(body), "grant_type=refresh_token&refresh_token=%s&scope=%s",
		       gate->secret, "repository:team/app:push");
	assert_int_equal(exchange(gate, &flow), 0);
	assert_int_equal(push(gate), 0);
}

static void a_wrong_form_is_refused(void **state)
{
	static const struct {
		const char *body;
		unsigned status;
	} cases[] = {
		{"", 400},
		{"grant_type=magic", 400},
		{"grant_type=password&username=a&password=wrong", 401},
		{"grant_type=password", 401},
		{"grant_type=refresh_token&refresh_token=x", 401},
		{"grant_type=%zz", 400},
		{"a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a&a", 400},
	};
	struct gate *gate = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct flow flow = {.method = HTTP_POST, .body = cases[i].body};

		assert_int_equal(exchange(gate, &flow), cases[i].status);
	}
	assert_int_equal(exchange(gate, &(struct flow){.method = HTTP_PUT}), 405);
}

static void an_access_token_makes_no_other(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "admin", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull"), 0);
	assert_int_equal(exchange_scope(gate, "repository:team/app:push"), 401);
}

static void a_revoked_token_takes_its_access_tokens_with_it(void **state)
{
	struct gate *gate = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	gate_login(gate, "pull", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull"), 0);
	assert_int_equal(pull(gate), 0);
	check_ok(meta_begin(gate->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(token_revoke(meta, str_of(gate->id), &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	assert_int_equal(pull(gate), 401);
}

static void use_token(struct gate *gate, int64_t until_ms, const char of[static DIGEST_HEX_MAX])
{
	auto_buf struct buf text = BUF_INIT((size_t)8 * 1024);
	auto_access_token struct access_token token = {.until_ms = until_ms};
	struct err err = {0};

	token.scopes = json_pack("[s]", "pull:team/app");
	memcpy(token.of, of, sizeof(token.of));
	check_ok(access_token_make(gate->fixture->store, &token, &text, &err), &err);
	(void)snprintf(gate->field, sizeof(gate->field), "Bearer %s", buf_str(&text).ptr);
}

static void a_token_ends_with_its_time(void **state)
{
	struct gate *gate = *state;
	struct gate_ask late = {.method = HTTP_GET, .path = "/v2/team/app/manifests/1"};
	char of[DIGEST_HEX_MAX];

	gate_login(gate, "pull", "read");
	token_make_key(str_of(gate->secret), of);
	use_token(gate, clock_now_ms() + 3600000, of);
	assert_int_equal(pull(gate), 0);
	use_token(gate, clock_now_ms(), of);
	assert_int_equal(gate_try(gate, &late), 401);
	assert_non_null(strstr(late.challenge, ",error=\"invalid_token\""));
}

static void a_forged_token_is_refused(void **state)
{
	struct gate *gate = *state;
	char of[DIGEST_HEX_MAX];
	size_t len;

	gate_login(gate, "pull", "read");
	token_make_key(str_of(gate->secret), of);
	use_token(gate, clock_now_ms() + 3600000, of);
	len = strlen(gate->field);
	for (size_t at = sizeof("Bearer hat_") - 1; at < len; at += 13) {
		char was = gate->field[at];

		gate->field[at] = was == 'A' ? 'B' : 'A';
		assert_int_equal(pull(gate), 401);
		gate->field[at] = was;
	}
	gate->field[len - 4] = '\0';
	assert_int_equal(pull(gate), 401);
	(void)snprintf(gate->field, sizeof(gate->field), "Bearer hat_");
	assert_int_equal(pull(gate), 401);
}

static void an_access_token_opens_no_method(void **state)
{
	struct gate *gate = *state;
	struct identity who;
	struct err err = {0};

	gate_login(gate, "admin", "read");
	assert_int_equal(exchange_scope(gate, "repository:team/app:pull"), 0);
	check_err(auth_check(gate->daemon.auth, gate->field, &who, &err), &err, ERR_UNAUTHORIZED);
}

static void a_token_fits_into_a_request(void **state)
{
	struct gate *gate = *state;
	auto_buf struct buf text = BUF_INIT((size_t)8 * 1024);
	auto_access_token struct access_token token = {.until_ms = 5};
	auto_access_token struct access_token found = ACCESS_TOKEN_INIT;
	struct err err = {0};
	char scope[256];

	memset(scope, 'a', sizeof(scope) - 1);
	scope[sizeof(scope) - 1] = '\0';
	token.scopes = json_array();
	for (size_t i = 0; i < TOKEN_SCOPES_MAX; i++)
		(void)json_array_append_new(token.scopes, json_string(scope));
	check_ok(access_token_make(gate->fixture->store, &token, &text, &err), &err);
	assert_in_range(text.len, ACCESS_TOKEN_CLAIM_MAX, 2 * ACCESS_TOKEN_CLAIM_MAX);
	assert_int_equal(access_token_open(gate->fixture->store, buf_str(&text), &found, &err), 1);
	assert_int_equal(found.until_ms, 5);
	assert_in_range(json_array_size(found.scopes), 1, TOKEN_SCOPES_MAX - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		gate_test(a_login_needs_no_scope),
		gate_test(wrong_credentials_get_no_token),
		gate_test(wrong_credentials_are_nobodys_for_what_is_open),
		gate_test(a_token_is_for_what_was_asked),
		gate_test(asking_for_more_than_one_may_is_no_error),
		gate_test(several_scopes_come_side_by_side_or_in_one),
		gate_test(a_token_for_the_catalogue_lists_what_its_owner_may_pull),
		gate_test(a_token_for_something_else_lists_nothing),
		gate_test(a_mirrored_name_may_be_asked_for_without_its_host),
		gate_test(all_actions_are_a_star),
		gate_test(nobody_gets_a_token_for_what_is_open),
		gate_test(nobodys_token_is_nothing_where_nothing_is_open),
		gate_test(a_form_does_the_same),
		gate_test(a_wrong_form_is_refused),
		gate_test(an_access_token_makes_no_other),
		gate_test(a_revoked_token_takes_its_access_tokens_with_it),
		gate_test(a_token_ends_with_its_time),
		gate_test(a_forged_token_is_refused),
		gate_test(an_access_token_opens_no_method),
		gate_test(a_token_fits_into_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
