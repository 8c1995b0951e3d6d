/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_upload.h - blobs that are sent to us: whole in one request, in a session
 * (uploads.h), or not at all, since another repository has them.
 *
 *	POST uploads/?mount=D[&from=R]    201 it is there, else as the next
 *	POST uploads/                     202 a session
 *	POST uploads/?digest=D            201
 *	PATCH ID [Content-Range: a-b]     202 so much came
 *	GET ID                            204 the same
 *	PUT ID?digest=D [with the rest]   201
 *	DELETE ID                         204
 *
 * What does not begin where the session ends is 416, and nothing of it is added.
 * A digest that the bytes do not have ends the session. Chunks are of any size, so
 * none is asked for (OCI-Chunk-Min-Length).
 */
#pragma once

#include "registry/v2.h"

void v2_upload_answer(struct v2_call *call);

/* 201: it is a blob of the repository. */
void v2_upload_answer_kept(struct v2_call *call, const struct digest *digest);
