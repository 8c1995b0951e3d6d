/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_priv.h - the value of --chmod: octal from 0 to 07777, or changes as
 * chmod(1) has them, with an umask of 0.
 *
 * 	mode    = octal | change { "," change }
 * 	change  = { "u" | "g" | "o" | "a" } action { action }
 * 	action  = ( "+" | "-" | "=" ) ( "u" | "g" | "o" | { "r"|"w"|"x"|"X"|"s"|"t" } )
 *
 * A directory keeps its setuid and setgid bits under "=" that does not name
 * them.
 */
#pragma once

#include "layers/base/buf.h"

#include <sys/stat.h>

/* ERR_REFUSED for anything else. */
int mode_check(struct str text, struct err *err) MUST_CHECK;

/* The mode of something that had `old`; text was checked. */
mode_t mode_apply(struct str text, mode_t old, bool directory);

/* The permissions that a copy of this has; chmod is NULL where nothing is said of them. */
mode_t mode_copied(const char *chmod, const struct stat *st);
