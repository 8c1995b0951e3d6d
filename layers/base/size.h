/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - a number of bytes as people write it: 4096, 500M, 20GB, 20Gi, 64MiB.
 *
 * A unit is K, M, G, T or P, in either case. Followed by an i it is a power of
 * 1,024; without one the caller says of what (enum size_kilo). A B at the end,
 * or alone, changes nothing.
 */
#pragma once

#include "layers/base/buf.h"

enum size_kilo {
	SIZE_DISK = 1000,   /* as disks are sold and transfers counted */
	SIZE_MEMORY = 1024, /* as memory is */
};

/* All of text is the size, or ERR_INVALID says what was expected. */
int size_parse(struct str text, enum size_kilo kilo, uint64_t *out, struct err *err) MUST_CHECK;
