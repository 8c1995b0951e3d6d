/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - a directory's entry that somebody is at.
 *
 * Who makes a file or a directory bit by bit holds it by an exclusive flock on
 * itself. The kernel drops it with its last descriptor, however the process
 * ends; so what can be held is nobody's, and no clock has to tell.
 *
 * Invariant: what is held has the name that it was held by. Between opening
 * and locking it may have been moved away, and then it is not held. It stays
 * there as long as whoever moves such entries holds them first.
 */
#pragma once

#include "layers/base/err.h"

/*
 * Hold dirfd/name until *out is closed, at once or not at all. 1 held, 0
 * somebody else holds it or the name has gone, -1. Nobody can hold what is
 * neither file nor directory: 1, and *out is -1.
 */
int hold_try(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;

/* The same beside others who share it. */
int hold_share(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;

/* As hold_try(), but wait for somebody else to end. 0: the name has gone or is another's now. */
int hold_wait(int dirfd, const char *name, int *out, struct err *err) MUST_CHECK;
