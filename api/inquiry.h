/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inquiry.h - have hearth-puller ask a registry what it has, or whether it knows
 * us (registry/survey.h).
 */
#pragma once

#include "api/access.h"
#include "layers/base/json.h"

/* Some of the names that were asked for, as an array of strings. */
typedef void inquiry_fn(void *ctx, const json_t *names);

/* The command has ACCESS_OPTIONS_REGISTRY. */
struct inquiry {
	const struct cli *cli;
	struct str host;
	struct str path;  /* whose tags; or "", for the repositories */
	struct str after; /* only what comes behind this; or "" */
	size_t limit;     /* 0 for all */
	const struct credentials *credentials;
	inquiry_fn *hear;
	void *ctx;
};

int inquiry_names(const struct inquiry *inquiry, struct err *err) MUST_CHECK;

/* Whether the registry takes the credentials: 1, 0 it asks for none, -1. */
int inquiry_login(const struct inquiry *inquiry, struct err *err) MUST_CHECK;
