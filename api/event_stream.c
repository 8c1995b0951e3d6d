/* SPDX-License-Identifier: Apache-2.0 */
#include "api/event_stream.h"

#include "layers/base/clock.h"
#include "layers/base/embed.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENT_STREAM_COMMENT_MS 15000
#define EVENT_STREAM_BYTES ((size_t)256 * 1024) /* an event with its data, escaped, and more */
#define EVENT_STREAM_ENOUGH ((size_t)16 * 1024) /* what is gathered at once */
#define EVENT_STREAM_LOOKS ((size_t)1000)       /* at events, before it is others' turn */

struct event_stream {
	struct http_stream stream;
	struct store *store;
	uint64_t topic;
	char *agent_id; /* owned; "" for any, here and below */
	char *session_id;
	char *type;
	bool ends;
	uint64_t after;     /* the last event that was looked at */
	int64_t comment_ms; /* when the next comment is due */
	struct buf ready;   /* to be sent */
	size_t sent;        /* of it */
	size_t looks;       /* at events, for what is ready */
};

static bool event_stream_wants(const struct event_stream *events, const struct event *event)
{
	const struct {
		const char *wanted;
		struct str found;
	} filters[] = {
		{events->agent_id, event->agent_id},
		{events->session_id, event->session_id},
		{events->type, event->type},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		if (*filters[i].wanted && !str_equal(str_of(filters[i].wanted), filters[i].found))
			return false;
	}
	return true;
}

static int event_stream_write(struct buf *out, const struct event *event, struct err *err)
{
	AUTO(json) json_t *value = journal_format(event);

	if (buf_addf(out, err, "id: %" PRIu64 "\nevent: " STR_FMT "\ndata: ", event->id,
		     STR_ARG(event->type)) < 0 ||
	    json_format(value, out, err) < 0)
		return -1;
	return buf_add(out, STR("\n\n"), err);
}

/* 1 that is enough for now. */
static int event_stream_visit(void *ctx, const struct event *event, struct err *err)
{
	struct event_stream *events = ctx;

	events->after = event->id;
	events->looks++;
	if (event_stream_wants(events, event) && event_stream_write(&events->ready, event, err) < 0)
		return -1;
	return events->ready.len >= EVENT_STREAM_ENOUGH || events->looks == EVENT_STREAM_LOOKS;
}

/* Send a gap if the client's next event is gone, or it comes from another store. */
static int event_stream_mind_gap(struct event_stream *events, struct meta *meta, struct err *err)
{
	uint64_t after = events->after;
	uint64_t oldest = 1;
	uint64_t newest = 0;

	if (journal_ends(meta, &oldest, &newest, err) < 0)
		return -1;
	if (after + 1 >= oldest && after <= newest)
		return 0;
	events->after = oldest - 1;
	return buf_addf(&events->ready, err,
			"event: gap\ndata: {\"type\":\"gap\",\"after\":\"%" PRIu64
			"\",\"oldest\":\"%" PRIu64 "\"}\n\n",
			after, oldest);
}

static int event_stream_fill(struct event_stream *events, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	events->sent = 0;
	events->looks = 0;
	buf_clear(&events->ready);
	if (meta_begin(events->store, META_READ, &meta, err) < 0 ||
	    event_stream_mind_gap(events, meta, err) < 0 ||
	    journal_read(meta, events->after, event_stream_visit, events, err) < 0)
		return -1;
	if (events->ready.len > 0 || events->ends || clock_monotonic_ms() < events->comment_ms)
		return 0;
	return buf_add(&events->ready, STR(":\n\n"), err);
}

static ssize_t event_stream_send(struct event_stream *events, char *out, size_t max)
{
	size_t left = events->ready.len - events->sent;
	size_t n = left < max ? left : max;

	memcpy(out, events->ready.ptr + events->sent, n);
	events->sent += n;
	events->comment_ms = clock_monotonic_ms() + EVENT_STREAM_COMMENT_MS;
	return (ssize_t)n;
}

static ssize_t event_stream_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
				 bool over, struct http_wait *wait)
{
	struct event_stream *events = container_of(stream, struct event_stream, stream);
	struct err err;

	(void)at;
	if (events->sent == events->ready.len && event_stream_fill(events, &err) < 0) {
		log_warn("events not sent why=\"%s\"", err.text);
		return -1;
	}
	if (events->sent < events->ready.len)
		return event_stream_send(events, out, max);
	*wait = (struct http_wait){events->topic, events->comment_ms};
	if (over || (events->ends && events->looks < EVENT_STREAM_LOOKS))
		return HTTP_STREAM_END;
	if (events->looks == EVENT_STREAM_LOOKS)
		wait->until_ms = clock_monotonic_ms(); /* there may be more */
	return 0;
}

static void event_stream_close(struct http_stream *stream)
{
	struct event_stream *events = container_of(stream, struct event_stream, stream);

	buf_done(&events->ready);
	free(events->agent_id);
	free(events->session_id);
	free(events->type);
	free(events);
}

struct http_stream *event_stream_new(struct store *store, uint64_t after,
				     const struct event_filter *filter, uint64_t topic)
{
	struct event_stream *events = calloc(1, sizeof(*events));

	if (!events)
		abort();
	/* The first comment is due at once: it shows the client that it is connected. */
	*events = (struct event_stream){
		.stream = {event_stream_read, event_stream_close},
		.store = store,
		.topic = topic,
		.agent_id = str_dup(filter->agent_id),
		.session_id = str_dup(filter->session_id),
		.type = str_dup(filter->type),
		.ends = filter->ends,
		.after = after,
		.ready = BUF_INIT(EVENT_STREAM_BYTES),
	};
	return &events->stream;
}
