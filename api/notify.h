/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - tell systemd the state of this service (sd_notify(3)), where it wants that. */
#pragma once

#include "layers/base/err.h"

/*
 * One datagram, "READY=1", to the socket that NOTIFY_SOCKET names: a path, or
 * an abstract name behind "@". A socket of NULL is ignored.
 */
int notify_send(const char *socket_name, const char *text, struct err *err) MUST_CHECK;
