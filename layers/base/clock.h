/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - instants and durations.
 *
 * Instants are milliseconds since 1970 UTC, and RFC 3339 with milliseconds in
 * text. Durations are measured on the monotonic clock.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define CLOCK_TEXT_MAX (sizeof("+9999-12-31T23:59:59.999Z"))

int64_t clock_now_ms(void);
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);

/* Where the time comes from, for what a test must not wait for. NULL is clock_now_ms(). */
struct clock {
	int64_t (*now_ms)(const struct clock *clock);
};

static inline int64_t clock_ask_ms(const struct clock *clock)
{
	return clock ? clock->now_ms(clock) : clock_now_ms();
}

/* RFC 3339 UTC with milliseconds, "2026-01-31T12:00:00.000Z". */
const char *clock_format(int64_t ms, char text[static CLOCK_TEXT_MAX]);

/* Parse RFC 3339 with any offset and fraction, as image configs have it. */
int clock_parse(struct str text, int64_t *out_ms, struct err *err) MUST_CHECK;

/* This boot's id, as the kernel names it (36 characters and the NUL). */
#define BOOT_ID_MAX ((size_t)37)
int clock_boot_id(char text[static BOOT_ID_MAX], struct err *err) MUST_CHECK;
