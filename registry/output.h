/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - a file that a user wants written: whole, or not at all.
 *
 * What is written has no name until output_commit() has synced it and given it
 * the user's name, in place of the file that has that name or to which a link
 * of that name leads (/dev/stdout is one). The directory must exist. A crash, a
 * failure or a cancel leaves what was there, and nothing else. Anything but a
 * regular file (a fifo, a device, `-` for a stream) is written as the bytes
 * come.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/sink.h"

#include <stdint.h>

#define OUTPUT_STAGED_MAX ((size_t)64)

struct output {
	struct sink sink;
	const struct cancel *cancel;
	int fd;
	int dirfd;                      /* -1 for what is written as it comes */
	char *name;                     /* owned: in dirfd */
	char staged[OUTPUT_STAGED_MAX]; /* "" for a file without a name */
	uint64_t done;                  /* bytes */
	uint64_t flushed;               /* of them, on their way to the disk */
};

#define OUTPUT_INIT ((struct output){.fd = -1, .dirfd = -1})

/* streamfd is what `-` is: duplicated. ERR_NOT_FOUND, ERR_INVALID for a directory. */
int output_open(struct str path, int streamfd, const struct cancel *cancel, struct output *out,
		struct err *err) MUST_CHECK;
int output_commit(struct output *output, struct err *err) MUST_CHECK;

/* Without a commit what was written is gone. */
void output_close(struct output *output);

static inline void auto_output_release(struct output *slot)
{
	output_close(slot);
}
#define auto_output AUTO(output)
