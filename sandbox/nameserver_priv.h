/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nameserver_priv.h - the machine's DNS server, over UDP and TCP.
 *
 * A name that exists for the host has an A record with the address that the
 * resolver gives it and no other record; "localhost" is the machine itself;
 * addresses out of the resolver's range have a PTR. Nothing is forwarded.
 */
#pragma once

#include "sandbox/resolver_priv.h"

#define NAMESERVER_QUESTIONS_MAX 1024 /* that wait for the host's resolver */
#define NAMESERVER_CLIENTS_MAX 64     /* over TCP */
#define NAMESERVER_IDLE_MS 10000      /* that a TCP client may be silent */

struct nameserver;

/* The descriptors stay the caller's. */
int nameserver_open(struct loop *loop, struct resolver *resolver, int udpfd, int tcpfd,
		    struct nameserver **out, struct err *err) MUST_CHECK;

/* After resolver_close(), which forgets the questions. */
void nameserver_close(struct nameserver *nameserver);
