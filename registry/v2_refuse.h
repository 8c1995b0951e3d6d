/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_refuse.h - errors as the distribution API says them:
 * {"errors": [{"code", "message", "detail"}]}.
 */
#pragma once

#include "layers/base/http.h"
#include "layers/digest.h"

enum v2_code {
	V2_UNKNOWN,
	V2_BLOB_UNKNOWN,
	V2_BLOB_UPLOAD_INVALID,
	V2_BLOB_UPLOAD_UNKNOWN,
	V2_DENIED,
	V2_DIGEST_INVALID,
	V2_MANIFEST_BLOB_UNKNOWN,
	V2_MANIFEST_INVALID,
	V2_MANIFEST_UNKNOWN,
	V2_NAME_INVALID,
	V2_NAME_UNKNOWN,
	V2_RANGE_INVALID,
	V2_SIZE_INVALID,
	V2_TAG_INVALID,
	V2_TOOMANYREQUESTS,
	V2_UNAUTHORIZED,
	V2_UNAVAILABLE,
	V2_UNSUPPORTED,
};

/* Answer this error, whatever the answer was before; headers that are there stay. */
void v2_refuse(struct http_response *out, unsigned status, enum v2_code code, const char *format,
	       ...) PRINTF(4, 5);

/* The same, where it is about one digest, which the error's detail has. */
void v2_refuse_digest(struct http_response *out, unsigned status, enum v2_code code,
		      const struct digest *digest, const char *message);

/*
 * The same of a failure, with the status that its kind has. What went wrong
 * inside (500) is logged, and not told.
 */
void v2_refuse_err(struct http_response *out, const struct err *why);
