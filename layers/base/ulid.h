/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ulid.h - ids that sort by the time they were made at.
 *
 * A ULID is 26 lower-case characters of Crockford's base 32: 48 bits of
 * milliseconds, 80 of randomness. An id is a prefix that says of what it is
 * ("agt_", "bak_", …) and a ULID.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define ULID_TEXT_MAX ((size_t)27) /* 26 characters and the NUL */
#define ID_PREFIX_LEN ((size_t)4)  /* three letters and '_' */
#define ID_TEXT_MAX (ID_PREFIX_LEN + ULID_TEXT_MAX)

/* A new one, of now. */
const char *ulid_new(char text[static ULID_TEXT_MAX]);

/*
 * A new one that sorts behind `last`, a ULID or "", even where several are made
 * in one millisecond and where the clock went back: then it is last's successor.
 */
const char *ulid_after(struct str last, int64_t now_ms, char text[static ULID_TEXT_MAX]);

bool ulid_is_valid(struct str text);

/* Whether text is the prefix ("agt_") and a ULID. */
bool ulid_is_id(struct str prefix, struct str text);
