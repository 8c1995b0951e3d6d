/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_priv.h - two TCP connections made one.
 *
 * Bytes go through pipes by splice(2) and are never copied into this process. A
 * direction holds a pipe only while bytes are in it, so an idle connection
 * costs two descriptors, and for a slow reader one pipe's content (64 KiB) is
 * kept. The end of one direction is passed on alone; a reset cuts both.
 */
#pragma once

#include "sandbox/loop_priv.h"

#define RELAY_IDLE_PIPES 16

/* Empty pipes, for the next direction that needs one. */
struct relay_pipes {
	int fds[RELAY_IDLE_PIPES][2];
	size_t count;
};

struct relay_flow {
	int pipe[2]; /* -1 when there is none */
	size_t held; /* bytes in it */
	bool ended;  /* nothing more will come */
	bool closed; /* and that was passed on */
};

struct relay_side {
	struct relay *relay;
	struct watch watch;
};

struct relay {
	struct loop *loop;
	struct relay_pipes *pipes;
	struct relay_side sides[2];
	struct relay_flow flows[2]; /* flows[i] is read from sides[i] */
	/* Both directions have ended, or one was cut. Called once. */
	void (*ended)(void *ctx, bool is_cut);
	void *ctx;
};

/* The descriptors stay the caller's. */
void relay_init(struct relay *relay, struct loop *loop, struct relay_pipes *pipes,
		const int fds[2]);

void relay_done(struct relay *relay);
int relay_start(struct relay *relay, struct err *err) MUST_CHECK;

void relay_pipes_done(struct relay_pipes *pipes);
