/* SPDX-License-Identifier: Apache-2.0 */
#include "api/progress.h"

#include <string.h>

int progress_open(const char *name, bool terminal, int columns, struct progress **out,
		  struct err *err)
{
	if (!name || strcmp(name, "auto") == 0)
		name = terminal ? "tty" : "plain";
	if (strcmp(name, "tty") == 0)
		return progress_open_tty(columns, out, err);
	if (strcmp(name, "plain") == 0)
		return progress_open_plain(out, err);
	if (strcmp(name, "json") == 0)
		return progress_open_json(out, err);
	return err_set(err, ERR_INVALID, "--progress %s: expected auto, tty, plain or json", name);
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
