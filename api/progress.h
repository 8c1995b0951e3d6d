/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the progress of a bake for a person, a pipe or a program, on
 * standard error; standard output is for the result.
 *
 * 	tty    a live display: steps, bytes, times, the tail of the running log
 * 	plain  one line an event, every line of the log
 * 	json   one JSON object a line
 *
 * A display gets events in one thread; it may draw in another of its own. It
 * waits for a slow reader until the cancel is raised (outlet.h), and goes on
 * without one who has left.
 */
#pragma once

#include "bake/bake.h"

#include <stdio.h>

/* Of every command that may take long. */
#define PROGRESS_OPTION                                                                  \
	{                                                                                \
		"progress", "KIND", "auto, tty, plain or json; on standard error", false \
	}

struct progress;

struct progress_type {
	void (*event)(struct progress *progress, const struct bake_event *event);
	void (*close)(struct progress *progress);
};

/* Embedded by each display. */
struct progress {
	const struct progress_type *type;
	FILE *out; /* owned; flushed by whoever draws more than lines */
};

/* The stream becomes the display's when it returns 0. */
int progress_open_tty(FILE *stream, int columns, struct progress **out, struct err *err) MUST_CHECK;
int progress_open_plain(FILE *stream, bool terminal, struct progress **out, struct err *err)
	MUST_CHECK;
int progress_open_json(FILE *stream, struct progress **out, struct err *err) MUST_CHECK;

/* Whether --progress takes this name; NULL is auto. ERR_INVALID lists the names. */
int progress_check(const char *name, struct err *err) MUST_CHECK;

/* By the name that --progress takes. ERR_INVALID lists the names. */
int progress_open(const char *name, bool terminal, int columns, const struct cancel *cancel,
		  struct progress **out, struct err *err) MUST_CHECK;

/* A bake_event_fn; ctx is the progress. */
void progress_event(void *ctx, const struct bake_event *event);

/* Leave the terminal as it should be. */
void progress_close(struct progress *progress);

DEFINE_AUTO(progress, struct progress *, progress_close);
