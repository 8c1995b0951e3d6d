/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - the name of a sequence of bytes.
 *
 * A digest is the only name that a blob, a layer or a manifest has inside this
 * program. Tags and paths are turned into digests at the edge (registry/,
 * bake/spec.c) and never travel further in. Everything that we name ourselves
 * is sha256; a sha512 is what somebody else calls a thing, which is then found
 * by both.
 *
 * Format: OCI image-spec 1.1, descriptor.md, "Digests".
 *
 * Invariant: a struct digest obtained from this file is always well formed, and
 * the bytes past its algorithm's size are zero; code that holds one does not
 * check it again.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define DIGEST_BYTES_MAX ((size_t)64)
#define DIGEST_TEXT_MAX (sizeof("sha512:") + 2 * DIGEST_BYTES_MAX)

enum digest_algorithm {
	DIGEST_SHA256,
	DIGEST_SHA512,
};

struct digest {
	uint8_t algorithm; /* enum digest_algorithm */
	uint8_t bytes[DIGEST_BYTES_MAX];
};

/*
 * Parse "sha256:" and 64, or "sha512:" and 128 lower-case hex digits. Anything
 * else is ERR_INVALID.
 */
int digest_parse(struct str text, struct digest *out, struct err *err) MUST_CHECK;

/* Write the canonical text form into text and return it. */
const char *digest_format(const struct digest *digest, char text[static DIGEST_TEXT_MAX]);

/*
 * A digest that is fed in pieces. Embedded; hasher_final() leaves it ready for
 * another sequence, hasher_done() releases it.
 */
struct hasher {
	void *md;
	uint8_t algorithm; /* enum digest_algorithm */
};

/* For a sha256, or for the digest that somebody else chose. */
void hasher_init(struct hasher *hasher);
void hasher_init_as(struct hasher *hasher, enum digest_algorithm algorithm);
void hasher_add(struct hasher *hasher, struct str bytes);
void hasher_final(struct hasher *hasher, struct digest *out);

/* What hasher_final() would say now; the sequence goes on. */
void hasher_peek(const struct hasher *hasher, struct digest *out);
void hasher_done(struct hasher *hasher);

/* The sha256 of bytes in memory. */
void digest_of(struct str bytes, struct digest *out);

/* The 64 hex digits of a sha256, without its prefix. */
#define DIGEST_HEX_MAX ((size_t)65)
const char *digest_hex(const struct digest *digest, char text[static DIGEST_HEX_MAX]);

/* Whether it is the digest, by its own algorithm, of these bytes. */
bool digest_is_of(const struct digest *digest, struct str bytes);

bool digest_equal(const struct digest *a, const struct digest *b);

static inline void auto_hasher_release(struct hasher *slot)
{
	hasher_done(slot);
}
