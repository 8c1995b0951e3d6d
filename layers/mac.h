/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mac.h - a name for bytes that nobody may guess from it: an HMAC-SHA256 under
 * the data directory's own key.
 *
 * The key is 32 random bytes in the file `secret.key`, mode 0600, made when it
 * is first needed and never changed. Names hold for one data directory: a copy
 * of it without the key makes others.
 *
 * Format: RFC 2104.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

#define MAC_KEY_BYTES ((size_t)32)

/*
 * The domain says what the bytes are: equal ones of two domains have two names.
 * ERR_CORRUPT where the key's file holds no key.
 */
int mac_of(struct store *store, struct str domain, struct str bytes, struct digest *out,
	   struct err *err) MUST_CHECK;
