/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the host that a request is addressed to.
 *
 * A hostile page may let its own name resolve to our address (DNS rebinding),
 * and is then of our origin to the browser. Its requests have that name as
 * their Host; only addresses, localhost and the names that the operator gave
 * are ours.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

/* Whether it is one of the names, which are borrowed. False for what is no host, too. */
bool host_is_named(struct str field, const char *const *names, size_t count);

/* The same, or localhost, or an address. A port says nothing. */
bool host_is_ours(struct str field, const char *const *names, size_t count);
