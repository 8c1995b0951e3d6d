/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_tty.c - a live display at the bottom of a terminal.
 *
 * Finished steps are printed once and scroll away; the running one is drawn
 * below, and redrawn ten times a second by a thread of our own, so that times
 * tick even when nothing happens.
 */
#include "api/human.h"
#include "api/progress.h"
#include "layers/base/clock.h"
#include "layers/base/embed.h"
#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <stdio.h>
#include <time.h>

#define TTY_TAIL 6         /* lines of the running step's log */
#define TTY_TAIL_FAILED 20 /* and of a failed one's */
#define TTY_LINE_MAX ((size_t)4096)
#define TTY_LAYERS_MAX 16 /* layers shown while a base is pulled */
#define TTY_DRAW_NS 100000000L
#define TTY_FRAME_MAX ((size_t)256 * 1024)

struct tty_layer {
	struct digest digest;
	uint64_t done; /* bytes */
	uint64_t size; /* bytes */
};

struct tty {
	struct progress progress;
	int columns;
	pthread_t thread;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool closing;
	size_t drawn;     /* lines of the live part on the screen */
	struct buf title; /* of what runs; empty when nothing does */
	int64_t since_ms;
	struct buf tail[TTY_TAIL_FAILED]; /* a ring of the log's last lines */
	size_t tail_lines;                /* ever begun */
	bool tail_open;                   /* the last line has no end yet */
	struct tty_layer layers[TTY_LAYERS_MAX];
	size_t layer_count;
};

static void tty_add(struct buf *frame, const char *text)
{
	struct err ignored;

	if (buf_add(frame, str_of(text), &ignored) < 0)
		buf_clear(frame); /* a frame that large is not worth showing */
}

static void tty_add_line(struct buf *frame, struct str text, size_t width)
{
	struct err ignored;

	if (human_line(text, width, frame, &ignored) < 0)
		buf_clear(frame);
	tty_add(frame, "\n");
}

static void tty_erase_locked(struct tty *tty, struct buf *frame) REQUIRES(tty->lock);
static void tty_erase_locked(struct tty *tty, struct buf *frame)
{
	struct err ignored;

	if (tty->drawn > 0 && buf_addf(frame, &ignored, "\033[%zuA", tty->drawn) < 0)
		return;
	tty_add(frame, "\r\033[J");
	tty->drawn = 0;
}

static void tty_draw_layers_locked(struct tty *tty, struct buf *frame) REQUIRES(tty->lock);
static void tty_draw_layers_locked(struct tty *tty, struct buf *frame)
{
	for (size_t i = 0; i < tty->layer_count; i++) {
		const struct tty_layer *layer = &tty->layers[i];
		char done[HUMAN_TEXT_MAX];
		char size[HUMAN_TEXT_MAX];
		char text[DIGEST_TEXT_MAX];
		char line[160];
		const char *hex = strchr(digest_format(&layer->digest, text), ':') + 1;

		(void)snprintf(line, sizeof(line), "   %.12s  %s of %s", hex,
			       human_size(layer->done, done), human_size(layer->size, size));
		tty_add_line(frame, str_of(line), (size_t)tty->columns - 1);
		tty->drawn++;
	}
}

static void tty_draw_tail_locked(struct tty *tty, struct buf *frame, size_t lines)
	REQUIRES(tty->lock);
static void tty_draw_tail_locked(struct tty *tty, struct buf *frame, size_t lines)
{
	size_t first = tty->tail_lines > lines ? tty->tail_lines - lines : 0;

	for (size_t i = first; i < tty->tail_lines; i++) {
		tty_add(frame, "   ");
		tty_add_line(frame, buf_str(&tty->tail[i % TTY_TAIL_FAILED]),
			     (size_t)tty->columns - 4);
		tty->drawn++;
	}
}

/* The title on the left, the time on the right. */
static void tty_draw_title_locked(struct tty *tty, struct buf *frame) REQUIRES(tty->lock);
static void tty_draw_title_locked(struct tty *tty, struct buf *frame)
{
	char time[HUMAN_TEXT_MAX];
	size_t room = (size_t)tty->columns > 24 ? (size_t)tty->columns - 12 : 12;
	size_t before = frame->len;
	struct err ignored;

	human_duration(clock_monotonic_ms() - tty->since_ms, time);
	if (human_line(buf_str(&tty->title), room, frame, &ignored) < 0)
		return;
	before = frame->len - before;
	if (buf_addf(frame, &ignored, "%*s%8s\n", before < room ? (int)(room - before) : 0, "",
		     time) < 0)
		return;
	tty->drawn++;
}

static void tty_draw_locked(struct tty *tty, struct buf *frame) REQUIRES(tty->lock);
static void tty_draw_locked(struct tty *tty, struct buf *frame)
{
	if (tty->title.len > 0) {
		tty_draw_title_locked(tty, frame);
		tty_draw_layers_locked(tty, frame);
		tty_draw_tail_locked(tty, frame, TTY_TAIL);
	}
	if (frame->len > 0)
		(void)fwrite(frame->ptr, 1, frame->len, tty->progress.out);
	(void)fflush(tty->progress.out);
}

