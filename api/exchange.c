/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - how a request becomes an answer.
 *
 *	state      what is done next, in the thread that serves the connection
 *	RECEIVING  the body is taken: gathered, streamed or, where it is refused, read over
 *	ASKING     the handler is asked: here, or by a job where that may block
 *	RUNNING    a job is at it; the connection is suspended
 *	ANSWERED   the response is there: sent, or waited with
 *	WAITING    suspended until the topic changes; then ASKING again
 *	SENT       libmicrohttpd has it
 *
 * libmicrohttpd closes a connection whose request is answered in the first call
 * for it. So that call only takes it, unless it is to be closed.
 *
 * A job of a streamed body may outlive the connection, and a stream's last call
 * comes after the request's: an exchange is counted.
 */
#include "api/exchange_priv.h"

#include "layers/base/clock.h"

#include <assert.h>

#define EXCHANGE_PROGRESS ((size_t)64 * 1024) /* of a streamed body, in body_ms */

void exchange_unref(struct exchange *exchange)
{
	struct server *server = exchange->server;
	struct http_handler *handler = server->options.handler;

	if (atomic_fetch_sub(&exchange->refs, 1) > 1)
		return;
	if (!exchange->sent)
		exchange->response.status = 0;
	handler->done(handler, &exchange->request, &exchange->response);
	feed_done(&exchange->feed);
	http_response_clear(&exchange->response);
	buf_done(&exchange->body);
	if (exchange->inlet)
		inlet_done(exchange->inlet);
	free(exchange->inlet);
	free(exchange->path);
	free(exchange->query);
	free(exchange->headers);
	free(exchange);
	if (atomic_fetch_sub(&server->requests, 1) == 1 && atomic_load(&server->draining)) {
		lock_take(&server->lock);
		(void)pthread_cond_signal(&server->quiet);
		lock_drop(&server->lock);
	}
}

void exchange_suspend(struct waiter *waiter)
{
	MHD_suspend_connection(container_of(waiter, struct exchange, waiter)->connection);
}

void exchange_resume(struct waiter *waiter)
{
	MHD_resume_connection(container_of(waiter, struct exchange, waiter)->connection);
}

static void exchange_set_deadline(struct exchange *exchange, int64_t ms)
{
	atomic_store_explicit(&exchange->link->until_ms,
			      ms == WATCH_NEVER ? ms : clock_monotonic_ms() + ms,
			      memory_order_relaxed);
}

/* The server's own words. */
static void exchange_refuse(struct exchange *exchange, enum err_kind kind, const char *why)
{
	struct http_handler *handler = exchange->server->options.handler;
	struct err err;

	(void)err_set(&err, kind, "%s", why);
	http_response_clear(&exchange->response);
	handler->refuse(handler, &exchange->request, &err, &exchange->response);
}

static const char *exchange_find_header(const struct http_request *request, const char *name)
{
	const struct exchange *exchange =
		container_of(drop_const(request), struct exchange, request);

	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static const char *exchange_find_copy(const struct http_request *request, const char *name)
{
	const struct exchange *exchange =
		container_of(drop_const(request), struct exchange, request);

	for (size_t i = 0; i < exchange->header_count; i++) {
		if (strcasecmp(exchange->headers[i].name.ptr, name) == 0)
			return exchange->headers[i].value.ptr;
	}
	return NULL;
}

static struct exchange *exchange_new(struct server_door *door, struct MHD_Connection *connection,
				     const char *url, const char *method)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	const union MHD_ConnectionInfo *link =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (!exchange)
		abort();
	exchange->server = door->server;
	exchange->connection = connection;
	exchange->link = link->socket_context;
	exchange->waiter.fd = exchange->link->fd;
	exchange->path = exchange_copy_path(url);
	exchange->response = HTTP_RESPONSE_INIT;
	exchange->request = (struct http_request){
		.method = http_method_parse(method),
		.path = str_of(exchange->path),
		.by_socket = door->by_socket,
		.door = door->name,
		.find_header = exchange_find_header,
	};
	exchange->query = exchange_copy_fields(connection, MHD_GET_ARGUMENT_KIND,
					       &exchange->request.query_count);
	exchange->request.query = exchange->query;
	atomic_init(&exchange->state, EXCHANGE_RECEIVING);
	atomic_init(&exchange->refs, 1);
	atomic_fetch_add(&door->server->requests, 1);
	return exchange;
}

/* The answer is made. */

static void exchange_ask(struct exchange *exchange)
{
	struct http_handler *handler = exchange->server->options.handler;

	handler->answer(handler, &exchange->request, &exchange->response);
	if (exchange->inlet)
		inlet_abandon(exchange->inlet);
	atomic_store(&exchange->state, EXCHANGE_ANSWERED);
}

static void exchange_end_stream(struct exchange *exchange)
{
	if (exchange->streams)
		atomic_fetch_sub(&exchange->server->bodies, 1);
	exchange->streams = false;
}

