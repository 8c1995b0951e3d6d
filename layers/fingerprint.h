/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.h - whether two sequences of bytes are equal, within one store.
 *
 * A digest names bytes to everybody, and takes its time. A fingerprint finds
 * again what this store has seen, in a sixth of that: it is GMAC under a random
 * key of the store's own. Without the key nobody can make two sequences of one
 * fingerprint; by chance two of n bytes have the same once in 2^132 / n. The
 * key could be worked out from fingerprints, so neither leaves the data
 * directory, and no fingerprint names anything outside it.
 *
 * Format: NIST SP 800-38D, GMAC with AES-128; the nonce is always the same,
 * which makes of it the keyed universal hash that is wanted here.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

struct store;

struct fingerprint {
	uint8_t bytes[16];
};

struct fingerprint_key {
	uint8_t bytes[16];
};

/* The store's key; the first call on a new store makes it, durably. */
int fingerprint_key(struct store *store, struct fingerprint_key *out, struct err *err) MUST_CHECK;

/* A fingerprint that is fed in pieces. Embedded. */
struct fingerprinter {
	void *mac;
};

void fingerprinter_init(struct fingerprinter *printer, const struct fingerprint_key *key);
void fingerprinter_add(struct fingerprinter *printer, struct str bytes);
void fingerprinter_final(struct fingerprinter *printer, struct fingerprint *out);
void fingerprinter_done(struct fingerprinter *printer);

/* Of bytes in memory. */
void fingerprint_of(const struct fingerprint_key *key, struct str bytes, struct fingerprint *out);

static inline void auto_fingerprinter_release(struct fingerprinter *slot)
{
	fingerprinter_done(slot);
}
