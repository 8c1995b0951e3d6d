/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_priv.h - one line of comma-separated fields, as --mount and --secret
 * have it.
 *
 * A field in double quotes may hold commas, and "" for a quote; a quote inside
 * a field that does not start with one is ERR_INVALID.
 *
 * Format: RFC 4180, one record.
 */
#pragma once

#include "layers/base/buf.h"

/*
 * Take the next field off *rest into out, which is replaced. *out_more is false
 * after the last one; an empty line has one empty field.
 */
int csv_next(struct str *rest, struct buf *out, bool *out_more, struct err *err) MUST_CHECK;
