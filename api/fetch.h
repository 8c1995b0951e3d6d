/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.h - have hearth-puller bring an image into the store, and show its progress. */
#pragma once

#include "api/cli.h"
#include "api/progress.h"
#include "bake/base.h"

/*
 * *out, which the caller owns: {"target", "manifest", "names"}. The file `-` is
 * standard input.
 */
int fetch_image(const struct cli *cli, struct store *store, struct progress *progress,
		const struct base_request *request, json_t **out, struct err *err) MUST_CHECK;
