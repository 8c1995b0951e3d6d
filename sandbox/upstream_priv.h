/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream_priv.h - names looked up the way the host does it: files, DNS,
 * whatever nsswitch.conf says.
 *
 * getaddrinfo() may block for long and cannot be interrupted, so it is called
 * by a few threads, started when there is work for them. Closing waits a moment
 * for them; one that is stuck in a call holds a reference to what it needs, and
 * ends by itself.
 *
 * Threads: the functions here are called by one thread, which also watches the
 * descriptor. The workers are started here, and block the signals that it
 * blocks.
 */
#pragma once

#include "sandbox/address_priv.h"
#include "sandbox/dns_priv.h"

#define UPSTREAM_ADDRESSES_MAX 8 /* more than a client would try */
#define UPSTREAM_THREADS_MAX 8
#define UPSTREAM_PENDING_MAX 256

struct upstream;

struct upstream_answer {
	struct upstream_answer *next;
	enum dns_rcode rcode; /* DNS_NOERROR, also without any address */
	size_t count;
	union address addresses[UPSTREAM_ADDRESSES_MAX]; /* the best first; no ports */
	char name[NAME_TEXT_MAX];
};

int upstream_open(struct upstream **out, struct err *err) MUST_CHECK;
void upstream_close(struct upstream *upstream);

/* Readable while there may be answers to take. */
int upstream_fd(const struct upstream *upstream);

/* ERR_BUSY above UPSTREAM_PENDING_MAX. */
int upstream_ask(struct upstream *upstream, const char *name, struct err *err) MUST_CHECK;

/* The next answer, to be freed with free(); NULL for none. */
struct upstream_answer *upstream_take(struct upstream *upstream);
