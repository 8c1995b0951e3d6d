/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h - compressed streams for tests, made by the libraries themselves. */
#pragma once

#include "layers/base/buf.h"

/* Append one gzip member, or one zstd frame, of these bytes. */
void pack_gzip(struct buf *out, struct str plain);
void pack_zstd(struct buf *out, struct str plain);

/* A zstd frame that asks its reader for a window of 2^log bytes. */
void pack_zstd_window(struct buf *out, struct str plain, int log);

/* A skippable frame (RFC 8878, 3.1.2) around these bytes. */
void pack_zstd_skippable(struct buf *out, struct str bytes);

/* A gzip member whose header has all that one may have. */
void pack_gzip_full_header(struct buf *out, struct str plain);
