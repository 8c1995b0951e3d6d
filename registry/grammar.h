/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grammar.h - how repositories and tags are spelt.
 *
 *	NAME  PART[/PART]...
 *	PART  [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*
 *	TAG   [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}
 *
 * Format: OCI distribution-spec 1.1, "Pulling manifests".
 */
#pragma once

#include "layers/base/buf.h"

#define GRAMMAR_NAME_MAX ((size_t)255) /* bytes; the most that clients agree on */
#define GRAMMAR_TAG_MAX ((size_t)128)  /* bytes; the specification's */

/* A repository's path, which has no host in front. */
bool grammar_is_name(struct str text);

/* A tag of a registry, or of a layout. */
bool grammar_is_tag(struct str text);
