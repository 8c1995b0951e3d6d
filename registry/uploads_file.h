/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uploads_file.h - the file of an upload session:
 *
 *	offset  what
 *	0       {"repository": "tools/app", "startedAt": "…", "v": 1}, a line
 *	4096    the bytes that came
 *
 * One without its line is half made, and nobody's.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define UPLOADS_FILE_PAGE ((size_t)4096)

/* A new one, which nothing came for. */
int uploads_file_make(int dirfd, const char *id, struct str repository, struct err *err) MUST_CHECK;

/* A descriptor, -2 where there is none of this name, -1. */
int uploads_file_open(int dirfd, struct str id, int flags, struct err *err) MUST_CHECK;

/* Whether its line says that it is the repository's. 1, 0, -1. */
int uploads_file_is_of(int fd, struct str repository, struct err *err) MUST_CHECK;

/* The bytes that came, where the file has this length. */
static inline uint64_t uploads_file_bytes(int64_t length)
{
	return length > (int64_t)UPLOADS_FILE_PAGE ? (uint64_t)length - UPLOADS_FILE_PAGE : 0;
}
