/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_priv.h - what --chmod says: octal from 0 to 07777.
 */
#pragma once

#include "layers/base/buf.h"

#include <sys/types.h>

/* ERR_REFUSED for anything else; symbolic forms get a sentence of their own. */
int mode_parse(struct str text, mode_t *out, struct err *err) MUST_CHECK;
