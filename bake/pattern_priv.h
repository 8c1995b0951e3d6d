/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_priv.h - the patterns of .dockerignore, --exclude and --parents.
 *
 * A pattern is rooted: "foo" is not "a/foo". `*` is any text without a slash,
 * `?` any character but one, `[a-z]` and `[^a-z]` a character of a class, `\`
 * takes the next one as it is. A double star with a slash behind it is any
 * number of directories, none included; at the end it is all that is below.
 *
 * What matches a directory matches all below it.
 *
 * Matching takes the time of the pattern's length times the path's, whatever
 * they are.
 */
#pragma once

#include "layers/base/path.h"

#include <stdint.h>

struct pattern_part;
struct pattern_range;

struct pattern {
	char *text; /* owned: the pattern, cleaned */
	bool literal;
	struct pattern_part *parts; /* owned */
	size_t count;
	struct pattern_range *ranges; /* owned: of all classes */
	size_t range_count;
	unsigned char *states; /* owned: room for two sets of them */
};

/* Cleans the text as a relative path. ERR_REFUSED for an open class or escape. */
int pattern_parse(struct str text, struct pattern *out, struct err *err) MUST_CHECK;
void pattern_done(struct pattern *pattern);

enum pattern_reach {
	PATTERN_MISS,  /* neither the path nor anything below it */
	PATTERN_BELOW, /* not the path, and perhaps something below it */
	PATTERN_HIT,   /* the path, or a directory on the way to it */
};

/* path is relative and clean; "" is the root, which matches nothing itself. */
enum pattern_reach pattern_try(const struct pattern *pattern, struct str path);

/* One name against one part of a COPY's source: no slashes in either. */
bool pattern_matches_name(const struct pattern *pattern, struct str name);

/* Whether `*`, `?` or `[` stands in it, and not behind a backslash. */
bool pattern_has_wildcard(struct str text);

static inline void auto_pattern_release(struct pattern *slot)
{
	pattern_done(slot);
}
#define auto_pattern AUTO(pattern)
