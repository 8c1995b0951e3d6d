/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_referrers.h - the manifests that are about another one, as an index.
 *
 * What an index under the fallback's tag (<algorithm>-<hex>) lists, which
 * clients push where they know no referrers API, is listed behind them.
 *
 * Limits: V2_REFERRERS_BYTES a page, and one entry, since clients take an index
 * of 4 MiB.
 */
#pragma once

#include "registry/v2.h"

#define V2_REFERRERS_BYTES ((size_t)1024 * 1024)

/* GET, HEAD of .../referrers/DIGEST: never 404. */
void v2_referrers_answer(struct v2_call *call);
