/* SPDX-License-Identifier: Apache-2.0 */
#include "api/progress.h"

#include "api/outlet.h"

#include <string.h>
#include <unistd.h>

int progress_check(const char *name, struct err *err)
{
	static const char *const names[] = {"auto", "tty", "plain", "json"};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			return 0;
	}
	if (!name)
		return 0;
	return err_set(err, ERR_INVALID, "--progress %s: expected auto, tty, plain or json", name);
}

static int progress_open_on(FILE *stream, const char *name, bool terminal, int columns,
			    struct progress **out, struct err *err)
{
	if (!name || strcmp(name, "auto") == 0)
		name = terminal ? "tty" : "plain";
	if (strcmp(name, "tty") == 0)
		return progress_open_tty(stream, columns, out, err);
	if (strcmp(name, "plain") == 0)
		return progress_open_plain(stream, isatty(STDERR_FILENO), out, err);
	return progress_open_json(stream, out, err);
}

int progress_open(const char *name, bool terminal, int columns, const struct cancel *cancel,
		  struct progress **out, struct err *err)
{
	FILE *stream;

	if (progress_check(name, err) < 0)
		return -1;
	stream = outlet_open(STDERR_FILENO, cancel);
	if (!stream)
		return err_os(err, errno, "open the display");
	if (progress_open_on(stream, name, terminal, columns, out, err) == 0)
		return 0;
	(void)fclose(stream);
	return -1;
}

void progress_event(void *ctx, const struct bake_event *event)
{
	struct progress *progress = ctx;

	progress->type->event(progress, event);
}

void progress_close(struct progress *progress)
{
	FILE *stream = progress ? progress->out : NULL;

	if (!progress)
		return;
	progress->type->close(progress);
	(void)fclose(stream); /* without a display nothing is lost */
}
