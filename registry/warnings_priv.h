/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warnings_priv.h - what a registry wants the user to know.
 *
 * `Warning: 299 - "text"` may come with any answer. It is told once, in the
 * registry's words, and nothing is done about it. Other codes are those of
 * caches, and are passed over.
 *
 * Format: OCI distribution-spec 1.1, "Warnings"; RFC 7234, 5.5.
 * Threads: any may hear an answer; the function is called in its thread.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/digest.h"
#include "registry/http_priv.h"

#define WARNINGS_BYTES_MAX ((size_t)4096) /* of one answer: the spec's ceiling for registries */
#define WARNINGS_TOLD_MAX 16              /* different ones, then no more */

typedef void warning_fn(void *ctx, struct str text);

struct warnings {
	warning_fn *fn; /* or NULL */
	void *ctx;
	struct lock lock;
	/* guarded by lock: */
	struct digest told[WARNINGS_TOLD_MAX];
	size_t told_count;
};

/* Take the next one off a header's value into the empty *out: false where none is left. */
bool warnings_next(struct str *field, struct buf *out);

/* Tell those of an answer that were not told before. */
void warnings_hear(struct warnings *warnings, const struct http_reply *reply);
