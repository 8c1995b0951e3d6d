/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canonical.h - the content of a spec, however it was written.
 *
 * Canonical content is JSON with keys sorted by bytes and no blanks; arrays
 * keep their order, and no default is filled in. Two specs are the same when
 * the SHA-256 of their canonical content is.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/digest.h"

/* ERR_LIMIT where it is longer than max. */
int canonical_digest(const json_t *spec, size_t max, struct digest *out, struct err *err)
	MUST_CHECK;
