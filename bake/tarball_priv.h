/* SPDX-License-Identifier: Apache-2.0 */
/* tarball_priv.h - the blob of a context while it is written. */
#pragma once

#include "bake/tarball.h"

struct tarball_writer;
int tarball_writer_open(struct store *store, struct tarball_writer **out, struct err *err)
	MUST_CHECK;
void tarball_writer_close(struct tarball_writer *writer);

/* ERR_LIMIT above TARBALL_BYTES_MAX. */
int tarball_writer_add(struct tarball_writer *writer, struct str bytes, struct err *err) MUST_CHECK;

/* What was written is a stored context. Nothing is written where it was one already. */
int tarball_writer_finish(struct tarball_writer *writer, struct digest *out, struct err *err)
	MUST_CHECK;

DEFINE_AUTO(tarball_writer, struct tarball_writer *, tarball_writer_close);
