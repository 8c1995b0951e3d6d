/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.h - removal of what nothing names any more, while the store is in
 * use.
 *
 * 	1 collect_open()       one collector at a time, in all processes
 * 	2 collect_exclude()    the floor above removes records; as often as it likes
 * 	3 collect_mark()       a snapshot of the records, and all that leases name
 * 	  collect_keep()       each root of that snapshot, and of the receipts since
 * 	4 collect_sweep()      the rest goes: trees, blobs, chunks, frames
 *
 * Nothing that a lease (lease.h) holds is removed; one of a dead owner counts
 * for the last time, but not in a dry run, which tells what goes in the end.
 * Others wait for one transaction at a time, a batch of COLLECT_BATCH_REFS
 * (collect_priv.h); chunks go only while no write session is open.
 *
 * Durability: killed at any moment it leaves a whole store, and the next
 * collection goes on. Trees go before their space is counted, records before
 * what they name.
 */
#pragma once

#include "layers/meta.h"
#include "layers/reach.h"

#define COLLECT_SESSION_MS 10000 /* for a write session's end; then chunks are left to the next */

struct collect_options {
	reach_names_fn *names;
	const struct cancel *cancel;
	bool dry_run; /* count, and change nothing */
};

struct collect_result {
	uint64_t blobs;
	uint64_t chunks;
	uint64_t chunk_bytes; /* given back to blobs/ */
	uint64_t trees;
	uint64_t tree_bytes; /* blocks of the file system */
	bool chunks_left;    /* a write session lasted too long: the next collection takes them */
	bool held_back;      /* by leases of the dead, which are gone: another one takes more */
};

struct collector;
int collect_open(struct store *store, const struct collect_options *options, struct collector **out,
		 struct err *err) MUST_CHECK;
void collect_close(struct collector *collector);

/*
 * Keep everybody from looking anything up until collect_admit(), which comes a
 * tenth of a second later at most: in one transaction, records may be removed
 * whose digests are not collect_is_leased(). Not in a dry run.
 */
int collect_exclude(struct collector *collector, struct err *err) MUST_CHECK;
void collect_admit(struct collector *collector);

/* A digest that some lease names, as of the last collect_exclude() or collect_mark(). */
bool collect_is_leased(const struct collector *collector, const struct digest *digest);

/* The snapshot whose roots are to be kept; borrowed. */
int collect_mark(struct collector *collector, struct meta **out, struct err *err) MUST_CHECK;

/* A blob with all that it leads to, or a diff id. */
int collect_keep(struct collector *collector, const struct digest *root, struct err *err)
	MUST_CHECK;
bool collect_keeps(const struct collector *collector, const struct digest *digest);

int collect_sweep(struct collector *collector, struct collect_result *out, struct err *err)
	MUST_CHECK;

/*
 * Remove a layer's tree, although something may name it: it is made again from
 * its blob. 1 removed, 0 it is leased, held or was not there, -1. *out_bytes is
 * what its blocks took.
 */
int collect_tree(struct collector *collector, const struct digest *diff_id, uint64_t *out_bytes,
		 struct err *err) MUST_CHECK;

DEFINE_AUTO(collector, struct collector *, collect_close);
