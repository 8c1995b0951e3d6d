/* SPDX-License-Identifier: Apache-2.0 */
/* image_check.h - whether a version's image is there, for whoever would start on it. */
#pragma once

#include "api/route.h"
#include "bake/agent.h"

/*
 * ERR_NOT_READY, with the status `baking` or `failed` as a detail, until the
 * version's image is there; an agent without an image is ready. ERR_NOT_FOUND
 * where there is no such version.
 */
int image_check_ready(struct call *call, struct meta *meta, const struct agent *agent,
		      int64_t version, struct err *err) MUST_CHECK;
