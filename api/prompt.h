/* SPDX-License-Identifier: Apache-2.0 */
/* prompt.h - ask the person at the terminal. */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/secret.h"

/* Whether somebody is there: standard input and standard error are a terminal. */
bool prompt_is_possible(void);

/*
 * One line, without its end; what is typed is not shown where it is `hidden`.
 * ERR_INVALID where there is none, ERR_CANCELLED.
 */
int prompt_line(const char *question, bool hidden, const struct cancel *cancel, struct secret *out,
		struct err *err) MUST_CHECK;
