/* SPDX-License-Identifier: Apache-2.0 */
#include "api/progress.h"

#include <string.h>

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

int progress_open(const char *name, bool terminal, int columns, struct progress **out,
		  struct err *err)
{
	if (progress_check(name, err) < 0)
		return -1;
	if (!name || strcmp(name, "auto") == 0)
		name = terminal ? "tty" : "plain";
	if (strcmp(name, "tty") == 0)
		return progress_open_tty(columns, out, err);
	if (strcmp(name, "plain") == 0)
		return progress_open_plain(terminal, out, err);
	return progress_open_json(out, err);
}

void progress_event(void *ctx, const struct bake_event *event)
{
	struct progress *progress = ctx;

	progress->type->event(progress, event);
}

void progress_close(struct progress *progress)
{
	if (progress)
		progress->type->close(progress);
}
