/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_priv.h - the digest of a COPY's sources, fed entry by entry, so that
 * the copy can prove that it copied what the key names.
 */
#pragma once

#include "bake/source_priv.h"
#include "layers/digest.h"

struct context_hash {
	struct hasher hasher;
	bool owners; /* they count */
};

void context_hash_init(struct context_hash *hash, bool owners);
void context_hash_done(struct context_hash *hash);

/* The next source begins. */
void context_hash_source(struct context_hash *hash, const struct source *source);

/* An entry; a file that is no twin is followed by its blocks and their end. */
void context_hash_entry(struct context_hash *hash, const struct source_entry *entry);
void context_hash_block(struct context_hash *hash, uint64_t offset, struct str bytes);
void context_hash_file_end(struct context_hash *hash);

void context_hash_final(struct context_hash *hash, struct digest *out);
