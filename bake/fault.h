/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - why a bake failed, as records and clients have it: {code, message,
 * step?, line?, exitCode?, logTail, terminal}.
 */
#pragma once

#include "layers/base/json.h"

#define FAULT_TAIL_MAX ((size_t)4 * 1024) /* bytes of UTF-8: what a person reads at once */

struct fault {
	enum err_kind kind;
	struct str message;
	size_t step;         /* from 1; 0 where no step failed */
	size_t line;         /* of its text, from 1; 0 where it was not refused */
	int exit_code;       /* of that step's command; 0 where it did not end by itself */
	struct str log_tail; /* of any bytes and length */
	bool terminal;       /* it is not tried again by itself */
};

/*
 * Whether such a failure may pass by itself: a registry or the network, space,
 * a process that was killed, a file that changed while it was read. A command
 * that fails would fail again.
 */
bool fault_is_passing(enum err_kind kind);

/* Owned. The tail's end is kept, whole characters of it; what is no UTF-8 becomes U+FFFD. */
json_t *fault_format(const struct fault *fault);
