/* SPDX-License-Identifier: Apache-2.0 */
#include "api/human.h"
#include "api/progress.h"
#include "layers/base/embed.h"

#include <stdio.h>

#define PLAIN_LINE_MAX ((size_t)64 * 1024) /* a longer line is shown in pieces */

struct plain {
	struct progress progress;
	bool terminal;   /* somebody's screen: what a step writes must not steer it */
	struct buf line; /* the log's last line, as far as it came */
};

static void plain_prefix(const struct plain *plain, const struct bake_event *event)
{
	(void)fprintf(plain->progress.out, "[%zu/%zu] ", event->step, event->of);
}

/* A pipe gets the step's bytes as they are. */
static void plain_put(const struct plain *plain, struct str bytes)
{
	auto_buf struct buf shown = BUF_INIT(4 * PLAIN_LINE_MAX);
	struct err ignored;

	if (plain->terminal && human_line(bytes, PLAIN_LINE_MAX, &shown, &ignored) == 0)
		bytes = buf_str(&shown);
	(void)fwrite(bytes.ptr, 1, bytes.len, plain->progress.out);
}

static void plain_say(const struct plain *plain, const char *what, struct str text)
{
	(void)fputs(what, plain->progress.out);
	plain_put(plain, text);
	(void)fputc('\n', plain->progress.out);
}

static void plain_flush(struct plain *plain, const struct bake_event *event)
{
	if (plain->line.len == 0)
		return;
	plain_prefix(plain, event);
	plain_put(plain, buf_str(&plain->line));
	(void)fputc('\n', plain->progress.out);
	buf_clear(&plain->line);
}

static void plain_log(struct plain *plain, const struct bake_event *event)
{
	struct str rest = event->text;
	struct err err;

	while (rest.len > 0) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t n = end ? (size_t)(end - rest.ptr) : rest.len;

		if (buf_add(&plain->line, (struct str){rest.ptr, n}, &err) < 0) {
			plain_flush(plain, event);
			n = n < PLAIN_LINE_MAX ? n : PLAIN_LINE_MAX;
			if (buf_add(&plain->line, (struct str){rest.ptr, n}, &err) < 0)
				return;
			end = NULL;
		}
		if (end)
			plain_flush(plain, event);
		n += end ? 1 : 0;
		rest.ptr += n;
		rest.len -= n;
	}
}

static void plain_pull(const struct plain *plain, const struct bake_event *event)
{
	char text[DIGEST_TEXT_MAX];
	char size[HUMAN_TEXT_MAX];

	if (str_equal(event->text, STR("layer")))
		return; /* a line for each is enough */
	(void)fprintf(plain->progress.out, "[base] " STR_FMT " %s %s\n", STR_ARG(event->text),
		      digest_format(event->digest, text), human_size(event->size, size));
}

static void plain_step_done(struct plain *plain, const struct bake_event *event)
{
	char size[HUMAN_TEXT_MAX];
	char time[HUMAN_TEXT_MAX];

	plain_flush(plain, event);
	plain_prefix(plain, event);
	if (event->cached) {
		(void)fprintf(plain->progress.out, "CACHED\n");
		return;
	}
	(void)fprintf(plain->progress.out, "DONE %s%s%s%s\n",
		      human_duration(event->duration_ms, time),
		      event->empty ? ", no layer" : ", layer of ",
		      event->empty ? "" : human_size(event->size, size),
		      event->cut_off ? ", equal to an earlier one" : "");
}

static void plain_event(struct progress *progress, const struct bake_event *event)
{
	struct plain *plain = container_of(progress, struct plain, progress);
	char text[DIGEST_TEXT_MAX];

	switch (event->kind) {
	case BAKE_BASE:
		plain_say(plain, "[base] ", event->text);
		break;
	case BAKE_PULL:
		plain_pull(plain, event);
		break;
	case BAKE_BASE_DONE:
		(void)fprintf(plain->progress.out, "[base] %s %s\n",
			      event->cached ? "CACHED" : "DONE",
			      event->digest ? digest_format(event->digest, text) : "");
		break;
	case BAKE_STEP:
		plain_prefix(plain, event);
		plain_say(plain, "", event->text);
		break;
	case BAKE_LOG:
		plain_log(plain, event);
		break;
	case BAKE_STEP_DONE:
		plain_step_done(plain, event);
		break;
	case BAKE_STEP_FAILED:
		plain_flush(plain, event);
		plain_prefix(plain, event);
		plain_say(plain, "FAILED ", event->text);
		break;
	case BAKE_EXPORT:
		plain_say(plain, "[export] ", event->text);
		break;
	case BAKE_EXPORT_DONE:
	case BAKE_DONE:
		break;
	}
}

static void plain_close(struct progress *progress)
{
	struct plain *plain = container_of(progress, struct plain, progress);

	buf_done(&plain->line);
	free(plain);
}

int progress_open_plain(FILE *stream, bool terminal, struct progress **out, struct err *err)
{
	static const struct progress_type type = {plain_event, plain_close};
	struct plain *plain = calloc(1, sizeof(*plain));

	if (!plain)
		return err_os(err, ENOMEM, "open the display");
	plain->progress = (struct progress){&type, stream};
	plain->terminal = terminal;
	plain->line = BUF_INIT(PLAIN_LINE_MAX);
	*out = &plain->progress;
	return 0;
}
