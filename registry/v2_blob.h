/* SPDX-License-Identifier: Apache-2.0 */
/* v2_blob.h - GET and HEAD of a blob, whole or in part (v2_range.h). */
#pragma once

#include "registry/v2.h"

void v2_blob_answer(struct v2_call *call);

/* Send a blob of the store under this digest; 404 where it is not there. */
void v2_blob_send(struct v2_call *call, const struct digest *digest, const struct digest *blob);
