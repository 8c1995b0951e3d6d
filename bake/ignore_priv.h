/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignore_priv.h - what a COPY does not see: the lines of the context's
 * .dockerignore, or the patterns of --exclude. Of the rules that match a path,
 * or a directory on the way to it, the last one decides; one with `!` in front
 * lets it be seen again, also where its directory is hidden.
 *
 * The file is the one in the context's root: there is no Dockerfile, and so
 * none beside it that would win, nor one that must be sent though it is listed.
 * It applies to the context only, never to the image of --from.
 *
 * 	file  = { line }              a byte order mark in front is dropped
 * 	line  = "#" anything          only in the first column
 * 	      | blanks
 * 	      | blanks [ "!" blanks ] pattern blanks      pattern_priv.h; "/" in
 * 	                              front of it, "." and ".." in it are cleaned;
 * 	                              one that leads out names nothing
 */
#pragma once

#include "bake/instruction.h"
#include "bake/pattern_priv.h"

#define IGNORE_FILE ".dockerignore"
#define IGNORE_FILE_MAX ((size_t)1024 * 1024)
#define IGNORE_RULES_MAX ((size_t)10000)

struct ignore_rule {
	struct pattern pattern; /* owned */
	bool shows;             /* ! */
	size_t line;            /* from 1 */
};

struct ignore {
	struct ignore_rule *rules; /* owned, in order */
	size_t count;
};

/* ERR_REFUSED, with the line, for what is no pattern; ERR_LIMIT above the ceilings. */
int ignore_parse(struct str text, struct ignore *out, struct err *err) MUST_CHECK;

/* The file in a context's root; none, or an empty one, has no rules. */
int ignore_read(int contextfd, struct ignore *out, struct err *err) MUST_CHECK;

/* One rule a word, as --exclude gives them. */
int ignore_from_words(const char *const *words, size_t count, struct ignore *out, struct err *err)
	MUST_CHECK;

void ignore_done(struct ignore *ignore);

enum ignore_verdict {
	IGNORE_SEEN,
	IGNORE_HIDDEN,     /* and so is all below it */
	IGNORE_HIDDEN_TOP, /* but a rule may show something below it */
};

/* path is relative and clean. *out_rule is the rule that hides it; else it is not set. */
enum ignore_verdict ignore_judge(const struct ignore *ignore, struct str path,
				 const struct ignore_rule **out_rule);

static inline void auto_ignore_release(struct ignore *slot)
{
	ignore_done(slot);
}
#define auto_ignore AUTO(ignore)
