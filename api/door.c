/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door.h"

#include "api/cors.h"
#include "api/door_v2.h"
#include "api/host.h"
#include "api/ready.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"

#define DOOR_CHALLENGE "Bearer realm=\"hearth\""

enum place { PLACE_NONE, PLACE_HEALTH, PLACE_READY, PLACE_METRICS, PLACE_METHOD, PLACE_V2 };

/* A request's state. */
struct visit {
	enum place place;
	int64_t began_us;
	struct call call; /* of a method; who is known for all that ask for a token */
	struct door_v2 v2;
};

static enum place door_place(struct str path)
{
	if (str_starts(path, STR("/v1/")))
		return PLACE_METHOD;
	if (str_starts(path, STR("/v2/")) || str_equal(path, STR("/v2")))
		return PLACE_V2;
	if (str_equal(path, STR("/healthz")))
		return PLACE_HEALTH;
	if (str_equal(path, STR("/readyz")))
		return PLACE_READY;
	if (str_equal(path, STR("/metrics")))
		return PLACE_METRICS;
	return PLACE_NONE;
}

static bool door_is_read(const struct http_request *request)
{
	return request->method == HTTP_GET || request->method == HTTP_HEAD;
}

static int door_check_host(const struct door *door, const struct http_request *request,
			   struct err *err)
{
	const struct daemon *daemon = door->daemon;
	const char *host = http_find_header(request, "Host");

	if (request->by_socket || !host ||
	    host_is_ours(str_of(host), daemon->hosts, daemon->host_count))
		return 0;
	return err_set(err, ERR_DENIED,
		       "Host %.100s is no name of this daemon: use its address, or start it with "
		       "--host NAME",
		       host);
}

static int door_check_token(const struct door *door, const struct http_request *request,
			    enum token_level level, struct identity *who, struct err *err)
{
	if (auth_check(door->daemon->auth, http_find_header(request, "Authorization"), who, err) <
	    0)
		return -1;
	if (who->level >= level)
		return 0;
	return err_set(err, ERR_DENIED, "this needs a token with the scope %s, and %s has %s",
		       token_level_name(level), who->token_id,
		       who->level == TOKEN_NOTHING ? "none such" : token_level_name(who->level));
}

/* Which method it is, before anything is read of its body. */
static int door_find_method(const struct door *door, const struct http_request *request,
			    struct visit *visit, struct err *err)
{
	struct str name = str_skip(request->path, sizeof("/v1/") - 1);
	const struct route *route = route_find(door->routes, name);

	if (!route)
		return route_refuse(door->routes, name, err);
	visit->call.route = route;
	return door_check_token(door, request, route->level, &visit->call.who, err);
}

/* ERR_NO_METHOD where the verb does not fit: *out_allow is what does. */
static int door_check_verb(const struct http_request *request, const struct visit *visit,
			   const char **out_allow, struct err *err)
{
	bool by_post = visit->place == PLACE_METHOD;
	bool by_get = !by_post || (visit->call.route->kind != ROUTE_WRITE);

	if ((by_post && request->method == HTTP_POST) || (by_get && door_is_read(request)))
		return 0;
	*out_allow = !by_get ? "POST" : by_post ? "GET, HEAD, POST" : "GET, HEAD";
	return err_set(err, ERR_INVALID, STR_FMT " is asked for by %s", STR_ARG(request->path),
		       *out_allow);
}

static int door_check(const struct door *door, const struct http_request *request,
		      struct visit *visit, struct err *err)
{
	struct identity *who = &visit->call.who;

	if (visit->place == PLACE_HEALTH || visit->place == PLACE_READY)
		return 0;
	if (door_check_host(door, request, err) < 0)
		return -1;
	if (visit->place == PLACE_METHOD)
		return door_find_method(door, request, visit, err);
	if (door_check_token(door, request, TOKEN_READ, who, err) < 0)
		return -1;
	if (visit->place == PLACE_METRICS)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "there is nothing at %.*s",
		       (int)(request->path.len < 100 ? request->path.len : 100), request->path.ptr);
}

static void door_set_terms(const struct visit *visit, struct http_terms *terms)
{
	const struct route *route = visit->call.route;

	terms->body_max = 0;
	terms->blocks = visit->place == PLACE_READY || visit->place == PLACE_METRICS;
	if (visit->place != PLACE_METHOD)
		return;
	terms->body_max = route->body_max ? route->body_max : ROUTE_BODY_MAX;
	terms->streamed = route->streamed;
	terms->share = http_topic(str_of(visit->call.who.token_id));
	terms->blocks = route->kind != ROUTE_READ;
}

