/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sole_priv.h - a blob that one pull fetches, while others wait for it.
 *
 * Bakes that start at once may want the same base, and each would fetch it. The
 * first holds run/pull/<digest> (hold.h); the others wait until it ends, and
 * find the blob in the store, or fetch it in turn. Nobody waits for longer than
 * SOLE_WAIT_MS, so that a slow registry is not everybody's: then he fetches it,
 * too, and the store keeps one of them.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/digest.h"
#include "layers/store.h"

#define SOLE_WAIT_MS 60000

struct sole {
	int dirfd;
	int fd; /* -1: it is not held, by us */
	char name[DIGEST_TEXT_MAX];
};

#define SOLE_INIT ((struct sole){.dirfd = -1, .fd = -1})

/* Hold it, or have waited long enough. */
int sole_take(struct store *store, const struct digest *blob, const struct cancel *cancel,
	      const struct cancel *cancel_too, struct sole *out, struct err *err) MUST_CHECK;
void sole_drop(struct sole *sole);

static inline void auto_sole_release(struct sole *slot)
{
	sole_drop(slot);
}
