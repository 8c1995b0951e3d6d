/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - somewhere to put bytes, and somewhere to get them.
 *
 * The links of every chain in this program: tar writer -> digest -> cutter,
 * socket -> digest -> inflater -> tree. A concrete sink embeds struct sink and
 * finds itself by container_of(). Failure is final: after it nothing more is
 * written.
 */
#pragma once

#include "layers/base/buf.h"
#include "layers/base/embed.h"

struct sink {
	int (*write)(struct sink *sink, struct str bytes, struct err *err);
};

struct source {
	/*
	 * Lend the next bytes: 1 with at least one byte, valid until the next
	 * call; 0 at the end; -1 failure.
	 */
	int (*read)(struct source *source, struct str *out, struct err *err);
};

/* A sink that gathers everything in a buf; the buf's ceiling is its own. */
struct buf_sink {
	struct sink sink;
	struct buf *buf;
};

static inline int buf_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	return buf_add(container_of(sink, struct buf_sink, sink)->buf, bytes, err);
}

#define BUF_SINK(into) ((struct buf_sink){{buf_sink_write}, (into)})
