/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what the first process of a machine says of its command.
 *
 * Reports go through a pipe that the command does not have, so nothing that
 * runs in the machine can write one. STARTED comes first; then ENDED, or
 * BROKEN where no command could be started. A runtime's exit code says none of
 * this: it may have started nothing, or been killed.
 */
#pragma once

#include <stdint.h>

#define REPORT_FD 3 /* the first descriptor after the standard ones */

enum report_event { REPORT_STARTED = 1, REPORT_ENDED, REPORT_BROKEN };

/* The limits that something in the machine ran into. */
enum report_limit { REPORT_LIMIT_MEMORY = 1, REPORT_LIMIT_PIDS = 2 };

struct report {
	uint8_t event;  /* enum report_event */
	uint8_t value;  /* ENDED: the status, as a shell has it. BROKEN: an errno */
	uint8_t limits; /* ENDED: enum report_limit, or-ed */
};
