/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_priv.h - internet addresses, and which of them a machine may reach.
 *
 * Refused is whatever leads back to this host or to its provider's services
 * (loopback, unspecified, link-local, metadata), is no single host (multicast,
 * broadcast, reserved), or hides an IPv4 address in an IPv6 one
 * (mapped, NAT64, 6to4, Teredo), where a check of the outer one says nothing.
 *
 * Sources: the IANA special-purpose registries, RFC 6890.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

enum address_kind { ADDRESS_REFUSED, ADDRESS_PRIVATE, ADDRESS_PUBLIC };

enum address_kind address_kind(const union address *address);

/* Copy any socket address; false for a family that is not the internet's. */
bool address_from(const struct sockaddr *from, union address *out);

socklen_t address_size(const union address *address);

/* In host order. */
in_port_t address_port(const union address *address);
void address_set_port(union address *address, in_port_t port);