static void *tty_main(void *ctx)
{
	struct tty *tty = ctx;
	auto_buf struct buf frame = BUF_INIT(TTY_FRAME_MAX);

	lock_take(&tty->lock);
	while (!tty->closing) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TTY_DRAW_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&tty->changed, &tty->lock.os, &until);
		if (tty->closing || tty->title.len == 0)
			continue;
		buf_clear(&frame);
		tty_erase_locked(tty, &frame);
		tty_draw_locked(tty, &frame);
	}
	lock_drop(&tty->lock);
	return NULL;
}

static struct buf *tty_last_line_locked(struct tty *tty) REQUIRES(tty->lock);
static struct buf *tty_last_line_locked(struct tty *tty)
{
	if (!tty->tail_open) {
		tty->tail_lines++;
		tty->tail_open = true;
		buf_clear(&tty->tail[(tty->tail_lines - 1) % TTY_TAIL_FAILED]);
	}
	return &tty->tail[(tty->tail_lines - 1) % TTY_TAIL_FAILED];
}

/* A carriage return begins its line anew, as on a terminal, unless it ends the piece. */
static struct str tty_shown(struct str line, bool *out_anew)
{
	const char *cr;

	while (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	cr = line.len > 0 ? memrchr(line.ptr, '\r', line.len) : NULL;
	*out_anew = cr != NULL;
	if (!cr)
		return line;
	return (struct str){cr + 1, line.len - (size_t)(cr + 1 - line.ptr)};
}

static void tty_log_locked(struct tty *tty, struct str text) REQUIRES(tty->lock);
static void tty_log_locked(struct tty *tty, struct str text)
{
	struct err ignored;
	struct str piece;

	while (text.len > 0 && str_cut(&text, '\n', &piece)) {
		struct buf *line = tty_last_line_locked(tty);
		bool anew;
		size_t room;

		piece = tty_shown(piece, &anew);
		if (anew)
			buf_clear(line);
		room = line->max - line->len;
		piece.len = piece.len < room ? piece.len : room;
		if (buf_add(line, piece, &ignored) == 0 && text.ptr)
			tty->tail_open = false;
	}
}

static void tty_begin_locked(struct tty *tty, const char *prefix, struct str text)
	REQUIRES(tty->lock);
static void tty_begin_locked(struct tty *tty, const char *prefix, struct str text)
{
	struct err ignored;

	buf_clear(&tty->title);
	if (buf_addf(&tty->title, &ignored, "%s", prefix) < 0 ||
	    human_line(text, TTY_LINE_MAX / 8, &tty->title, &ignored) < 0)
		tty_add(&tty->title, prefix);
	tty->since_ms = clock_monotonic_ms();
	tty->tail_lines = 0;
	tty->tail_open = false;
	tty->layer_count = 0;
}

/* What ran becomes a line that stays. */
static void tty_end_locked(struct tty *tty, const char *how, bool with_tail) REQUIRES(tty->lock);
static void tty_end_locked(struct tty *tty, const char *how, bool with_tail)
{
	auto_buf struct buf frame = BUF_INIT(TTY_FRAME_MAX);
	size_t room = (size_t)tty->columns > 40 ? (size_t)tty->columns - 30 : 10;
	size_t before;
	struct err ignored;

	tty_erase_locked(tty, &frame);
	before = frame.len;
	if (human_line(buf_str(&tty->title), room, &frame, &ignored) < 0)
		return;
	before = frame.len - before;
	if (buf_addf(&frame, &ignored, "%*s  %s\n", before < room ? (int)(room - before) : 0, "",
		     how) < 0)
		return;
	if (with_tail)
		tty_draw_tail_locked(tty, &frame, TTY_TAIL_FAILED);
	tty->drawn = 0;
	buf_clear(&tty->title);
	tty_draw_locked(tty, &frame);
}

/* A line above what is under way, which goes on. */
static void tty_warn_locked(struct tty *tty, const char *prefix, struct str text)
	REQUIRES(tty->lock);
static void tty_warn_locked(struct tty *tty, const char *prefix, struct str text)
{
	auto_buf struct buf frame = BUF_INIT(TTY_FRAME_MAX);
	auto_buf struct buf line = BUF_INIT(TTY_LINE_MAX);
	struct err ignored;

	if (buf_addf(&line, &ignored, "%sWARNING ", prefix) < 0 ||
	    human_line(text, TTY_LINE_MAX / 8, &line, &ignored) < 0)
		return;
	tty_erase_locked(tty, &frame);
	tty_add_line(&frame, buf_str(&line), (size_t)tty->columns - 1);
	tty_draw_locked(tty, &frame);
}

static void tty_blob_locked(struct tty *tty, const struct bake_event *event) REQUIRES(tty->lock);
static void tty_blob_locked(struct tty *tty, const struct bake_event *event)
{
	size_t i = 0;

	if (str_equal(event->text, STR("resolved")) || str_equal(event->text, STR("named")) ||
	    str_starts(event->text, STR("manifest")))
		return; /* no layer */
	while (i < tty->layer_count && !digest_equal(&tty->layers[i].digest, event->digest))
		i++;
	if (i == TTY_LAYERS_MAX)
		return;
	if (i == tty->layer_count)
		tty->layer_count++;
	tty->layers[i] = (struct tty_layer){*event->digest, event->done, event->size};
	if (!str_equal(event->text, STR("layer")))
		tty->layers[i].done = event->size;
}

static void tty_step_done_locked(struct tty *tty, const struct bake_event *event)
	REQUIRES(tty->lock);
static void tty_step_done_locked(struct tty *tty, const struct bake_event *event)
{
	char size[HUMAN_TEXT_MAX];
	char time[HUMAN_TEXT_MAX];
	char linked[HUMAN_LINKED_MAX];
	char how[128 + HUMAN_LINKED_MAX];

	(void)snprintf(how, sizeof(how), "%8s  %s%s%s%s", human_duration(event->duration_ms, time),
		       event->empty ? "no layer" : human_size(event->size, size),
		       event->cut_off ? ", as before" : "", event->linked > 0 ? "\n    " : "",
		       event->linked > 0 ? human_linked(event->linked, linked) : "");
	tty_end_locked(tty, event->cached ? "  CACHED" : how, false);
}

static void tty_hear_locked(struct tty *tty, const struct bake_event *event) REQUIRES(tty->lock);
static void tty_hear_locked(struct tty *tty, const struct bake_event *event)
{
	char prefix[64];

	(void)snprintf(prefix, sizeof(prefix), "[%zu/%zu] ", event->step, event->of);
	switch (event->kind) {
	case BAKE_BASE:
		tty_begin_locked(tty, "[base] ", event->text);
		break;
	case BAKE_PULL:
	case BAKE_PUSH_BLOB:
		tty_blob_locked(tty, event);
		break;
	case BAKE_BASE_DONE:
		tty_end_locked(tty, event->cached ? "  CACHED" : "  DONE", false);
		break;
	case BAKE_STEP:
		tty_begin_locked(tty, prefix, event->text);
		break;
	case BAKE_STEP_MADE:
		break;
	case BAKE_LOG:
		tty_log_locked(tty, event->text);
		break;
	case BAKE_STEP_DONE:
		tty_step_done_locked(tty, event);
		break;
	case BAKE_STEP_FAILED:
		tty_end_locked(tty, event->cancelled ? "  CANCELLED" : "  FAILED",
			       !event->cancelled);
		break;
	case BAKE_WARNING:
		tty_warn_locked(tty, event->step ? prefix : "[base] ", event->text);
		break;
	case BAKE_PUSH_WARNING:
		tty_warn_locked(tty, "[push] ", event->text);
		break;
	case BAKE_EXPORT:
		tty_begin_locked(tty, "[export] ", event->text);
		break;
	case BAKE_PUSH:
		tty_begin_locked(tty, "[push] ", event->text);
		break;
	case BAKE_PUSH_DONE:
	case BAKE_EXPORT_DONE:
	case BAKE_DONE:
		if (tty->title.len > 0)
			tty_end_locked(tty, "  DONE", false);
		break;
	}
}

static void tty_event(struct progress *progress, const struct bake_event *event)
{
	struct tty *tty = container_of(progress, struct tty, progress);

	lock_take(&tty->lock);
	tty_hear_locked(tty, event);
	lock_drop(&tty->lock);
}

static void tty_close(struct progress *progress)
{
	struct tty *tty = container_of(progress, struct tty, progress);
	auto_buf struct buf frame = BUF_INIT(TTY_FRAME_MAX);

	lock_take(&tty->lock);
	tty->closing = true;
	tty_erase_locked(tty, &frame);
	if (tty->title.len > 0)
		tty_add_line(&frame, buf_str(&tty->title), (size_t)tty->columns - 1);
	buf_clear(&tty->title);
	tty_draw_locked(tty, &frame);
	pthread_cond_broadcast(&tty->changed);
	lock_drop(&tty->lock);
	(void)pthread_join(tty->thread, NULL);
	for (size_t i = 0; i < TTY_TAIL_FAILED; i++)
		buf_done(&tty->tail[i]);
	buf_done(&tty->title);
	pthread_cond_destroy(&tty->changed);
	free(tty);
}

int progress_open_tty(FILE *stream, int columns, struct progress **out, struct err *err)
{
	static const struct progress_type type = {tty_event, tty_close};
	struct tty *tty = calloc(1, sizeof(*tty));

	if (!tty)
		return err_os(err, ENOMEM, "open the display");
	tty->progress = (struct progress){&type, stream};
	tty->columns = columns < 20 ? 20 : columns;
	tty->lock = (struct lock)LOCK_INIT;
	pthread_cond_init(&tty->changed, NULL);
	tty->title = BUF_INIT(TTY_LINE_MAX);
	for (size_t i = 0; i < TTY_TAIL_FAILED; i++)
		tty->tail[i] = BUF_INIT(TTY_LINE_MAX);
	if (thread_start(&tty->thread, tty_main, tty, err) < 0) {
		free(tty);
		return -1;
	}
	*out = &tty->progress;
	return 0;
}
