/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_priv.h - the digest of a COPY's sources, fed entry by entry, so that
 * the copy can prove that it copied what the key names.
 */
#pragma once

#include "bake/context.h"
#include "bake/source_priv.h"
#include "layers/digest.h"

struct context_hash {
	struct hasher hasher;
	const char *chmod;  /* of the COPY; borrowed, or NULL */
	bool owners;        /* owners count */
	bool whole;         /* the source's own attributes do, too, where it is a directory */
	char pending[4096]; /* most of what is added is short */
	size_t used;
};

void context_hash_init(struct context_hash *hash, const struct context_sources *sources);
void context_hash_done(struct context_hash *hash);

/* The next source begins. */
void context_hash_source(struct context_hash *hash, const struct source_spec *source);

/* An entry; a file that is no twin is known by then. */
void context_hash_entry(struct context_hash *hash, const struct source_entry *entry);
void context_hash_final(struct context_hash *hash, struct digest *out);

/*
 * What an open file is, whatever its mode: its attributes, size and bytes. end()
 * makes the entry known; done() is due whether it was called or not.
 */
void context_file_begin(struct context_hash *hash, const struct source_entry *entry);
void context_file_block(struct context_hash *hash, uint64_t offset, struct str bytes);
void context_file_end(struct context_hash *hash, struct source_entry *entry);

static inline void auto_context_hash_release(struct context_hash *slot)
{
	context_hash_done(slot);
}
