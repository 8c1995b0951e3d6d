/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_ns_priv.h - a network namespace, and the sockets that serve it.
 */
#pragma once

#include "sandbox/network.h"

enum network_fd {
	NETWORK_FD_NS,
	NETWORK_FD_SYSFS, /* a detached mount */
	/* of an open network only, all non-blocking: */
	NETWORK_FD_LISTENER,
	NETWORK_FD_DNS_UDP,
	NETWORK_FD_DNS_TCP,
	NETWORK_FDS
};

struct network_ns {
	int fds[NETWORK_FDS]; /* -1 for none */
};

/*
 * Made by a thread of its own, which ends then, so that the calling thread
 * never leaves its namespace: to return would need rights over that namespace,
 * which a process in a user namespace does not have.
 */
int network_ns_open(enum network_mode mode, struct network_ns *out, struct err *err) MUST_CHECK;
void network_ns_close(struct network_ns *ns);