static void exchange_run(struct pool_job *job)
{
	struct exchange *exchange = container_of(job, struct exchange, job);

	exchange_ask(exchange);
	exchange_end_stream(exchange);
	watch_wake_one(exchange->server->watch, &exchange->waiter);
	exchange_unref(exchange);
}

static void exchange_begin(struct exchange *exchange)
{
	struct server *server = exchange->server;

	exchange->mark = watch_mark(server->watch);
	http_response_clear(&exchange->response);
	if (!exchange->terms.blocks) {
		exchange_ask(exchange);
		return;
	}
	atomic_store(&exchange->state, EXCHANGE_RUNNING);
	atomic_fetch_add(&exchange->refs, 1);
	exchange->job.run = exchange_run;
	exchange->job.owner = (struct pool_owner){
		.share = exchange->inlet ? exchange->terms.share : 0,
		.origin = exchange_read_origin(exchange->connection),
	};
	if (pool_submit(exchange->inlet ? server->body_pool : server->pool, &exchange->job))
		return;
	exchange_refuse(exchange, ERR_BUSY, "too much is waiting to be done; try again");
	if (exchange->inlet)
		inlet_abandon(exchange->inlet);
	exchange_end_stream(exchange);
	atomic_store(&exchange->state, EXCHANGE_ANSWERED);
	exchange_unref(exchange);
}

static bool exchange_wait(struct exchange *exchange)
{
	if (exchange->request.over) {
		exchange_refuse(exchange, ERR_OS, "no answer was made in time");
		return false;
	}
	exchange->waiter.job = false;
	exchange->waiter.wait = exchange->response.wait;
	atomic_store(&exchange->state, EXCHANGE_WAITING);
	return watch_park(exchange->server->watch, &exchange->waiter, exchange->mark);
}

/* Do what comes next, until the answer is sent or is waited for. */
static enum MHD_Result exchange_proceed(struct exchange *exchange)
{
	while (true) {
		switch ((enum exchange_state)atomic_load(&exchange->state)) {
		case EXCHANGE_RECEIVING:
		case EXCHANGE_ASKING:
			exchange_begin(exchange);
			break;
		case EXCHANGE_RUNNING:
			if (exchange_await_job(exchange))
				return MHD_YES;
			break;
		case EXCHANGE_ANSWERED:
			if (exchange->response.wait.until_ms == 0)
				return exchange_send(exchange);
			if (exchange_wait(exchange))
				return MHD_YES;
			break;
		case EXCHANGE_WAITING:
			if (exchange->waiter.why == WATCH_GONE)
				return MHD_NO;
			exchange->request.waited = true;
			exchange->request.over = exchange->waiter.why == WATCH_DUE ||
						 exchange->waiter.why == WATCH_STOP;
			atomic_store(&exchange->state, EXCHANGE_ASKING);
			break;
		case EXCHANGE_SENT:
			return MHD_YES;
		}
	}
}

/* The body comes in. */

static void exchange_has_room(struct inlet *inlet)
{
	struct exchange *exchange = inlet->ctx;

	watch_wake_one(exchange->server->watch, &exchange->waiter);
}

/* From now on a job reads what comes; until one has begun it stays with the client. */
static void exchange_begin_stream(struct exchange *exchange)
{
	exchange->headers = exchange_copy_fields(exchange->connection, MHD_HEADER_KIND,
						 &exchange->header_count);
	exchange->request.find_header = exchange_find_copy;
	exchange->inlet = malloc(sizeof(*exchange->inlet));
	if (!exchange->inlet)
		abort();
	inlet_init(exchange->inlet, exchange_has_room, exchange);
	exchange->streams = true;
	if (atomic_fetch_add(&exchange->server->bodies, 1) < SERVER_BODIES_MAX)
		inlet_begin(exchange->inlet); /* a thread is free for it */
	exchange->request.stream = &exchange->inlet->source;
	exchange->terms.blocks = true;
	exchange_begin(exchange);
}

/* Take what there is room for, and suspend before the rest; how much is left. */
static size_t exchange_stream(struct exchange *exchange, struct str bytes)
{
	if (exchange->came >= EXCHANGE_PROGRESS) {
		exchange->came = 0;
		exchange_set_deadline(exchange, exchange->server->options.body_ms);
	}
	while (bytes.len > 0) {
		size_t n = inlet_offer(exchange->inlet, bytes);

		bytes = str_skip(bytes, n);
		exchange->came += n;
		if (bytes.len == 0)
			break;
		exchange->came = EXCHANGE_PROGRESS; /* the client's time begins anew */
		exchange_set_deadline(exchange, WATCH_NEVER);
		if (exchange_await_job(exchange))
			break;
	}
	return bytes.len;
}

static bool exchange_is_read_over(const struct exchange *exchange)
{
	return exchange->refused ||
	       (exchange->inlet && atomic_load(&exchange->state) == EXCHANGE_ANSWERED);
}

