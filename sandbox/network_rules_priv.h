/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_rules_priv.h - the packet rules of this namespace: TCP to any address
 * that is not the machine's own goes to one listening socket, and whatever else
 * would leave is refused at once.
 */
#pragma once

#include "layers/base/err.h"

/* Where redirected connections are accepted; nothing inside may connect to it. */
#define NETWORK_RULES_LISTENER "127.9.9.9"
#define NETWORK_RULES_PORT 59999

int network_rules_load(struct err *err) MUST_CHECK;
