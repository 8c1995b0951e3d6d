/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - whom a request thinks that it talks to.
 *
 * A page of somebody else's may resolve its own name to our address, and is then
 * of our origin to the browser. Such a request has that name as its Host: only
 * addresses, localhost and the names that the operator gave are ours.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

/* The field without its port; names are borrowed. False for what is no host, too. */
bool host_is_ours(struct str field, const char *const *names, size_t count);
