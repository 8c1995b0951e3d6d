/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources_priv.h - the sources of a COPY, found in its context and walked
 * (source_priv.h) one after the other.
 *
 * A source is cleaned as text ("dir/." is "dir", ".." stops at the root), then
 * resolved in the root; symlinks on its way, and itself, are followed inside.
 * With `*`, `?` or `[` in it, it is all that matches, in byte order, nothing
 * being followed from the first such part on; no match is no error. With
 * `parents` the source is the path before a part that is ".", else the root,
 * and of it everything is taken that the rest matches, as a pattern.
 *
 * What --exclude names is left out: of a directory below it, and of what a
 * wildcard matched by its own name; but a destination is made for a directory.
 * What the context's .dockerignore hides is not there.
 *
 * ERR_NOT_FOUND for a source that is not there: it says which rule hid it, or
 * what is there instead.
 */
#pragma once

#include "bake/context.h"
#include "bake/source_priv.h"
#include "layers/base/path.h"

#define SOURCES_NAMES_MAX ((size_t)32 << 20) /* of one directory: a million names */

int sources_walk(const struct context_sources *spec, const struct source_visitor *visitor,
		 struct err *err) MUST_CHECK;

/* Where the context is, to end a message with; an image is named in its midst: then "". */
void sources_show_root(const struct context_sources *spec, char text[static PATH_TEXT_MAX]);

/* ERR_NOT_FOUND, with a sentence; clean is the path as text. */
int sources_refuse_missing(const struct context_sources *spec, const char *written,
			   struct str clean, struct err *err) MUST_CHECK;
