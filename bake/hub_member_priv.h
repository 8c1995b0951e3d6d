/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_member_priv.h - one asker of a running step, as the hub knows it.
 *
 * An asker's life:       left by
 *	1 log         the spool's end was sent and an answer is there
 *	2 answer      the answer was sent, or the linger time has passed
 *	gone          it closed, or sent WIRE_LEAVE
 */
#pragma once

#include "bake/spool.h"

#include <stdbool.h>

struct hub_member {
	int fd;         /* owned */
	uint64_t sent;  /* its place in the spool */
	struct buf out; /* a frame under way */
	size_t out_at;
	bool leaving;
	bool dismissed; /* it left and others stay: it is told so, and dropped */
	bool answered;
};

/* What is sent to all of them. */
struct hub_member_feed {
	const struct spool *spool;
	const struct buf *answer; /* a frame; NULL before it is there */
};

/* Takes the descriptor. */
void hub_member_init(struct hub_member *member, int fd);
void hub_member_done(struct hub_member *member);

bool hub_member_has_more(const struct hub_member *member, const struct hub_member_feed *feed);

/*
 * As much as the socket takes: 1 some of it went, 0 nothing, -1 it is over, and
 * *err says why where the spool cannot be read.
 */
int hub_member_send(struct hub_member *member, const struct hub_member_feed *feed, struct err *err)
	MUST_CHECK;

/* Read from an asker: whatever it sends means that it leaves. -1 it is gone. */
int hub_member_hear(struct hub_member *member) MUST_CHECK;

/* Tell it, behind the frame under way, that others stay. */
int hub_member_dismiss(struct hub_member *member) MUST_CHECK;
