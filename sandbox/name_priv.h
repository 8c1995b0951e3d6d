/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_priv.h - host names in the one form that the rest of the network uses:
 * lower case, no dot at the end, labels of letters, digits, '-' and '_'.
 *
 * What reads like an address ("127.1", "0x7f.0.0.1") is no name: the host's
 * resolver would take it for one.
 */
#pragma once

#include "sandbox/network.h"

#define NAME_TEXT_MAX ((size_t)NETWORK_NAME_MAX + 1)

/* The name that text spells; false, and nothing written, when it spells none. */
bool name_normalise(struct str text, char out[static NAME_TEXT_MAX]);

/* Whether name is suffix or lies below it. Both are normalised. */
bool name_is_below(const char *name, const char *suffix);
