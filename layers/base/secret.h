/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret.h - a password or a token: bytes that nobody is told by accident.
 *
 * A secret is no struct str and becomes none by itself, so nothing that
 * formats, logs or reports can be given one. secret_reveal() is the only way
 * out, for whoever hands it to the peer that it is meant for.
 *
 * Its memory is zeroed before it is given back. What it passes on its way (a
 * request's text, a configuration file) is kept in a BUF_WIPED() buf; a
 * program that parses one calls json_wipe_released(). The copies that libcurl
 * makes are its own, and live as long as the request's handle.
 *
 * {0} is the empty secret.
 */
#pragma once

#include "layers/base/buf.h"

#define SECRET_FILE_MAX ((size_t)1 << 20) /* a step's, which may be a whole keyring */
#define SECRET_MAX ((size_t)48 * 1024)    /* a token; below what servers take as headers */

struct secret {
	struct buf hidden;
};

/* Store a copy in place of what was there. ERR_LIMIT above SECRET_MAX. */
int secret_put(struct secret *secret, struct str bytes, struct err *err) MUST_CHECK;

/* The same of another secret, or of NULL, which is empty. */
int secret_copy(struct secret *secret, const struct secret *from, struct err *err) MUST_CHECK;

/* Take over what a BUF_WIPED() buf holds, whatever its ceiling; the buf is empty then. */
void secret_take(struct secret *secret, struct buf *bytes);

/* NULL is empty, too. */
bool secret_is_empty(const struct secret *secret);

/* Its text, "" when empty; lent until the secret is changed or done. */
const char *secret_reveal(const struct secret *secret);

/* The same with its length: it need not be text. */
struct str secret_bytes(const struct secret *secret);

void secret_done(struct secret *secret);

static inline void auto_secret_release(struct secret *slot)
{
	secret_done(slot);
}
#define auto_secret AUTO(secret)
