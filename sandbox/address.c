/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/address_priv.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

/* The first match counts; what matches nothing is public. */
static const struct {
	uint32_t net;
	uint8_t bits;
	enum address_kind kind;
} address_nets4[] = {
	{0x00000000, 8, ADDRESS_REFUSED},  /* 0.0.0.0/8: this host */
	{0x0a000000, 8, ADDRESS_PRIVATE},  /* 10.0.0.0/8 */
	{0x646464c8, 32, ADDRESS_REFUSED}, /* 100.100.100.200: metadata */
	{0x64400000, 10, ADDRESS_PRIVATE}, /* 100.64.0.0/10: carriers' */
	{0x7f000000, 8, ADDRESS_REFUSED},  /* 127.0.0.0/8: loopback */
	{0xa83f8110, 32, ADDRESS_REFUSED}, /* 168.63.129.16: metadata */
	{0xa9fe0000, 16, ADDRESS_REFUSED}, /* 169.254.0.0/16: link-local, metadata */
	{0xac100000, 12, ADDRESS_PRIVATE}, /* 172.16.0.0/12 */
	{0xc0000000, 24, ADDRESS_REFUSED}, /* 192.0.0.0/24: protocol assignments, metadata */
	{0xc0586300, 24, ADDRESS_REFUSED}, /* 192.88.99.0/24: 6to4 relays */
	{0xc0a80000, 16, ADDRESS_PRIVATE}, /* 192.168.0.0/16 */
	{0xc6120000, 15, ADDRESS_REFUSED}, /* 198.18.0.0/15: our own names */
	{0xe0000000, 3, ADDRESS_REFUSED},  /* 224.0.0.0/3: multicast, reserved, broadcast */
};

/* The first match counts; what matches nothing is refused. */
static const struct {
	uint8_t net[16];
	uint8_t bits;
	enum address_kind kind;
} address_nets6[] = {
	{{0x20, 0x01, 0x00, 0x00}, 23, ADDRESS_REFUSED}, /* 2001::/23: Teredo and other protocols */
	{{0x20, 0x02}, 16, ADDRESS_REFUSED},             /* 6to4 */
	{{0x20}, 3, ADDRESS_PUBLIC},                     /* 2000::/3: all that is assigned */
	{{0xfd, 0x00, 0x0e, 0xc2}, 32, ADDRESS_REFUSED}, /* fd00:ec2::/32: metadata */
	{{0xfd, 0x20, 0x00, 0xce}, 32, ADDRESS_REFUSED}, /* fd20:ce::/32: metadata */
	{{0xfc}, 7, ADDRESS_PRIVATE},                    /* fc00::/7 */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum address_kind address_kind4(struct in_addr in)
{
	uint32_t host = ntohl(in.s_addr);

	for (size_t i = 0; i < COUNT(address_nets4); i++) {
		if ((host ^ address_nets4[i].net) >> (32 - address_nets4[i].bits) == 0)
			return address_nets4[i].kind;
	}
	return ADDRESS_PUBLIC;
}

static bool address_has_prefix(const uint8_t *bytes, const uint8_t *net, unsigned bits)
{
	unsigned whole = bits / 8;
	unsigned rest = bits % 8;

	return memcmp(bytes, net, whole) == 0 &&
	       (rest == 0 || (bytes[whole] ^ net[whole]) >> (8 - rest) == 0);
}

static enum address_kind address_kind6(const struct in6_addr *in)
{
	for (size_t i = 0; i < COUNT(address_nets6); i++) {
		if (address_has_prefix(in->s6_addr, address_nets6[i].net, address_nets6[i].bits))
			return address_nets6[i].kind;
	}
	return ADDRESS_REFUSED;
}

enum address_kind address_kind(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return address_kind4(address->in.sin_addr);
	if (address->any.sa_family == AF_INET6)
		return address_kind6(&address->in6.sin6_addr);
	return ADDRESS_REFUSED;
}

bool address_from(const struct sockaddr *from, union address *out)
{
	if (from->sa_family != AF_INET && from->sa_family != AF_INET6)
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, from, from->sa_family == AF_INET ? sizeof(out->in) : sizeof(out->in6));
	return true;
}

socklen_t address_size(const union address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->in) : sizeof(address->in6);
}

in_port_t address_port(const union address *address)
{
	/* The port is at the same place in both families. */
	return ntohs(address->in.sin_port);
}

void address_set_port(union address *address, in_port_t port)
{
	address->in.sin_port = htons(port);
}
