/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - sockets on which a daemon is found. */
#pragma once

#include "layers/base/buf.h"

#define LISTEN_DEFAULT "127.0.0.1:7460"
#define LISTEN_TEXT_MAX ((size_t)300)

/*
 * "HOST:PORT", "[ADDRESS]:PORT" or ":PORT" for every address; port 0 is any
 * that is free. out is the address that it became, as a URL has it. Returns the
 * descriptor; ERR_CONFLICT where somebody else listens there.
 */
int listen_tcp(const char *text, char out[static LISTEN_TEXT_MAX], struct err *err) MUST_CHECK;

/*
 * A unix socket of that name in a directory, with mode 0600; one that is there is
 * replaced, so the caller knows that nobody listens on it. Returns the descriptor.
 */
int listen_unix(int dirfd, const char *name, struct err *err) MUST_CHECK;
