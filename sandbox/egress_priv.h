/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress_priv.h - the thread that answers a machine's names and dials for it.
 *
 * Threads: egress_open() starts one, in the namespaces and with the resource
 * limits of its caller; egress_close() ends it and may take as long as
 * upstream_close().
 */
#pragma once

#include "sandbox/network.h"
#include "sandbox/network_ns_priv.h"

#define EGRESS_CONNECTIONS_MAX 1024 /* fewer where RLIMIT_NOFILE does not allow so many */
#define EGRESS_CONNECTION_FDS 6     /* held by one: two sockets, two pipes */
#define EGRESS_SPARE_FDS 128        /* left for the rest of this process */

struct egress;

/* The descriptors of ns stay the caller's. */
int egress_open(const struct network_ns *ns, const struct network_host *hosts, size_t host_count,
		struct egress **out, struct err *err) MUST_CHECK;
void egress_close(struct egress *egress);
