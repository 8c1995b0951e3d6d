/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door_v2.h"

#include "api/host.h"
#include "api/token_flow.h"

#include <stdio.h>

#define DOOR_V2_CHALLENGE_MAX ((size_t)1024) /* a host, and a repository's name */
#define DOOR_V2_BASIC "Basic realm=\"hearth\", charset=\"UTF-8\""

static bool door_v2_is_open_below(const struct config *config, const char *host)
{
	char start[V2_NAMESPACE_MAX + 2];

	(void)snprintf(start, sizeof(start), "%s/", host);
	for (size_t i = 0; i < config->anonymous.count; i++) {
		if (scopes_match_start(str_of(config->anonymous.at[i]), str_of(start)))
			return true;
	}
	return false;
}

/* Whether anybody may read of each upstream, and so knows them all. */
static bool door_v2_shows_upstreams(const struct config *config)
{
	for (size_t i = 0; i < config->upstream_count; i++) {
		if (!door_v2_is_open_below(config, config->upstreams[i].host))
			return false;
	}
	return config->upstream_count > 0;
}

/* What the token itself allows; nobody has none. */
static bool door_v2_grants(const struct visitor *visitor, struct str repository,
			   enum v2_action action)
{
	enum token_level needed = action == V2_DELETE ? TOKEN_ADMIN : TOKEN_OPERATE;

	return visitor->who.level >= needed || scopes_allow(visitor->scopes, action, repository);
}

/* What his token is narrowed to: the name as it is called here, or as the client has it. */
static bool door_v2_asked(struct door_v2 *visit, struct str repository, enum v2_action action)
{
	const struct visitor *visitor = &visit->visitor;

	if (!visitor->narrowed || scopes_allow(visitor->asked, action, repository))
		return true;
	/* Whose token is for the catalogue is told the names of all that he may pull. */
	if (visit->call.path.action == V2_LIST)
		return scopes_allow(visitor->asked, V2_LIST, repository);
	return str_equal(repository, v2_name(&visit->call)) &&
	       scopes_allow(visitor->asked, action, visit->call.path.repository);
}

enum door_v2_verdict { DOOR_V2_YES, DOOR_V2_UNKNOWN, DOOR_V2_NARROWED, DOOR_V2_DENIED };

static enum door_v2_verdict door_v2_judge(struct door_v2 *visit, struct str repository,
					  enum v2_action action)
{
	const struct config *config = &visit->daemon->cli->config;
	bool nobody = !visit->visitor.who.token_id[0];

	if (action == V2_PULL && config_is_open(config, repository))
		return DOOR_V2_YES;
	if (action == V2_LIST && nobody && config->anonymous.count > 0)
		return DOOR_V2_YES;
	/* A ping is how clients find out that there are tokens. */
	if (action == V2_NOTHING && visit->visitor.narrowed && config->anonymous.count > 0)
		return DOOR_V2_YES;
	if (nobody)
		return DOOR_V2_UNKNOWN;
	if (action == V2_NOTHING)
		return DOOR_V2_YES;
	if (action == V2_LIST)
		return door_v2_asked(visit, repository, V2_LIST) ? DOOR_V2_YES : DOOR_V2_NARROWED;
	if (!door_v2_grants(&visit->visitor, repository, action))
		return DOOR_V2_DENIED;
	return door_v2_asked(visit, repository, action) ? DOOR_V2_YES : DOOR_V2_NARROWED;
}

/* A v2_call's `may`: repository is its whole name. */
static bool door_v2_may(void *ctx, struct str repository, enum v2_action action)
{
	return door_v2_judge(ctx, repository, action) == DOOR_V2_YES;
}

/* For an ns that is no upstream: no login would help, and a container host goes on to the next. */
static bool door_v2_asks_in_vain(const struct door_v2 *visit)
{
	const struct v2_call *call = &visit->call;

	return call->owner == V2_NOBODYS && call->path.ns.len > 0 && call->path.action == V2_PULL &&
	       door_v2_shows_upstreams(&visit->daemon->cli->config);
}

static enum door_v2_verdict door_v2_judge_call(struct door_v2 *visit, struct str name)
{
	enum v2_action action = visit->call.path.action;
	enum door_v2_verdict verdict = door_v2_judge(visit, name, action);

	if (verdict == DOOR_V2_UNKNOWN && door_v2_asks_in_vain(visit))
		return DOOR_V2_YES;
	/* Who pushes asks first what is there. */
	if (verdict != DOOR_V2_YES && action == V2_PULL &&
	    visit->call.request->method == HTTP_HEAD &&
	    door_v2_judge(visit, name, V2_PUSH) == DOOR_V2_YES)
		return DOOR_V2_YES;
	return verdict;
}

