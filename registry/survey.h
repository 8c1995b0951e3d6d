/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey.h - what a registry has: its repositories, and a repository's tags; and
 * whether it knows us.
 *
 * Lists come in pages, in the registry's own order. A page's Link says where the
 * next one is; pages that lead in a circle, or have no end, are ERR_REMOTE.
 *
 * Format: OCI distribution-spec 1.1, "Listing Tags"; `_catalog` is Docker's.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/secret.h"

#define SURVEY_MAX ((size_t)1000000)              /* of one list */
#define SURVEY_PAGE 1000                          /* as many as registries give at once */
#define SURVEY_PAGE_MAX ((size_t)8 * 1024 * 1024) /* bytes; some give all at once */

struct survey_spec {
	struct str host;
	struct str path;  /* whose tags; or "", for the repositories */
	struct str after; /* only what comes behind this name; or "" */
	size_t limit;     /* at most so many; 0 for all */
	bool plain_http;  /* loopback needs no asking */
	const char *ca_file;
	struct str user; /* credentials for this host, or empty */
	const struct secret *password;
	const struct cancel *cancel;
};

/* -1, with its error, ends the list. */
typedef int survey_fn(void *ctx, struct str name, struct err *err);

/*
 * Each name, once it is there. ERR_NOT_FOUND, ERR_UNAUTHORIZED, ERR_DENIED,
 * ERR_BUSY, ERR_REMOTE, ERR_TIMEOUT, ERR_CANCELLED. Loads libcurl, as the next
 * does: hearth-puller alone calls them.
 */
int survey_names(const struct survey_spec *spec, survey_fn *fn, void *ctx, struct err *err)
	MUST_CHECK;

/*
 * Whether the registry takes these credentials, ERR_UNAUTHORIZED where not. 1; 0
 * where it asks for none, so that nothing was checked; -1.
 */
int survey_login(const struct survey_spec *spec, struct err *err) MUST_CHECK;
