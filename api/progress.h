/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - what a person, a pipe or a program sees of a bake, on standard
 * error; standard output is for the result.
 *
 *	tty    a live display: steps, bytes, times, the tail of the running log
 *	plain  one line an event, every line of the log
 *	json   one JSON object a line
 *
 * A display is told events in one thread; it may draw in another of its own.
 */
#pragma once

#include "bake/bake.h"

struct progress;

struct progress_type {
	void (*event)(struct progress *progress, const struct bake_event *event);
	void (*close)(struct progress *progress);
};

/* Embedded first by each display. */
struct progress {
	const struct progress_type *type;
};

int progress_open_tty(int columns, struct progress **out, struct err *err) MUST_CHECK;
int progress_open_plain(bool terminal, struct progress **out, struct err *err) MUST_CHECK;
int progress_open_json(struct progress **out, struct err *err) MUST_CHECK;

/* Whether --progress takes this name; NULL is auto. ERR_INVALID lists the names. */
int progress_check(const char *name, struct err *err) MUST_CHECK;

/* By the name that --progress takes. ERR_INVALID lists the names. */
int progress_open(const char *name, bool terminal, int columns, struct progress **out,
		  struct err *err) MUST_CHECK;

/* A bake_event_fn; ctx is the progress. */
void progress_event(void *ctx, const struct bake_event *event);

/* Leave the terminal as it should be. */
void progress_close(struct progress *progress);

DEFINE_AUTO(progress, struct progress *, progress_close);
