/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outgrown.h - records of repositories that nothing leads to any more.
 *
 * What was baked goes when no tag of its repository leads to it, and no manifest
 * that was pushed there; a blob that was pushed when no manifest of its
 * repository does, and it was neither put nor asked for within
 * REPOSITORY_LEASE_MS. Its bytes are then a collection's, where nothing else
 * names them.
 *
 * One repository after the other is read in a snapshot. What seems outgrown is
 * looked at once more in the transaction that removes it, with all that was put
 * into the repository since; meanwhile no lease is in use (collect_exclude()),
 * and what one names stays.
 */
#pragma once

#include "layers/collect.h"
#include "layers/digest_set.h"
#include "registry/repository.h"

struct outgrown_options {
	struct store *store;
	struct collector *collector; /* opened, and not marked yet */
	int64_t now_ms;
	const struct cancel *cancel;
	bool dry_run; /* only tell */
	/* Whether a tag counts as gone, in a dry run; or NULL. */
	bool (*is_gone)(void *ctx, struct str reference);
	void *ctx;
};

/*
 * Remove them. What went, or would, is added to *out, by outgrown_name() where
 * it is a dry run. A blob that cannot be read ends it, with nothing removed that
 * might be named.
 */
int outgrown_sweep(const struct outgrown_options *options, struct digest_set *out,
		   uint64_t *out_count, struct err *err) MUST_CHECK;

/* A record's name in that set. */
void outgrown_name(struct str repository, const struct repository_item *item, struct digest *out);