static enum MHD_Result exchange_receive(struct exchange *exchange, const char *upload,
					size_t *upload_size)
{
	struct str bytes = {upload, *upload_size};
	struct err err;

	*upload_size = 0;
	if (exchange_is_read_over(exchange)) {
		exchange->came += bytes.len;
		return exchange->came > SERVER_SWALLOW_BYTES ? MHD_NO : MHD_YES;
	}
	if (exchange->inlet) {
		*upload_size = exchange_stream(exchange, bytes);
		return MHD_YES;
	}
	if (bytes.len > exchange->terms.body_max - exchange->body.len ||
	    buf_add(&exchange->body, bytes, &err) < 0) {
		exchange->refused = true;
		exchange_refuse(exchange, ERR_LIMIT, "the request's body is too large");
		atomic_store(&exchange->state, EXCHANGE_ANSWERED);
	}
	return MHD_YES;
}

/* The request's line and its headers. */
static size_t exchange_head_bytes(const struct exchange *exchange)
{
	return MHD_get_connection_info(exchange->connection,
				       MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
		->header_size;
}

static bool exchange_admit(struct exchange *exchange, uint64_t length)
{
	struct http_handler *handler = exchange->server->options.handler;
	struct http_request *request = &exchange->request;
	struct http_terms *terms = &exchange->terms;

	if (exchange_head_bytes(exchange) > SERVER_HEAD_BYTES) {
		exchange_refuse(exchange, ERR_LIMIT, "the request's headers are too large");
		exchange->response.status = 431; /* RFC 6585, section 5 */
		return false;
	}
	if (request->query_count > HTTP_QUERY_MAX) {
		exchange_refuse(exchange, ERR_LIMIT, "too many parameters in the URL");
		return false;
	}
	if (!exchange_unescape_fields(exchange->query, request->query_count)) {
		exchange_refuse(exchange, ERR_INVALID, "a % in the URL's query begins no escape");
		return false;
	}
	if (!handler->admit(handler, request, terms, &exchange->response))
		return false;
	exchange->body = BUF_INIT(terms->body_max + 1); /* a buf has to have room for something */
	if (terms->streamed || length == UINT64_MAX || length <= terms->body_max)
		return true;
	exchange_refuse(exchange, ERR_LIMIT, "the request's body is too large");
	return false;
}

static enum MHD_Result exchange_first(struct exchange *exchange, const struct exchange_line *line)
{
	uint64_t length;
	const char *fault = exchange_read_frame(line, &length);

	if (fault) {
		exchange->refused = true;
		exchange_refuse(exchange, ERR_INVALID, fault);
		/* The connection's last: nobody knows where the next request would begin. */
		http_add_header(&exchange->response, "Connection", STR("close"));
		return exchange_send(exchange);
	}
	exchange_set_deadline(exchange,
			      length > 0 ? exchange->server->options.body_ms : WATCH_NEVER);
	if (exchange_admit(exchange, length)) {
		if (exchange->terms.streamed)
			exchange_begin_stream(exchange);
		return MHD_YES;
	}
	exchange->refused = true;
	atomic_store(&exchange->state, EXCHANGE_ANSWERED);
	if (length == 0 ||
	    (length <= SERVER_SWALLOW_BYTES && !http_find_header(&exchange->request, "Expect")))
		return MHD_YES;
	return exchange_send(exchange);
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd hands over eight things */
enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *upload,
				size_t *upload_size, void **slot)
{
	const struct exchange_line line = {connection, method, url, version};
	struct exchange *exchange = *slot;

	if (!exchange) {
		exchange = exchange_new(cls, connection, url, method);
		*slot = exchange;
		return exchange_first(exchange, &line);
	}
	if (*upload_size > 0)
		return exchange_receive(exchange, upload, upload_size);
	if (exchange->inlet)
		inlet_finish(exchange->inlet);
	exchange->request.body = buf_str(&exchange->body);
	exchange_set_deadline(exchange, WATCH_NEVER);
	return exchange_proceed(exchange);
}

void exchange_completed(void *cls, struct MHD_Connection *connection, void **slot,
			enum MHD_RequestTerminationCode why)
{
	struct exchange *exchange = *slot;

	(void)cls;
	(void)connection;
	(void)why;
	if (!exchange)
		return;
	*slot = NULL;
	if (exchange->inlet)
		inlet_fail(exchange->inlet, ERR_CANCELLED, "the client has gone");
	exchange_set_deadline(exchange, exchange->server->options.idle_ms);
	exchange_unref(exchange);
}

void exchange_connected(void *cls, struct MHD_Connection *connection, void **slot,
			enum MHD_ConnectionNotificationCode what)
{
	struct server *server = ((struct server_door *)cls)->server;
	struct link *link = *slot;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		watch_drop_link(server->watch, link);
		free(link);
		return;
	}
	link = calloc(1, sizeof(*link));
	if (!link)
		abort();
	link->fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	atomic_init(&link->until_ms, clock_monotonic_ms() + server->options.header_ms);
	*slot = link;
	watch_add_link(server->watch, link);
}
