/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar_source_priv.h - an archive that the user names, as a plain tar that can
 * be read at any offset.
 *
 * A regular file that is a plain tar is read where it lies; what is compressed
 * (gzip or zstd, told by its first bytes) or comes as a stream is inflated into
 * an unnamed file of the store's staging first.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"

#define TAR_SOURCE_BYTES_MAX ((uint64_t)256 << 30) /* that a stream may inflate to */

struct tar_source {
	struct store *store; /* whose staging is used */
	struct str path;     /* "-" for streamfd */
	int streamfd;        /* 0 for none */
	const struct cancel *cancel;
	const struct cancel *cancel_too;
};

/* Of both cancels: 0, or ERR_CANCELLED. */
int tar_source_check_cancel(const struct tar_source *source, struct err *err) MUST_CHECK;

/* A plain tar of *out_size bytes; the caller owns *out_fd. Blocks for as long as a stream does. */
int tar_source_open(const struct tar_source *source, int *out_fd, uint64_t *out_size,
		    struct err *err) MUST_CHECK;
