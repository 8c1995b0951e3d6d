/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_out_priv.h - a tar of files whose sizes are known, to a sink.
 *
 * Format: ustar, with a pax record for a name that is too long; a size that does
 * not fit the octal field is written in binary, as GNU tar does and all readers
 * understand. Owners are root, modes 0644, times 0, so equal files make equal
 * tars.
 */
#pragma once

#include "layers/base/sink.h"

#include <stdint.h>

#define TAR_OUT_NAME_MAX ((size_t)256) /* a blob's of a layout has 141 */

/* The header; name is shorter than TAR_OUT_NAME_MAX. `size` bytes and tar_out_end_file() follow. */
int tar_out_begin_file(struct sink *out, const char *name, uint64_t size, struct err *err)
	MUST_CHECK;
int tar_out_end_file(struct sink *out, uint64_t size, struct err *err) MUST_CHECK;

/* All of a small file. */
int tar_out_file(struct sink *out, const char *name, struct str bytes, struct err *err) MUST_CHECK;

/* The end of the archive. */
int tar_out_end(struct sink *out, struct err *err) MUST_CHECK;