static const struct config *door_config(const struct door *door)
{
	return &door->daemon->cli->config;
}

static void door_answer_preflight(const struct door *door, const struct http_request *request,
				  struct http_response *out)
{
	struct err err;

	if (door_check_host(door, request, &err) < 0 ||
	    cors_answer_preflight(door_config(door), request, out, &err) < 0)
		route_write_error(&err, NULL, out);
	cors_add(door_config(door), request, out);
}

static void door_write_refusal(const struct door *door, const struct err *why,
			       struct http_response *out)
{
	route_write_error(why, NULL, out);
	if (why->kind != ERR_UNAUTHORIZED)
		return;
	metrics_count(door->daemon->metrics, METRIC_UNAUTHORIZED);
	http_add_header(out, "WWW-Authenticate", STR(DOOR_CHALLENGE));
}

/* Errors are the registry's, also those of the checks that all requests pass. */
static bool door_admit_v2(const struct door *door, struct http_request *request,
			  struct http_terms *terms, struct http_response *out)
{
	struct visit *visit = request->state;
	struct err err;
	bool taken = false;

	if (door_check_host(door, request, &err) < 0)
		v2_refuse_err(out, &err);
	else
		taken = door_v2_admit(&visit->v2, door->daemon, request, terms, out);
	memcpy(visit->call.who.token_id, visit->v2.visitor.who.token_id, TOKEN_ID_MAX);
	if (!taken)
		cors_add(door_config(door), request, out);
	return taken;
}

static bool door_admit(struct http_handler *handler, struct http_request *request,
		       struct http_terms *terms, struct http_response *out)
{
	struct door *door = container_of(handler, struct door, handler);
	struct visit *visit = calloc(1, sizeof(*visit));
	const char *allow = NULL;
	struct err err;

	if (!visit)
		abort();
	request->state = visit;
	visit->began_us = clock_monotonic_us();
	visit->place = door_place(request->path);
	visit->call = (struct call){.daemon = door->daemon, .request = request, .response = out};
	if (cors_is_preflight(request)) {
		door_answer_preflight(door, request, out);
		return false;
	}
	if (visit->place == PLACE_V2)
		return door_admit_v2(door, request, terms, out);
	if (door_check(door, request, visit, &err) == 0 &&
	    door_check_verb(request, visit, &allow, &err) == 0) {
		door_set_terms(visit, terms);
		return true;
	}
	door_write_refusal(door, &err, out);
	if (allow) {
		out->status = 405;
		http_add_header(out, "Allow", str_of(allow));
	}
	cors_add(door_config(door), request, out);
	return false;
}

/*
 * A stream that goes on as long as its token is good: it is looked at again
 * before each piece, since a stream may outlive it.
 */
struct guarded {
	struct http_stream stream;
	struct http_stream *inner; /* owned */
	const struct door *door;
	const struct http_request *request;
	const struct visit *visit;
};

static ssize_t door_read_guarded(struct http_stream *stream, uint64_t at, char *out, size_t max,
				 bool over, struct http_wait *wait)
{
	const struct guarded *guarded = container_of(stream, struct guarded, stream);
	const struct visit *visit = guarded->visit;
	struct identity who;
	struct err err;

	if (door_check_token(guarded->door, guarded->request, visit->call.route->level, &who,
			     &err) < 0) {
		log_info("stream cut token=%s why=\"%s\"", visit->call.who.token_id, err.text);
		return -1;
	}
	return guarded->inner->read(guarded->inner, at, out, max, over, wait);
}

static void door_close_guarded(struct http_stream *stream)
{
	struct guarded *guarded = container_of(stream, struct guarded, stream);

	guarded->inner->close(guarded->inner);
	free(guarded);
}

static struct http_stream *door_guard(const struct door *door, const struct http_request *request,
				      struct http_stream *inner)
{
	struct guarded *guarded = malloc(sizeof(*guarded));

	if (!guarded)
		abort();
	*guarded = (struct guarded){
		{door_read_guarded, door_close_guarded}, inner, door, request, request->state};
	return &guarded->stream;
}

