/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags_priv.h - the `--name=value` words between an instruction's name and its
 * arguments.
 *
 * Flags end at the first word that does not start with "--", or behind a bare
 * "--". Quotes and escapes in them are removed here; quotes allow blanks.
 */
#pragma once

#include "bake/instruction.h"

/*
 * Take the flags off *rest, which shrinks to what follows, into the fields of
 * `to`. ERR_REFUSED for unknown, repeated and not yet supported ones.
 */
int flags_take(struct instruction *to, struct str *rest, struct err *err) MUST_CHECK;
