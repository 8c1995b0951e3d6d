/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - a file that the user names: `what` says in messages what it is for. */
#pragma once

#include "layers/base/buf.h"
#include "layers/base/cancel.h"

/*
 * Append all of a file, a pipe, or of standard input for "-". ERR_NOT_FOUND for
 * what is not there or not readable, ERR_LIMIT at the buf's ceiling; a writer
 * who never comes is waited for until somebody cancels.
 */
int input_read(const char *what, const char *path, const struct cancel *cancel, struct buf *out,
	       struct err *err) MUST_CHECK;