/* Who has waited shows its token once more. */
static void door_answer_method(const struct door *door, const struct http_request *request,
			       struct http_response *out)
{
	struct visit *visit = request->state;
	struct err err;

	if (request->waited &&
	    door_check_token(door, request, visit->call.route->level, &visit->call.who, &err) < 0) {
		door_write_refusal(door, &err, out);
		return;
	}
	route_answer(&visit->call);
	if (out->stream)
		out->stream = door_guard(door, request, out->stream);
}

static void door_answer_metrics(const struct door *door, struct http_response *out)
{
	auto_buf struct buf page = BUF_INIT(METRICS_PAGE_MAX);
	struct err err;

	if (metrics_page(door->daemon->metrics, &page, &err) < 0)
		route_write_error(&err, NULL, out);
	else
		http_set_body(out, "text/plain; version=0.0.4", buf_str(&page));
}

static void door_answer_ready(const struct door *door, struct http_response *out)
{
	struct err err;

	if (ready_check(door->daemon->store, door->daemon->v2.uploads, &err) < 0)
		route_write_error(&err, NULL, out);
	else
		http_set_body(out, "text/plain", STR("ready\n"));
}

static void door_answer(struct http_handler *handler, struct http_request *request,
			struct http_response *out)
{
	struct door *door = container_of(handler, struct door, handler);
	struct visit *visit = request->state;

	visit->call.response = out;
	switch (visit->place) {
	case PLACE_METHOD:
		door_answer_method(door, request, out);
		break;
	case PLACE_V2:
		door_v2_answer(&visit->v2, out);
		break;
	case PLACE_METRICS:
		door_answer_metrics(door, out);
		break;
	case PLACE_READY:
		door_answer_ready(door, out);
		break;
	case PLACE_HEALTH:
		http_set_body(out, "text/plain", STR("ok\n"));
		break;
	case PLACE_NONE:
		break;
	}
	if (out->wait.until_ms == 0)
		cors_add(door_config(door), request, out);
}

static void door_count(struct metrics *metrics, const struct visit *visit,
		       const struct http_response *out)
{
	const struct route *route = visit->call.route;
	bool writes = route && route->kind == ROUTE_WRITE;

	metrics_count(metrics, !route ? METRIC_OTHERS : writes ? METRIC_WRITES : METRIC_READS);
	if (out->status >= 400)
		metrics_count(metrics, out->status >= 500 ? METRIC_FAILED : METRIC_REFUSED);
	/* Time that a client waits or reads is not ours, and is not measured. */
	if (route && !out->stream && !visit->call.request->waited)
		metrics_time(metrics, writes ? METRIC_WRITE_TIME : METRIC_READ_TIME,
			     clock_monotonic_us() - visit->began_us);
}

static void door_log(const struct http_request *request, const struct visit *visit,
		     const struct http_response *out)
{
	bool writes = (visit->call.route && visit->call.route->kind == ROUTE_WRITE) ||
		      door_v2_changes(&visit->v2);

	log_write(writes ? LOG_INFO : LOG_DEBUG, LOG_MODULE,
		  "request answered verb=%s path=%.200s status=%u us=%lld token=%s",
		  http_method_name(request->method), request->path.ptr, out->status,
		  (long long)(clock_monotonic_us() - visit->began_us), visit->call.who.token_id);
}

static void door_done(struct http_handler *handler, struct http_request *request,
		      const struct http_response *out)
{
	struct door *door = container_of(handler, struct door, handler);
	struct visit *visit = request->state;

	if (!visit)
		return; /* it was refused before it came here */
	door_count(door->daemon->metrics, visit, out);
	door_log(request, visit, out);
	route_clear(&visit->call);
	door_v2_done(&visit->v2, out);
	free(visit);
}

static void door_refuse(struct http_handler *handler, const struct http_request *request,
			const struct err *why, struct http_response *out)
{
	const struct door *door = container_of(handler, struct door, handler);

	if (door_place(request->path) == PLACE_V2)
		v2_refuse_err(out, why);
	else
		route_write_error(why, NULL, out);
	cors_add(door_config(door), request, out);
}

void door_init(struct door *door, struct daemon *daemon, const struct routes *const *routes)
{
	*door = (struct door){
		.handler = {door_admit, door_answer, door_done, door_refuse},
		.daemon = daemon,
		.routes = routes,
	};
}
