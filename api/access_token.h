/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_token.h - tokens for minutes, and for what was asked for: what clients
 * of a registry are given in exchange for a token of token.h, or for none.
 *
 * An access token allows what its parent does when it is used, and of that no
 * more than its own scopes ("pull:NAME"). So it needs no record, and who revokes
 * the parent revokes it. "hat_" and base64 of
 *
 *	HMAC-SHA256 (mac.h) of what follows
 *	{"of": HEX, "until": MS, "scopes": [..]}    HEX: the key of its parent, or ""
 */
#pragma once

#include "api/token.h"

#define ACCESS_TOKEN_PREFIX "hat_"
#define ACCESS_TOKEN_MS ((int64_t)300 * 1000)
#define ACCESS_TOKEN_CLAIM_MAX ((size_t)3 * 1024) /* it has to fit into a request's headers */

struct access_token {
	char of[DIGEST_HEX_MAX]; /* "" for nobody's */
	int64_t until_ms;
	json_t *scopes; /* owned */
};

#define ACCESS_TOKEN_INIT ((struct access_token){.until_ms = 0})

/* Scopes that do not fit any more are left out. */
int access_token_make(struct store *store, const struct access_token *token, struct buf *out,
		      struct err *err) MUST_CHECK;

/* Whether a text is meant to be one. */
bool access_token_is(struct str text);

/* 1 it is one of ours (perhaps of the past), 0 it is none, -1. */
int access_token_open(struct store *store, struct str text, struct access_token *out,
		      struct err *err) MUST_CHECK;

static inline void auto_access_token_release(struct access_token *slot)
{
	json_decref(slot->scopes);
	slot->scopes = NULL;
}
#define auto_access_token AUTO(access_token)
