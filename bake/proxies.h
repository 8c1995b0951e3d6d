/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxies.h - the variables by which a RUN learns of a proxy: what the default
 * of `proxies` in Docker's config.json says, as docker build gives it, in upper
 * and in lower case.
 *
 * They are in no key, no image and no record of ours, since where a host stands
 * makes no other step; what the image's environment says of them goes first.
 */
#pragma once

#include "layers/base/buf.h"

#include <stddef.h>

#define PROXIES_MAX 10

struct proxies {
	char *at[PROXIES_MAX]; /* owned: NAME=VALUE */
	size_t count;
};

/* Of the file's content; none where it says nothing. ERR_INVALID for what is no text. */
int proxies_read(struct str config, struct proxies *out, struct err *err) MUST_CHECK;
void proxies_done(struct proxies *proxies);

static inline void auto_proxies_release(struct proxies *slot)
{
	proxies_done(slot);
}
#define auto_proxies AUTO(proxies)
