/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door_v2.h"

#define DOOR_V2_CHALLENGE "Basic realm=\"hearth\", charset=\"UTF-8\""

static bool door_v2_is_open(const struct config *config, struct str repository)
{
	for (size_t i = 0; i < config->anonymous.count; i++) {
		if (scopes_match(str_of(config->anonymous.at[i]), repository))
			return true;
	}
	return false;
}

/* What the token itself allows; nobody has none. */
static bool door_v2_grants(const struct visitor *visitor, struct str repository,
			   enum v2_action action)
{
	enum token_level needed = action == V2_DELETE ? TOKEN_ADMIN : TOKEN_OPERATE;

	return visitor->who.level >= needed || scopes_allow(visitor->scopes, action, repository);
}

static bool door_v2_is_nobody(const struct door_v2 *visit)
{
	return !visit->visitor.who.token_id[0];
}

/* A v2_call's `may`: repository is its whole name. */
static bool door_v2_may(void *ctx, struct str repository, enum v2_action action)
{
	const struct door_v2 *visit = ctx;
	const struct config *config = &visit->daemon->cli->config;

	if (action == V2_PULL && door_v2_is_open(config, repository))
		return true;
	if (action == V2_LIST && config->anonymous.count > 0)
		return true;
	if (action == V2_NOTHING || action == V2_LIST)
		return !door_v2_is_nobody(visit);
	return door_v2_grants(&visit->visitor, repository, action);
}

static const char *door_v2_scope(enum v2_action action)
{
	return action == V2_PULL ? "pull" : action == V2_PUSH ? "push" : "delete";
}

static void door_v2_challenge(const struct door_v2 *visit, struct http_response *out,
			      const struct err *why)
{
	metrics_count(visit->daemon->metrics, METRIC_UNAUTHORIZED);
	http_add_header(out, "WWW-Authenticate", STR(DOOR_V2_CHALLENGE));
	v2_refuse(out, 401, V2_UNAUTHORIZED, "%s", why->text);
}

static bool door_v2_check(struct door_v2 *visit, struct http_response *out)
{
	const struct v2_path *path = &visit->call.path;
	const char *field = http_find_header(visit->call.request, "Authorization");
	char full[V2_FULL_NAME_MAX];
	struct str name = v2_name(path, full);
	struct err err;

	auto_visitor_release(&visit->visitor);
	if (auth_check_visitor(visit->daemon->auth, field, &visit->visitor, &err) < 0) {
		if (err.kind == ERR_UNAUTHORIZED)
			door_v2_challenge(visit, out, &err);
		else
			v2_refuse_err(out, &err);
		return false;
	}
	if (door_v2_may(visit, name, path->action))
		return true;
	if (door_v2_is_nobody(visit)) {
		(void)err_set(&err, ERR_UNAUTHORIZED,
			      "a token is needed, as the password of any user");
		door_v2_challenge(visit, out, &err);
	} else {
		v2_refuse(out, 403, V2_DENIED, "%s has no scope %s:" STR_FMT,
			  visit->visitor.who.token_id, door_v2_scope(path->action), STR_ARG(name));
	}
	return false;
}

bool door_v2_admit(struct door_v2 *visit, struct daemon *daemon, const struct http_request *request,
		   struct http_terms *terms, struct http_response *out)
{
	visit->daemon = daemon;
	visit->call = (struct v2_call){
		.v2 = &daemon->v2, .request = request, .may = door_v2_may, .may_ctx = visit};
	if (v2_path_parse(request, &visit->call.path, out) < 0 || !door_v2_check(visit, out))
		return false;
	v2_terms(&visit->call, terms);
	return true;
}

/* Who has waited shows its token once more. */
void door_v2_answer(struct door_v2 *visit, struct http_response *out)
{
	if (visit->call.request->waited && !door_v2_check(visit, out))
		return;
	visit->call.response = out;
	v2_answer(&visit->call);
}

void door_v2_done(struct door_v2 *visit)
{
	v2_done(&visit->call);
	auto_visitor_release(&visit->visitor);
}
