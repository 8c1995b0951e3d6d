/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_answer.c - how an answer goes out: a body that is there whole, or a
 * stream, of which pieces are read by threads that serve nobody else.
 */
#include "api/exchange_priv.h"

#define EXCHANGE_BLOCK ((size_t)64 * 1024) /* of a stream of known length */
#define EXCHANGE_BLOCK_NEAR \
	((size_t)112 * 1024) /* of what is copied from memory; below mmap's threshold */
#define EXCHANGE_BLOCK_MANY ((size_t)16 * 1024) /* of each where many stream */
#define EXCHANGE_MANY ((size_t)32)
#define EXCHANGE_BLOCK_UNKNOWN ((size_t)1024) /* of others: in the connection's own memory */
#define EXCHANGE_PIECE ((uint64_t)16 * 1024)  /* of those, as they are read */

static void exchange_stream_done(void *cls)
{
	struct exchange *exchange = cls;

	atomic_fetch_sub(&exchange->server->sending, 1);
	exchange_unref(exchange);
}

bool exchange_await_job(struct exchange *exchange)
{
	exchange->waiter.job = true;
	exchange->waiter.wait = (struct http_wait){.until_ms = WATCH_NEVER};
	return watch_park(exchange->server->watch, &exchange->waiter, 0);
}

static void exchange_has_piece(struct feed *feed)
{
	struct exchange *exchange = container_of(feed, struct exchange, feed);

	watch_wake_one(exchange->server->watch, &exchange->waiter);
	exchange_unref(exchange);
}

/* False: no thread can read. */
static bool exchange_begin_read(struct exchange *exchange)
{
	struct server *server = exchange->server;
	struct feed *feed = &exchange->feed;
	uint64_t length = exchange->response.stream_bytes;
	bool known = length != HTTP_BYTES_UNKNOWN;
	uint64_t left = known ? length - feed->at : EXCHANGE_PIECE;
	size_t piece = known && exchange->block < FEED_PIECE ? exchange->block : FEED_PIECE;

	feed->over = feed->over || exchange->waiter.why == WATCH_STOP;
	exchange->mark = watch_mark(server->watch);
	atomic_fetch_add(&exchange->refs, 1);
	if (feed_begin(feed, server->stream_pool, left < piece ? (size_t)left : piece))
		return true;
	exchange_unref(exchange);
	return false;
}

/* Suspend until there is more of the stream; false where there is already. */
static bool exchange_await_more(struct exchange *exchange)
{
	exchange->waiter.job = false;
	exchange->waiter.wait = exchange->feed.wait;
	feed_clear(&exchange->feed);
	return watch_park(exchange->server->watch, &exchange->waiter, exchange->mark);
}

/* What is at hand; else it is read, and comes back as 0. */
static ssize_t exchange_take_near(struct exchange *exchange, char *out, size_t max)
{
	ssize_t n = feed_take_near(&exchange->feed, out, max);

	if (n < 0 || (n == 0 && !exchange_begin_read(exchange)))
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n;
}

static ssize_t exchange_stream_read(void *cls, uint64_t at, char *out, size_t max)
{
	struct exchange *exchange = cls;
	struct feed *feed = &exchange->feed;
	ssize_t n;

	(void)at;
	while (exchange->waiter.why != WATCH_GONE) {
		switch ((enum feed_state)atomic_load(&feed->state)) {
		case FEED_IDLE:
			n = exchange_take_near(exchange, out, max);
			if (n != 0)
				return n;
			break;
		case FEED_READING:
			if (exchange_await_job(exchange))
				return 0;
			break;
		case FEED_READ:
			if (feed->len > 0)
				return feed_take(feed, out, max);
			if (feed->len == HTTP_STREAM_END || (feed->len == 0 && feed->over))
				return MHD_CONTENT_READER_END_OF_STREAM;
			if (feed->len < 0)
				return MHD_CONTENT_READER_END_WITH_ERROR;
			if (exchange_await_more(exchange))
				return 0;
			break;
		}
	}
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Large where few stream, since each of them costs a system call or more. */
static size_t exchange_block(const struct exchange *exchange, bool near, uint64_t length)
{
	size_t block = near ? EXCHANGE_BLOCK_NEAR : EXCHANGE_BLOCK;

	if (exchange->request.method == HTTP_HEAD)
		return 1;
	if (atomic_load(&exchange->server->sending) > EXCHANGE_MANY)
		block = EXCHANGE_BLOCK_MANY;
	return length < block ? (size_t)length + 1 : block;
}

static struct MHD_Response *exchange_make_response(struct exchange *exchange)
{
	struct http_response *response = &exchange->response;
	bool known = response->stream_bytes != HTTP_BYTES_UNKNOWN;

	/* libmicrohttpd ends what has no length in chunks, be it an answer to HEAD. */
	if (response->stream && (known || exchange->request.method != HTTP_HEAD)) {
		atomic_fetch_add(&exchange->refs, 1);
		exchange->waiter.why = WATCH_CHANGED;
		exchange->feed =
			(struct feed){.stream = response->stream, .read = exchange_has_piece};
		atomic_fetch_add(&exchange->server->sending, 1);
		exchange->block = !known ? EXCHANGE_BLOCK_UNKNOWN
					 : exchange_block(exchange, response->stream->read_near,
							  response->stream_bytes);
		return MHD_create_response_from_callback(
			known ? response->stream_bytes : MHD_SIZE_UNKNOWN, exchange->block,
			exchange_stream_read, exchange, exchange_stream_done);
	}
	/* The exchange, and with it the body, lives until the request is completed. */
	return MHD_create_response_from_buffer(response->body.len, response->body.ptr,
					       MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result exchange_send(struct exchange *exchange)
{
	const struct http_response *response = &exchange->response;
	struct MHD_Response *sent = exchange_make_response(exchange);
	enum MHD_Result result;

	if (!sent)
		abort();
	for (size_t i = 0; i < response->header_count; i++)
		(void)MHD_add_response_header(sent, response->headers[i].name,
					      response->headers[i].value);
	if (atomic_load(&exchange->server->draining))
		(void)MHD_add_response_header(sent, MHD_HTTP_HEADER_CONNECTION, "close");
	atomic_store_explicit(&exchange->link->until_ms, WATCH_SENDING, memory_order_relaxed);
	atomic_store(&exchange->state, EXCHANGE_SENT);
	exchange->sent = true;
	result = MHD_queue_response(exchange->connection, response->status, sent);
	MHD_destroy_response(sent);
	return result;
}
