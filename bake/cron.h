/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cron.h - recurring times, as crontab(5) writes them: minute, hour, day of the
 * month, month and day of the week, in UTC.
 *
 * A field is a list of numbers and ranges, `*` for all of them, and a range or
 * `*` may be followed by `/STEP`. Months and weekdays have names, too; Sunday
 * is 0 and 7. Where neither day field starts with `*` a day need match only one
 * of the two, as in Vixie's cron.
 *
 * Invariant: a struct cron that cron_parse() gave has a next time after every
 * instant.
 */
#pragma once

#include "layers/base/buf.h"

#define CRON_TEXT_MAX ((size_t)256) /* every number of a field fits, twice */

struct cron {
	uint64_t minutes; /* bit n: n is in the list */
	uint32_t hours;
	uint32_t days;   /* of the month, from bit 1 */
	uint32_t months; /* from bit 1 */
	uint32_t weekdays;
	bool either_day; /* one of days and weekdays is enough */
};

/* ERR_INVALID for anything else, and for an expression that no day ever matches. */
int cron_parse(struct str text, struct cron *out, struct err *err) MUST_CHECK;

/* The first instant after this one, both in milliseconds since 1970. */
int64_t cron_next(const struct cron *cron, int64_t after_ms);
