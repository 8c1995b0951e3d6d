/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lo_priv.h - `lo`, the only interface of a machine, set up in the calling
 * thread's network namespace.
 */
#pragma once

#include "layers/base/err.h"

#include <netinet/in.h>

/* Bring it up: 127.0.0.0/8 and ::1 work. */
int lo_up(struct err *err) MUST_CHECK;

/*
 * Give it an address of its own, and make every IPv4 address local: a
 * connection to any of them starts from self and ends here.
 */
int lo_take_all(struct in_addr self, struct err *err) MUST_CHECK;
