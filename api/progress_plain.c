/* SPDX-License-Identifier: Apache-2.0 */
/* progress_plain.c - events as lines behind "[2/5]", for a file, a pipe or --progress plain. */
#include "api/human.h"
#include "api/progress.h"
#include "layers/base/embed.h"

#include <stdio.h>

#define PLAIN_LINE_MAX ((size_t)64 * 1024)      /* a longer line is shown in pieces */
#define PLAIN_OUT_MAX ((size_t)4 * 1024 * 1024) /* a step's own text is the longest */
#define PLAIN_SEND ((size_t)256 * 1024) /* so much is written at once, a line more or less */
#define PLAIN_PREFIX_MAX 64

struct plain {
	struct progress progress;
	bool terminal;   /* somebody's screen: what a step writes must not steer it */
	struct buf line; /* the log's last line, as far as it came */
	struct buf out;  /* whole lines of one event: one write */
};

/* "[2/5] DONE " */
static struct str plain_prefix(const struct bake_event *event, const char *what,
			       char text[static PLAIN_PREFIX_MAX])
{
	int n = snprintf(text, PLAIN_PREFIX_MAX, "[%zu/%zu] %s", event->step, event->of, what);

	return (struct str){text, (size_t)n};
}

static void plain_send(struct plain *plain)
{
	(void)fwrite(buf_str(&plain->out).ptr, 1, plain->out.len, plain->progress.out);
	buf_clear(&plain->out);
}

/* A pipe gets the step's bytes as they are. */
static int plain_put(struct plain *plain, struct str bytes, struct err *err)
{
	if (plain->terminal)
		return human_line(bytes, PLAIN_LINE_MAX, &plain->out, err);
	return buf_add(&plain->out, bytes, err);
}

static void plain_say(struct plain *plain, struct str prefix, struct str text)
{
	struct err ignored;
	size_t before = plain->out.len;

	if (buf_add(&plain->out, prefix, &ignored) < 0 || plain_put(plain, text, &ignored) < 0 ||
	    buf_add(&plain->out, STR("\n"), &ignored) < 0)
		plain->out.len = before; /* a line that long is not worth showing */
	if (plain->out.len >= PLAIN_SEND)
		plain_send(plain);
}

static void plain_end_line(struct plain *plain, struct str prefix)
{
	if (plain->line.len > 0)
		plain_say(plain, prefix, buf_str(&plain->line));
	buf_clear(&plain->line);
}

/* Whole lines go straight on; what has no end yet waits for it. */
static void plain_log(struct plain *plain, struct str prefix, struct str rest)
{
	struct err ignored;

	while (rest.len > 0) {
		size_t room = PLAIN_LINE_MAX - plain->line.len;
		size_t most = rest.len < room ? rest.len : room;
		const char *end = memchr(rest.ptr, '\n', most);
		struct str text = {rest.ptr, end ? (size_t)(end - rest.ptr) : most};

		if (end && plain->line.len == 0 && text.len > 0)
			plain_say(plain, prefix, text);
		else if (buf_add(&plain->line, text, &ignored) < 0)
			return;
		if (end || text.len == room)
			plain_end_line(plain, prefix);
		rest.ptr += text.len + (end ? 1 : 0);
		rest.len -= text.len + (end ? 1 : 0);
	}
}

static void plain_blob(struct plain *plain, struct str prefix, const struct bake_event *event)
{
	char line[DIGEST_TEXT_MAX + HUMAN_TEXT_MAX + PLAIN_PREFIX_MAX];
	char text[DIGEST_TEXT_MAX];
	char size[HUMAN_TEXT_MAX];

	if (str_equal(event->text, STR("layer")))
		return; /* a line for each is enough */
	(void)snprintf(line, sizeof(line), STR_FMT " %s%s%s", STR_ARG(event->text),
		       digest_format(event->digest, text), event->size > 0 ? " " : "",
		       event->size > 0 ? human_size(event->size, size) : "");
	plain_say(plain, prefix, str_of(line));
}

