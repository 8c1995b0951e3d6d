/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform.h - the kind of machine that an image is for: "linux/amd64",
 * "linux/arm64/v8".
 *
 * Formats: OCI image-spec 1.1, image-index.md, "platform"; the names are Go's.
 * What uname says ("x86_64", "aarch64") is understood and never kept.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdbool.h>

struct platform {
	char os[32];
	char architecture[32];
	char variant[32]; /* may be "" */
};

/* Parse OS/ARCHITECTURE[/VARIANT]. ERR_INVALID shows what was expected. */
int platform_parse(struct str text, struct platform *out, struct err *err) MUST_CHECK;

/* The same from its three parts, as documents have them. ERR_INVALID. */
int platform_set(struct platform *out, struct str os, struct str architecture, struct str variant,
		 struct err *err) MUST_CHECK;

/* Of the machine that we run on. */
void platform_host(struct platform *out);

/*
 * Whether an image for `offered` runs where `wanted` was asked for: same system
 * and architecture, and a variant that is not newer (arm/v7 runs arm/v6; where
 * none is named arm is v7, arm64 v8, amd64 v1).
 */
bool platform_matches(const struct platform *wanted, const struct platform *offered);

/*
 * How well it fits, for choosing among several: 0 it does not match; the same
 * variant fits better than any other, and of those a newer one better.
 */
int platform_rank(const struct platform *wanted, const struct platform *offered);

/* "linux/arm64/v8"; lives as long as text. */
#define PLATFORM_TEXT_MAX ((size_t)100)
const char *platform_format(const struct platform *platform, char text[static PLATFORM_TEXT_MAX]);