static const char *door_v2_actions(enum v2_action action)
{
	return action == V2_PULL ? "pull" : action == V2_PUSH ? "pull,push" : "delete";
}

/* ',scope="..."', or nothing for a ping. */
static int door_v2_add_scope(const struct v2_path *path, struct buf *out, struct err *err)
{
	if (path->action == V2_NOTHING)
		return 0;
	if (path->action == V2_LIST)
		return buf_add(out, STR(",scope=\"registry:catalog:*\""), err);
	return buf_addf(out, err, ",scope=\"repository:" STR_FMT ":%s\"", STR_ARG(path->repository),
			door_v2_actions(path->action));
}

/* What a realm may be made of; a Host has been checked but where it came by the socket. */
static bool door_v2_is_host(const char *host)
{
	return host && *host &&
	       host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789.-_:[]")] == '\0';
}

static bool door_v2_is_secure(const struct door_v2 *visit)
{
	const char *before = http_find_header(visit->call.request, "X-Forwarded-Proto");

	return visit->daemon->cli->config.tls_cert || (before && strcmp(before, "https") == 0);
}

/* error is NULL, or what the token that was shown lacks (RFC 6750, 3.1). */
static void door_v2_challenge(const struct door_v2 *visit, struct http_response *out,
			      const char *error)
{
	auto_buf struct buf text = BUF_INIT(DOOR_V2_CHALLENGE_MAX);
	const char *host = http_find_header(visit->call.request, "Host");
	struct err full;

	metrics_count(visit->daemon->metrics, METRIC_UNAUTHORIZED);
	if (!door_v2_is_host(host) ||
	    buf_addf(&text, &full,
		     "Bearer realm=\"%s://%s" TOKEN_FLOW_PATH "\",service=\"" TOKEN_FLOW_SERVICE
		     "\"",
		     door_v2_is_secure(visit) ? "https" : "http", host) < 0 ||
	    door_v2_add_scope(&visit->call.path, &text, &full) < 0 ||
	    (error && buf_addf(&text, &full, ",error=\"%s\"", error) < 0)) {
		http_add_header(out, "WWW-Authenticate", STR(DOOR_V2_BASIC));
		return;
	}
	http_add_header(out, "WWW-Authenticate", buf_str(&text));
}

/* The name is said as it was asked for: its owner would tell whether there is one of ours. */
static void door_v2_refuse(const struct door_v2 *visit, enum door_v2_verdict verdict,
			   struct http_response *out)
{
	const struct visitor *visitor = &visit->visitor;
	const char *actions = door_v2_actions(visit->call.path.action);

	if (verdict == DOOR_V2_DENIED) {
		v2_refuse(out, 403, V2_DENIED, "%s has no scope for that: %s of " STR_FMT,
			  visitor->who.token_id, actions, STR_ARG(visit->call.path.repository));
		return;
	}
	door_v2_challenge(visit, out, visitor->narrowed ? "insufficient_scope" : NULL);
	v2_refuse(out, 401, V2_UNAUTHORIZED,
		  verdict == DOOR_V2_NARROWED ? "this token was asked for something else"
					      : "log in with a token, as the password of any user");
}

static bool door_v2_check(struct door_v2 *visit, struct http_response *out)
{
	const char *field = http_find_header(visit->call.request, "Authorization");
	enum door_v2_verdict verdict;
	struct str name = v2_name(&visit->call);
	struct err err;

	auto_visitor_release(&visit->visitor);
	if (auth_check_visitor(visit->daemon->auth, field, &visit->visitor, &err) < 0) {
		if (err.kind == ERR_UNAUTHORIZED)
			door_v2_challenge(visit, out, "invalid_token");
		v2_refuse_err(out, &err);
		return false;
	}
	verdict = door_v2_judge_call(visit, name);
	if (verdict == DOOR_V2_YES)
		return true;
	door_v2_refuse(visit, verdict, out);
	return false;
}

bool door_v2_admit(struct door_v2 *visit, struct daemon *daemon, const struct http_request *request,
		   struct http_terms *terms, struct http_response *out)
{
	v2_add_version(out); /* of a refusal */
	visit->daemon = daemon;
	visit->call = (struct v2_call){
		.v2 = &daemon->v2, .request = request, .may = door_v2_may, .may_ctx = visit};
	visit->for_token = str_equal(request->path, STR(TOKEN_FLOW_PATH));
	if (visit->for_token)
		return token_flow_admit(request, terms, out);
	if (v2_path_parse(request, &visit->call.path, out) < 0)
		return false;
	/* A container host may know this registry by a name, and its address by a file. */
	if (host_is_named(visit->call.path.ns, daemon->hosts, daemon->host_count))
		visit->call.path.ns = STR("");
	if (!door_v2_check(visit, out))
		return false;
	v2_terms(&visit->call, terms);
	terms->share = http_topic(str_of(visit->visitor.who.token_id));
	return true;
}

