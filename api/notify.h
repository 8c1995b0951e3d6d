/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - tell systemd how this service is (sd_notify(3)), where it asks. */
#pragma once

#include "layers/base/err.h"

/*
 * One datagram, "READY=1", to the socket that NOTIFY_SOCKET names: a path, or an
 * abstract name behind "@". NULL for the socket is nobody, and no failure.
 */
int notify_send(const char *socket_name, const char *text, struct err *err) MUST_CHECK;
