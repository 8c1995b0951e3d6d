/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_header.h - the header of one entry of a tar, written without a library.
 *
 * Format: POSIX.1-2017, pax, "ustar Interchange Format"; a size that does not
 * fit the octal field is written in binary, as GNU tar does and all readers
 * understand. Owners and times are 0, so equal entries have equal headers.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>
#include <sys/types.h>

#define TAR_BLOCK ((size_t)512)
#define TAR_NAME_SIZE ((size_t)100)
#define TAR_OCTAL_MAX ((uint64_t)077777777777) /* of a size: eleven digits */

struct tar_header {
	char name[TAR_NAME_SIZE];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[TAR_NAME_SIZE];
	char magic[6];
	char version[2];
	char rest[TAR_BLOCK - 265];
};

struct tar_fields {
	char type; /* '0' file, '1' hard link, '2' symlink, '5' directory, '6' fifo, 'x' pax */
	struct str name; /* cut at TAR_NAME_SIZE, as is link: a pax record has the whole */
	struct str link;
	mode_t mode;
	uint64_t size; /* bytes */
};

void tar_header_make(const struct tar_fields *fields, struct tar_header *out);