/*
 * Whether the answer of the default upstream says that there is no such repository.
 * Of one that does not exist most list no referrers, and say no more than that.
 */
static bool door_v2_is_nobodys(const struct v2_call *call, const struct http_response *out)
{
	if (call->owner != V2_UPSTREAMS || !call->place.is_new || out->wait.until_ms != 0)
		return false;
	return out->status == 403 || out->status == 404 ||
	       (call->path.kind == V2_REFERRERS && out->status == 200);
}

/*
 * A name that nobody has is answered as one of ours is: else who may not read it
 * would know which names are ours.
 */
static void door_v2_hide(struct door_v2 *visit, struct http_response *out)
{
	enum door_v2_verdict verdict;

	if (!door_v2_is_nobodys(&visit->call, out))
		return;
	verdict = door_v2_judge_call(visit, visit->call.path.repository);
	if (verdict == DOOR_V2_YES)
		return;
	http_response_clear(out);
	v2_add_version(out);
	door_v2_refuse(visit, verdict, out);
}

/* A stream whose bytes are counted as they go. */
struct counted {
	struct http_stream stream;
	struct http_stream *inner; /* owned */
	struct metrics *metrics;
};

static ssize_t door_v2_count(const struct counted *counted, ssize_t n)
{
	if (n > 0)
		metrics_add(counted->metrics, METRIC_REGISTRY_BYTES, (uint64_t)n);
	return n;
}

static ssize_t door_v2_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
			    bool over, struct http_wait *wait)
{
	const struct counted *counted = container_of(stream, struct counted, stream);

	return door_v2_count(counted,
			     counted->inner->read(counted->inner, at, out, max, over, wait));
}

static ssize_t door_v2_read_near(struct http_stream *stream, uint64_t at, char *out, size_t max)
{
	const struct counted *counted = container_of(stream, struct counted, stream);

	return door_v2_count(counted, counted->inner->read_near(counted->inner, at, out, max));
}

static void door_v2_close(struct http_stream *stream)
{
	struct counted *counted = container_of(stream, struct counted, stream);

	counted->inner->close(counted->inner);
	free(counted);
}

static struct http_stream *door_v2_counted(struct metrics *metrics, struct http_stream *inner)
{
	struct counted *counted = malloc(sizeof(*counted));

	if (!counted)
		abort();
	*counted = (struct counted){
		{door_v2_read, door_v2_close, inner->read_near ? door_v2_read_near : NULL},
		inner,
		metrics};
	return &counted->stream;
}

static enum metric door_v2_metric(const struct door_v2 *visit)
{
	static const enum metric metrics[V2_KINDS] = {
		[V2_PING] = METRIC_REGISTRY_PINGS,      [V2_CATALOG] = METRIC_REGISTRY_LISTS,
		[V2_TAGS] = METRIC_REGISTRY_LISTS,      [V2_REFERRERS] = METRIC_REGISTRY_LISTS,
		[V2_BLOB] = METRIC_REGISTRY_BLOBS,      [V2_MANIFEST] = METRIC_REGISTRY_MANIFESTS,
		[V2_UPLOADS] = METRIC_REGISTRY_UPLOADS, [V2_UPLOAD] = METRIC_REGISTRY_UPLOADS,
	};

	return visit->for_token ? METRIC_REGISTRY_TOKENS : metrics[visit->call.path.kind];
}

/* Who has waited shows its token once more. */
void door_v2_answer(struct door_v2 *visit, struct http_response *out)
{
	if (visit->for_token) {
		token_flow_answer(visit->daemon, visit->call.request, out);
		return;
	}
	if (visit->call.request->waited && !door_v2_check(visit, out))
		return;
	visit->call.response = out;
	v2_answer(&visit->call);
	door_v2_hide(visit, out);
	if (out->stream)
		out->stream = door_v2_counted(visit->daemon->metrics, out->stream);
}

bool door_v2_changes(const struct door_v2 *visit)
{
	const struct v2_path *path = &visit->call.path;

	return path->action == V2_DELETE || (path->action == V2_PUSH && path->kind == V2_MANIFEST);
}

void door_v2_done(struct door_v2 *visit, const struct http_response *out)
{
	if (visit->daemon) {
		metrics_count(visit->daemon->metrics, door_v2_metric(visit));
		metrics_add(visit->daemon->metrics, METRIC_REGISTRY_BYTES, out->body.len);
	}
	v2_done(&visit->call);
	auto_visitor_release(&visit->visitor);
}
