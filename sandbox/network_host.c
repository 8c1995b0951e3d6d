/* SPDX-License-Identifier: Apache-2.0 */
/* network_host.c - the operator's NAME=ADDRESS[:PORT]. */
#include "sandbox/address_priv.h"
#include "sandbox/name_priv.h"
#include "sandbox/network.h"

#include <arpa/inet.h>
#include <stdint.h>

#define HOST_PORT_DIGITS 5

/* What follows the address: nothing, or a colon and a port. */
static bool host_parse_port(struct str text, in_port_t *out)
{
	unsigned port = 0;

	*out = 0;
	if (text.len == 0)
		return true;
	if (text.len < 2 || text.len > 1 + HOST_PORT_DIGITS || text.ptr[0] != ':' ||
	    text.ptr[1] == '0')
		return false;
	for (size_t i = 1; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		port = port * 10 + (unsigned)(text.ptr[i] - '0');
	}
	*out = (in_port_t)port;
	return port <= UINT16_MAX;
}

/* The address at the start of text, which shrinks to what follows. */
static bool host_parse_address(struct str *text, union address *out)
{
	char literal[INET6_ADDRSTRLEN];
	bool is_v6 = text->len > 0 && text->ptr[0] == '[';
	const char *end = memchr(text->ptr, is_v6 ? ']' : ':', text->len);
	size_t start = is_v6 ? 1 : 0;
	size_t len = (end ? (size_t)(end - text->ptr) : text->len) - start;
	void *bytes = is_v6 ? (void *)&out->in6.sin6_addr : (void *)&out->in.sin_addr;

	if ((is_v6 && !end) || len >= sizeof(literal) || memchr(text->ptr + start, '\0', len))
		return false;
	memcpy(literal, text->ptr + start, len);
	literal[len] = '\0';
	*out = (union address){0};
	out->any.sa_family = is_v6 ? AF_INET6 : AF_INET;
	text->ptr += start + len + start;
	text->len -= start + len + start;
	return inet_pton(out->any.sa_family, literal, bytes) == 1;
}

int network_host_parse(struct str text, struct network_host *out, struct err *err)
{
	const char *equals = memchr(text.ptr, '=', text.len);
	struct network_host host = {{0}};
	union address address;
	struct str name = text;
	struct str rest;
	in_port_t port;

	if (!equals)
		return err_set(err, ERR_INVALID,
			       "expected NAME=ADDRESS[:PORT], got \"" STR_FMT "\"", STR_ARG(text));
	name.len = (size_t)(equals - text.ptr);
	rest = (struct str){equals + 1, text.len - name.len - 1};
	if (!name_normalise(name, host.name))
		return err_set(err, ERR_INVALID,
			       "expected a host name before =, got \"" STR_FMT "\"", STR_ARG(name));
	if (!host_parse_address(&rest, &address) || !host_parse_port(rest, &port))
		return err_set(err, ERR_INVALID,
			       "expected an IPv4 address or an IPv6 address in brackets, and "
			       "perhaps :PORT, behind %s=, got \"" STR_FMT "\"",
			       host.name, (int)(text.len - name.len - 1), equals + 1);
	address_set_port(&address, port);
	memcpy(&host.address, &address, sizeof(address));
	*out = host;
	return 0;
}
