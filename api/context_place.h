/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_place.h - put what COPY will read where it is wanted: into this data
 * directory, or by contexts.put to the daemon of HEARTH_URL; a directory is
 * packed while it is sent there.
 */
#pragma once

#include "api/cli.h"
#include "layers/digest.h"

/* text names a directory, a tar or, as "-", standard input. */
int context_place(const struct cli *cli, const char *text, struct digest *out, struct err *err)
	MUST_CHECK;
