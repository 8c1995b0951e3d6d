/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_stream.h"

#include "bake/bake_log.h"
#include "layers/base/clock.h"
#include "layers/base/embed.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"

#include <stdlib.h>

#define LOG_STREAM_PIECE ((size_t)16 * 1024)
#define LOG_STREAM_PIECES 64                /* that are sifted, before it is others' turn */
#define LOG_STREAM_LOOK_MS ((int64_t)15000) /* the bake is looked at again by then */

struct log_stream {
	struct http_stream stream;
	struct store *store;
	char bake_id[ID_TEXT_MAX];
	uint64_t topic;
	size_t step;
	bool follow;
	uint64_t at;      /* bytes of the log that were read */
	struct buf ready; /* to be sent */
	size_t sent;      /* of it */
	bool shown;       /* of one step alone: the log is in it */
	bool inside;      /* of a line */
};

/* "[2/5] " at the beginning of a line: which step begins or is told about there; 0 for none. */
static size_t log_stream_step(struct str line)
{
	uint64_t step;
	uint64_t of;

	if (!str_starts(line, STR("[")))
		return 0;
	line = str_skip(line, 1);
	if (!str_take_number(&line, &step) || !str_starts(line, STR("/")))
		return 0;
	line = str_skip(line, 1);
	if (!str_take_number(&line, &of) || !str_starts(line, STR("] ")))
		return 0;
	return step >= 1 && step <= of ? (size_t)step : 0;
}

static int log_stream_add_line(struct log_stream *log, struct str line, struct err *err)
{
	size_t step = log->inside ? 0 : log_stream_step(line);

	if (step != 0)
		log->shown = step == log->step;
	return log->shown ? buf_add(&log->ready, line, err) : 0;
}

/* Take the lines of a piece; the last one, if it is not whole, only when nothing will follow. */
static ssize_t log_stream_sift(struct log_stream *log, struct str piece, bool last, struct err *err)
{
	struct str rest = piece;

	while (rest.len > 0) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		struct str line = {rest.ptr, end ? (size_t)(end - rest.ptr) + 1 : rest.len};

		if (!end && !last && rest.len < LOG_STREAM_PIECE)
			break;
		if (log_stream_add_line(log, line, err) < 0)
			return -1;
		log->inside = !end;
		rest = str_skip(rest, line.len);
	}
	return (ssize_t)(piece.len - rest.len);
}

/* Read on: how many bytes of the log were taken, 0 for none now, -1. */
static ssize_t log_stream_fill(struct log_stream *log, bool last, struct err *err)
{
	auto_buf struct buf piece = BUF_INIT(LOG_STREAM_PIECE);
	ssize_t taken;

	log->sent = 0;
	buf_clear(&log->ready);
	if (bake_log_read(log->store, str_of(log->bake_id), log->at, &piece, err) < 0)
		return -1;
	if (log->step == 0 && buf_add(&log->ready, buf_str(&piece), err) < 0)
		return -1;
	taken = log->step == 0 ? (ssize_t)piece.len
			       : log_stream_sift(log, buf_str(&piece), last, err);
	if (taken > 0)
		log->at += (uint64_t)taken;
	return taken;
}

/* 1 nothing will be added to the log, 0, -1. */
static int log_stream_is_last(const struct log_stream *log, struct err *err)
{
	auto_bakes_record struct bakes_record record = {0};
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (!log->follow)
		return 1;
	if (meta_begin(log->store, META_READ, &meta, err) < 0)
		return -1;
	found = bakes_find(meta, str_of(log->bake_id), &record, err);
	return found == 1 ? !bakes_is_open(record.state) : found == 0 ? 1 : -1;
}

static ssize_t log_stream_send(struct log_stream *log, char *out, size_t max)
{
	size_t left = log->ready.len - log->sent;
	size_t n = left < max ? left : max;

	memcpy(out, log->ready.ptr + log->sent, n);
	log->sent += n;
	return (ssize_t)n;
}

static ssize_t log_stream_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
			       bool over, struct http_wait *wait)
{
	struct log_stream *log = container_of(stream, struct log_stream, stream);
	struct err err;

	(void)at;
	for (int i = 0; log->sent == log->ready.len; i++) {
		int last = over ? 1 : log_stream_is_last(log, &err); /* before the log is read */
		ssize_t taken = last < 0 ? -1 : log_stream_fill(log, last == 1, &err);

		if (taken < 0) {
			log_warn("log not sent bake=%s why=\"%s\"", log->bake_id, err.text);
			return -1;
		}
		if (taken == 0 && last == 1)
			return HTTP_STREAM_END;
		*wait = (struct http_wait){log->topic, clock_monotonic_ms()};
		if (taken == 0)
			wait->until_ms += LOG_STREAM_LOOK_MS;
		if (taken == 0 || (log->sent == log->ready.len && i == LOG_STREAM_PIECES))
			return 0;
	}
	return log_stream_send(log, out, max);
}

static void log_stream_close(struct http_stream *stream)
{
	struct log_stream *log = container_of(stream, struct log_stream, stream);

	buf_done(&log->ready);
	free(log);
}

struct http_stream *log_stream_new(const struct log_stream_options *options)
{
	struct log_stream *log = calloc(1, sizeof(*log));

	if (!log)
		abort();
	*log = (struct log_stream){
		.stream = {log_stream_read, log_stream_close},
		.store = options->store,
		.topic = http_topic(str_of(options->record->agent_id)),
		.step = options->step,
		.follow = options->follow,
		.ready = BUF_INIT(LOG_STREAM_PIECE),
	};
	memcpy(log->bake_id, options->record->id, sizeof(log->bake_id));
	return &log->stream;
}
