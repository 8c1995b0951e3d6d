/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one line per event, for a person with grep.
 *
 *	2024-05-01T12:00:00Z info  layers  blob stored digest=sha256:9f86… bytes=4096
 *
 * An event is a constant lower-case phrase, then key=value pairs; the phrase
 * is what one greps for, so it never contains data. Control characters of the
 * data are written as "?", so that a line is one line.
 *
 * Library code logs only at debug: its errors go up through struct err and are
 * logged once, at the door. A warning is for what work goes on without, where
 * nobody above could be told.
 */
#pragma once

#include "layers/base/auto.h"

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_write(enum log_level level, const char *module, const char *fmt, ...) PRINTF(3, 4);

/* Show debug lines of these modules, "layers,registry", or of "all". False: one is unknown. */
bool log_set_debug(const char *modules);

/* Each .c file says #define LOG_MODULE "layers" before including this. */
#define log_error(...) log_write(LOG_ERROR, LOG_MODULE, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN, LOG_MODULE, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, LOG_MODULE, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, LOG_MODULE, __VA_ARGS__)
