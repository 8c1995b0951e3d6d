/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token_flow.h"

#include "api/access_token.h"
#include "api/form.h"
#include "registry/grammar.h"

#define TOKEN_FLOW_BODY_MAX ((size_t)16 * 1024)
#define TOKEN_FLOW_TEXT_MAX ((size_t)8 * 1024)
#define TOKEN_FLOW_CHALLENGE "Basic realm=\"hearth\", charset=\"UTF-8\""

static void token_flow_add_scope(json_t *scopes, const char *action, struct str name)
{
	char text[TOKEN_SCOPE_MAX + GRAMMAR_NAME_MAX];

	if (json_array_size(scopes) == TOKEN_SCOPES_MAX)
		return;
	(void)snprintf(text, sizeof(text), "%s:" STR_FMT, action, STR_ARG(name));
	(void)json_array_append_new(scopes, json_string(text));
}

static void token_flow_add_actions(json_t *scopes, struct str actions, struct str name)
{
	static const char *const known[] = {"pull", "push", "delete"};
	struct str action;

	while (str_cut(&actions, ',', &action)) {
		bool all = str_equal(action, STR("*"));

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			if (all || str_equal(action, str_of(known[i])))
				token_flow_add_scope(scopes, known[i], name);
		}
	}
}

/* TYPE:NAME:ACTIONS, read from both its ends, since a name may hold a colon. */
static void token_flow_read_scope(struct str text, json_t *scopes)
{
	struct str name = text;
	struct str type;
	size_t end;

	if (str_equal(text, STR("registry:catalog:*"))) {
		token_flow_add_scope(scopes, "list", STR("*"));
		return;
	}
	(void)str_cut(&name, ':', &type);
	if (!name.ptr || !str_starts(type, STR("repository")))
		return;
	for (end = name.len; end > 0 && name.ptr[end - 1] != ':'; end--)
		continue;
	if (end == 0 || !grammar_is_name((struct str){name.ptr, end - 1}))
		return;
	token_flow_add_actions(scopes, str_skip(name, end), (struct str){name.ptr, end - 1});
}

json_t *token_flow_scopes(const struct http_field *fields, size_t count)
{
	json_t *scopes = json_array();

	for (size_t i = 0; i < count; i++) {
		struct str rest = fields[i].value;
		struct str one;

		if (!str_equal(fields[i].name, STR("scope")))
			continue;
		while (str_cut(&rest, ' ', &one))
			token_flow_read_scope(one, scopes);
	}
	return scopes;
}

bool token_flow_admit(const struct http_request *request, struct http_terms *terms,
		      struct http_response *out)
{
	*terms = (struct http_terms){.body_max = TOKEN_FLOW_BODY_MAX, .blocks = true};
	if (request->method == HTTP_POST)
		return true;
	terms->body_max = 0;
	if (request->method == HTTP_GET)
		return true;
	http_add_header(out, "Allow", STR("GET, POST"));
	v2_refuse(out, 405, V2_UNSUPPORTED, "tokens are asked for by GET or POST");
	return false;
}

/* Who asks, by a form's own fields. */
static int token_flow_check_form(struct auth *auth, const struct form *form,
				 char out[static DIGEST_HEX_MAX], struct err *err)
{
	struct str grant = form_find(form, STR("grant_type"));

	if (str_equal(grant, STR("password")))
		return auth_check_key(auth, form_find(form, STR("password")), out, err);
	if (str_equal(grant, STR("refresh_token")))
		return auth_check_key(auth, form_find(form, STR("refresh_token")), out, err);
	return err_set(err, ERR_INVALID, "grant_type: expected password or refresh_token");
}

/* Whose the token is to be, and for what. */
static int token_flow_read(struct auth *auth, const struct http_request *request,
			   struct access_token *out, struct err *err)
{
	const char *field = http_find_header(request, "Authorization");
	auto_form struct form form = {.text = NULL};

	if (request->method != HTTP_POST) {
		out->scopes = token_flow_scopes(request->query, request->query_count);
		return auth_find_key(auth, field, out->of, err);
	}
	if (form_parse(request->body, &form, err) < 0)
		return -1;
	out->scopes = token_flow_scopes(form.fields, form.count);
	return token_flow_check_form(auth, &form, out->of, err);
}

/* Whether anybody may do all of this. */
static bool token_flow_is_open(struct daemon *daemon, const struct http_request *request,
			       const json_t *scopes)
{
	const json_t *scope;
	size_t i;

	json_array_foreach(scopes, i, scope)
	{
		struct v2_call call = {
			.v2 = &daemon->v2,
			.path = {.kind = V2_MANIFEST,
				 .action = V2_PULL,
				 .repository = json_str(scope),
				 .door = str_of(request->door ? request->door : "")}};
		struct str action;

		(void)str_cut(&call.path.repository, ':', &action);
		if (!str_equal(action, STR("pull")) ||
		    !config_is_open(&daemon->cli->config, v2_name(&call)))
			return false;
	}
	return json_array_size(scopes) > 0;
}

static void token_flow_say(const struct access_token *token, struct str text,
			   struct http_response *out)
{
	char when[CLOCK_TEXT_MAX];
	AUTO(json)
	json_t *body =
		json_pack("{s:s, s:s, s:I, s:s}", "token", text.ptr, "access_token", text.ptr,
			  "expires_in", (json_int_t)(ACCESS_TOKEN_MS / 1000), "issued_at",
			  clock_format(token->until_ms - ACCESS_TOKEN_MS, when));
	auto_free char *line = json_dumps(body, JSON_COMPACT);

	if (!line)
		abort();
	http_add_header(out, "Cache-Control", STR("no-store"));
	http_set_body(out, "application/json", str_of(line));
}

static int token_flow_run(struct daemon *daemon, const struct http_request *request,
			  struct http_response *out, struct err *err)
{
	auto_buf struct buf text = BUF_WIPED(TOKEN_FLOW_TEXT_MAX);
	auto_access_token struct access_token token = {.until_ms =
							       clock_now_ms() + ACCESS_TOKEN_MS};

	/* Docker shows a mirror the password that it has for the Hub. */
	if (token_flow_read(daemon->auth, request, &token, err) < 0 &&
	    (err->kind != ERR_UNAUTHORIZED || !token_flow_is_open(daemon, request, token.scopes)))
		return -1;
	if (access_token_make(daemon->store, &token, &text, err) < 0)
		return -1;
	token_flow_say(&token, buf_str(&text), out);
	return 0;
}

void token_flow_answer(struct daemon *daemon, const struct http_request *request,
		       struct http_response *out)
{
	struct err err;

	if (token_flow_run(daemon, request, out, &err) == 0)
		return;
	if (err.kind == ERR_UNAUTHORIZED) {
		metrics_count(daemon->metrics, METRIC_UNAUTHORIZED);
		http_add_header(out, "WWW-Authenticate", STR(TOKEN_FLOW_CHALLENGE));
	}
	v2_refuse_err(out, &err);
}
