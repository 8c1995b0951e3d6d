/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instruction.h - one step's text as a RUN, COPY, ENV or WORKDIR.
 *
 * A step is one instruction; it spans lines only by continuation. Anything
 * else is ERR_REFUSED (which is terminal) and says what the four are, or which
 * one was probably meant. Forms that are legal in a Dockerfile and not
 * supported yet are ERR_REFUSED too, and named: nothing is ever ignored.
 *
 * Nothing is expanded here: variables are the plan's business (expand.h).
 *
 * The grammar is in instruction.c; of words and variables in expand_word.c, of
 * mounts in mount.h, of patterns in pattern_priv.h, of modes in mode_priv.h, of
 * .dockerignore in ignore_priv.h.
 */
#pragma once

#include "bake/mount.h"
#include "layers/base/json.h"

enum instruction_kind { INSTRUCTION_RUN, INSTRUCTION_COPY, INSTRUCTION_ENV, INSTRUCTION_WORKDIR };
#define INSTRUCTION_KINDS ((size_t)4)

/* Steps of each kind: all, and those that were found. */
struct instruction_counts {
	uint64_t all[INSTRUCTION_KINDS];
	uint64_t cached[INSTRUCTION_KINDS];
};

#define INSTRUCTION_WORDS_MAX 4096
#define INSTRUCTION_MAX ((size_t)1024 * 1024)             /* a step of a MiB or more is refused */
#define INSTRUCTION_ARGUMENT_MAX ((size_t)128 * 1024 - 1) /* execve(2), MAX_ARG_STRLEN */
#define INSTRUCTION_TEXT_MAX ((size_t)8 * 1024 * 1024)    /* canonical, and expanded */

struct words {
	char **at; /* owned, NUL-terminated strings */
	size_t count;
};

struct instruction {
	enum instruction_kind kind;
	struct buf text;   /* owned: canonical; continuations joined, comments gone, name in upper
			      case */
	char escape;       /* of the text, \ or `; all below is as with a backslash */
	bool exec_form;    /* RUN, COPY: JSON array */
	bool network_none; /* RUN --network=none */
	bool binds;        /* RUN: one of its mounts reads the context */
	struct words mount_texts; /* RUN: each --mount as it was written */
	struct mounts mounts;     /* RUN: the parsed mounts, of an expanded instruction */
	char *command;            /* RUN in shell form; else NULL */
	struct words args;        /* RUN exec form: argv. COPY: sources, then the destination.
				     ENV: key, value, key, value, …. WORKDIR: the path. Unexpanded. */
	char *chown;              /* COPY: unexpanded text, or NULL */
	char *chmod;              /* COPY: unexpanded text, or NULL */
	struct words excludes;    /* COPY: never expanded */
	bool parents;             /* COPY */
	bool link;                /* COPY: a layer of its own, whatever is below */
	char *from;               /* COPY: an image's name, or NULL for the context */
	const char *warning;      /* a warning for its author, or NULL */
};

int instruction_parse(struct str text, struct instruction *out, struct err *err) MUST_CHECK;
void instruction_done(struct instruction *instruction);

/* ERR_REFUSED for what a source of COPY may not be, as written or expanded. */
int instruction_check_source(struct str source, struct err *err) MUST_CHECK;

/* "RUN", "COPY", "ENV", "WORKDIR". */
const char *instruction_name(enum instruction_kind kind);

/* One more step, by its text; what is no instruction is not counted. */
void instruction_count(struct str text, bool cached, struct instruction_counts *counts);

static inline void auto_instruction_release(struct instruction *slot)
{
	instruction_done(slot);
}
#define auto_instruction AUTO(instruction)
