/* SPDX-License-Identifier: Apache-2.0 */
/*
 * challenge_priv.h - the challenges of a server's WWW-Authenticate header.
 *
 * Format: RFC 9110, 11.3 and 11.6.1, and what registries send: several
 * challenges in one field, any number of blanks, empty values, unquoted ones
 * with characters that only a quoted one may have.
 */
#pragma once

#include "layers/base/buf.h"

#define CHALLENGE_TEXT_MAX ((size_t)8192) /* of one challenge's values */

enum challenge_scheme { CHALLENGE_OTHER, CHALLENGE_BASIC, CHALLENGE_BEARER };

/* The parameters that matter, unquoted, each "" where absent; they lie in storage. */
struct challenge {
	enum challenge_scheme scheme;
	struct str realm;
	struct str service;
	struct str scope;
	struct str error;
	char storage[CHALLENGE_TEXT_MAX];
};

/* Take the next challenge off a field's value. False at its end. */
bool challenge_next(struct str *field, struct challenge *out);
