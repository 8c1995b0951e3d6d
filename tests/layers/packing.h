/* SPDX-License-Identifier: Apache-2.0 */
/* packing.h - compressed streams for tests, made by the libraries themselves. */
#pragma once

#include "layers/base/buf.h"

/* Append one gzip member, or one zstd frame, of these bytes. */
void pack_gzip(struct buf *out, struct str plain);
void pack_zstd(struct buf *out, struct str plain);

/* A gzip member whose header has all that one may have. */
void pack_gzip_full_header(struct buf *out, struct str plain);
