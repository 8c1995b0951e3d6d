/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_priv.h - the names that a machine has learnt, each with an address
 * of its own out of 198.18.0.0/16, and the real addresses behind them.
 *
 * A name keeps its address for the network's life, so an address that a
 * program has cached never comes to mean another name. What it leads to is
 * looked up on the host when the name is asked for, and again at a connection
 * when that was more than RESOLVER_FRESH_MS ago. The operator's names are
 * there from the start and never looked up.
 *
 * A name of which every address is refused (address_priv.h) is answered as one
 * that does not exist.
 *
 * Threads: all in the loop's.
 */
#pragma once

#include "sandbox/loop_priv.h"
#include "sandbox/network.h"
#include "sandbox/upstream_priv.h"

#define RESOLVER_FRESH_MS 30000
#define RESOLVER_NAMES_MAX 65533   /* 198.18.0.2 and up; more are SERVFAIL */
#define RESOLVER_SELF "198.18.0.1" /* the machine's own address, and its resolver's */

struct resolver;

struct resolver_name {
	char *text;
	struct in_addr address; /* the machine's name for it */
	bool trusted;           /* the operator's: dialled as given */
	int64_t fresh_until;    /* monotonic ms */
	union address *targets; /* where it leads; a port of 0 is the wanted one */
	size_t target_count;
};

/* Embedded in the caller; done is called once, perhaps before resolver_ask() returns. */
struct resolver_waiter {
	struct resolver_waiter *next;
	/*
	 * With a name and DNS_NOERROR, or with NULL and the code that says why.
	 * The name is the resolver's.
	 */
	void (*done)(void *ctx, const struct resolver_name *name, enum dns_rcode rcode);
	void *ctx;
};

int resolver_open(struct loop *loop, const struct network_host *hosts, size_t host_count,
		  struct resolver **out, struct err *err) MUST_CHECK;

/* Waiters are forgotten, not called. */
void resolver_close(struct resolver *resolver);

/* Ask for a normalised name. */
void resolver_ask(struct resolver *resolver, const char *name, struct resolver_waiter *waiter);

/* The name behind an address that a machine wants to reach; NULL for none. */
const struct resolver_name *resolver_find(const struct resolver *resolver, struct in_addr address);
