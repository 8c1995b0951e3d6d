/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h - what a COPY read, name by name, so that it can be said later
 * which file made the step run again.
 *
 * A listing is kept with the step as a blob: pairs of a path and of words about
 * what is there ("0644, 12 bytes, 1a2b3c4d5e6f"), each ended by a NUL, as
 * sources are walked. It is no part of a key.
 */
#pragma once

#include "bake/context.h"
#include "layers/base/json.h"

#define LISTING_BYTES_MAX ((size_t)256 * 1024 * 1024) /* of a COPY of CONTEXT_ENTRIES_MAX names */

/*
 * Keep the listing of what has this digest; durable when it returns 0.
 * ERR_UNAVAILABLE when the sources are no longer what they were.
 */
int listing_keep(const struct context_sources *sources, const struct digest *content,
		 const struct cancel *cancel, struct digest *out, struct err *err) MUST_CHECK;

/*
 * Append to differences (differences.h) the names that are not what they were
 * when the listing was kept, at most LISTING_DIFFERENCES_MAX. A file's digest is
 * told only where its mode and size are what they were.
 */
#define LISTING_DIFFERENCES_MAX ((size_t)100)
int listing_compare(const struct digest *kept, const struct context_sources *sources,
		    const struct cancel *cancel, json_t *differences, struct err *err) MUST_CHECK;
