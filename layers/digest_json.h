/* SPDX-License-Identifier: Apache-2.0 */
/* digest_json.h - digests as members of JSON objects: their text, as OCI writes it. */
#pragma once

#include "layers/base/json.h"
#include "layers/digest.h"

void digest_json_set(json_t *object, const char *key, const struct digest *digest);

/* As json_need_string(): ERR_INVALID where it is missing, or no digest. */
int digest_json_need(const json_t *object, const char *path, const char *key, struct digest *out,
		     struct err *err) MUST_CHECK;
