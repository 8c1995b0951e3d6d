/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper.h - a program that keeps credentials: docker-credential-NAME.
 *
 * Protocol: docker-credential-helpers. "get" and "erase" read the registry's
 * key, "store" a JSON object; "get" prints one, and the exit code is 0. It is
 * started without a shell, has HELPER_MS and may print HELPER_ANSWER_MAX bytes.
 * Its output is never shown, since it may hold a password.
 */
#pragma once

#include "layers/base/cancel.h"
#include "registry/credentials.h"

#define HELPER_MS 30000
#define HELPER_ANSWER_MAX ((size_t)64 * 1024)

struct helper_spec {
	const char *search; /* directories with colons, as PATH has them */
	struct str host;    /* "docker.io" is asked for as Docker does */
	int timeout_ms;     /* 0 for HELPER_MS */
	const struct cancel *cancel;
};

/*
 * Fill in user and password of credentials that name a helper. ERR_UNAVAILABLE
 * where there is no such program, ERR_UNAUTHORIZED where it has nothing for the
 * host, ERR_TIMEOUT, ERR_LIMIT, ERR_CANCELLED, ERR_INVALID for an answer that
 * is none.
 */
int helper_ask(const struct helper_spec *spec, struct credentials *credentials, struct err *err)
	MUST_CHECK;

/* Have the helper that credentials name keep them. ERR_DENIED where it says no. */
int helper_store(const struct helper_spec *spec, const struct credentials *credentials,
		 struct err *err) MUST_CHECK;

/* Have one forget those of the host: 1, 0 it says that it has none, -1. */
int helper_erase(const struct helper_spec *spec, const char *name, struct err *err) MUST_CHECK;