static void plain_base_done(struct plain *plain, const struct bake_event *event)
{
	char text[DIGEST_TEXT_MAX] = "";

	if (event->digest)
		digest_format(event->digest, text);
	plain_say(plain, event->cached ? STR("[base] CACHED ") : STR("[base] DONE "), str_of(text));
}

static void plain_step_done(struct plain *plain, const struct bake_event *event)
{
	char size[HUMAN_TEXT_MAX];
	char time[HUMAN_TEXT_MAX];
	char prefix[PLAIN_PREFIX_MAX];
	char how[HUMAN_LINKED_MAX];

	if (event->cached) {
		plain_say(plain, plain_prefix(event, "CACHED", prefix), STR(""));
		return;
	}
	(void)snprintf(how, sizeof(how), "%s%s%s%s", human_duration(event->duration_ms, time),
		       event->empty ? ", no layer" : ", layer of ",
		       event->empty ? "" : human_size(event->size, size),
		       event->cut_off ? ", equal to an earlier one" : "");
	plain_say(plain, plain_prefix(event, "DONE ", prefix), str_of(how));
	if (event->linked > 0)
		plain_say(plain, plain_prefix(event, "", prefix),
			  str_of(human_linked(event->linked, how)));
}

static void plain_event(struct progress *progress, const struct bake_event *event)
{
	struct plain *plain = container_of(progress, struct plain, progress);
	char text[PLAIN_PREFIX_MAX];
	struct str prefix = plain_prefix(event, "", text);

	if (event->kind != BAKE_LOG)
		plain_end_line(plain, prefix);
	switch (event->kind) {
	case BAKE_BASE:
		plain_say(plain, STR("[base] "), event->text);
		break;
	case BAKE_PULL:
		plain_blob(plain, STR("[base] "), event);
		break;
	case BAKE_BASE_DONE:
		plain_base_done(plain, event);
		break;
	case BAKE_STEP:
		plain_say(plain, prefix, event->text);
		break;
	case BAKE_LOG:
		plain_log(plain, prefix, event->text);
		break;
	case BAKE_STEP_DONE:
		plain_step_done(plain, event);
		break;
	case BAKE_STEP_FAILED:
		plain_say(plain,
			  plain_prefix(event, event->cancelled ? "CANCELLED" : "FAILED ", text),
			  event->cancelled ? STR("") : event->text);
		break;
	case BAKE_WARNING:
		plain_say(plain,
			  event->step ? plain_prefix(event, "WARNING ", text)
				      : STR("[base] WARNING "),
			  event->text);
		break;
	case BAKE_PUSH_WARNING:
		plain_say(plain, STR("[push] WARNING "), event->text);
		break;
	case BAKE_EXPORT:
		plain_say(plain, STR("[export] "), event->text);
		break;
	case BAKE_PUSH:
		plain_say(plain, STR("[push] "), event->text);
		break;
	case BAKE_PUSH_BLOB:
		plain_blob(plain, STR("[push] "), event);
		break;
	case BAKE_PUSH_DONE:
		plain_say(plain, STR("[push] DONE"), STR(""));
		break;
	case BAKE_STEP_MADE:
	case BAKE_EXPORT_DONE:
	case BAKE_DONE:
		break;
	}
	plain_send(plain);
}

static void plain_close(struct progress *progress)
{
	struct plain *plain = container_of(progress, struct plain, progress);

	buf_done(&plain->line);
	buf_done(&plain->out);
	free(plain);
}

int progress_open_plain(FILE *stream, bool terminal, struct progress **out, struct err *err)
{
	static const struct progress_type type = {plain_event, plain_close};
	struct plain *plain = calloc(1, sizeof(*plain));

	if (!plain)
		return err_os(err, ENOMEM, "open the display");
	(void)setvbuf(stream, NULL, _IONBF, 0); /* what we send is whole */
	plain->progress = (struct progress){&type, stream};
	plain->terminal = terminal;
	plain->line = BUF_INIT(PLAIN_LINE_MAX);
	plain->out = BUF_INIT(PLAIN_OUT_MAX);
	*out = &plain->progress;
	return 0;
}
