/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal_priv.h - a registry's "no" in words that a user can act on.
 *
 * Format: OCI distribution-spec 1.1, "Error Codes". The body may be anything,
 * HTML included; what is no list of errors is not shown.
 */
#pragma once

#include "layers/base/buf.h"

#define REFUSAL_TEXT_MAX ((size_t)200) /* of the server's own words */

/*
 * Fill *err for a status that is no success: ERR_NOT_FOUND, ERR_UNAUTHORIZED,
 * ERR_DENIED, ERR_BUSY or ERR_REMOTE. what was asked for: "manifest 1.0". Always
 * -1.
 */
int refusal_explain(long status, struct str body, bool has_credentials, const char *what,
		    struct err *err);
