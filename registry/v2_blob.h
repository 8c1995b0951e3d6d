/* SPDX-License-Identifier: Apache-2.0 */
/* v2_blob.h - GET and HEAD of a blob, whole or in part (v2_range.h). */
#pragma once

#include "registry/v2.h"
#include "registry/v2_range.h"

void v2_blob_answer(struct v2_call *call);

/*
 * The headers of a blob of that size, and which part of it is sent. False: there
 * is no body (304, 416).
 */
bool v2_blob_begin(struct v2_call *call, struct str digest, uint64_t size, struct v2_range *out);
