/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_priv.h - the parts of a URL that decide who may see what.
 *
 * Text goes through libcurl's own parser, so that what is judged here and what
 * is connected to is the same host.
 */
#pragma once

#include "layers/base/buf.h"

#define URL_HOST_MAX ((size_t)256)

struct url {
	bool secure;             /* https */
	char host[URL_HOST_MAX]; /* lower case; an IPv6 address in brackets */
	unsigned port;
};

/* ERR_REMOTE for what is no http or https URL. */
int url_parse(const char *text, struct url *out, struct err *err) MUST_CHECK;

/* Same scheme, host and port. */
bool url_same_origin(const struct url *a, const struct url *b);

/* Whether a host is this machine: 127/8, ::1, localhost. No name is resolved. */
bool url_host_is_loopback(const char *host);

/* Whether a host is an address of this link alone, where clouds keep their secrets. */
bool url_host_is_link_local(const char *host);

/* Whether a host is an address that is loopback, private or link-local. */
bool url_host_is_private(const char *host);

/* Where a host is, seen from here, as far as its text says: names but localhost's are public. */
enum url_nearness { URL_PUBLIC, URL_PRIVATE, URL_HOME };
enum url_nearness url_host_nearness(const char *host);

/* Whether a host is an address and not a name. */
bool url_host_is_address(const char *host);

/* Resolve text (which may be relative) against base, and append query parameters. */
int url_join(const char *base, struct str text, struct buf *out, struct err *err) MUST_CHECK;
int url_add_query(struct buf *url, const char *name, struct str value, struct err *err) MUST_CHECK;
