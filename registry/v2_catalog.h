/* SPDX-License-Identifier: Apache-2.0 */
/* v2_catalog.h - repositories that hold a manifest and that who asks may pull, in byte order. */
#pragma once

#include "registry/v2.h"

/* GET, HEAD of /v2/_catalog. */
void v2_catalog_answer(struct v2_call *call);
