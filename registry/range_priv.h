/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_priv.h - which part of a blob an answer holds.
 *
 * Format: RFC 9110, 14.4: "bytes 0-99/1234", the size "*" where unknown.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define RANGE_SIZE_UNKNOWN UINT64_MAX

struct range {
	uint64_t first;
	uint64_t last; /* inclusive, not less than first */
	uint64_t size; /* of the whole, or RANGE_SIZE_UNKNOWN */
};

int range_parse(struct str text, struct range *out, struct err *err) MUST_CHECK;

/* A size of decimal digits and nothing else, as in Content-Length. */
bool range_parse_number(struct str text, uint64_t *out);

/*
 * What an upload's status has arrived ("Range: 0-99", and with a unit in
 * front): false for what does not begin at 0.
 */
bool range_parse_sent(struct str text, uint64_t *out_last);
