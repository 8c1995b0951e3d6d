/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - what keeps things from collection while somebody works with them.
 *
 * Whoever looks things up in the store, and relies on them afterwards, opens a
 * lease first. While the lease is in use nothing is deleted: it holds a shared
 * flock, which a collector takes exclusively for each of its short steps.
 * Before its owner waits for something long, the lease is put to rest: the
 * digests found so far are written into a file of its own, and the flock is
 * dropped. What a resting lease names stays, with all that it leads to, and so
 * does every blob that was made since.
 *
 * 	run/                  the flock: shared in use, exclusive to delete
 * 	run/leases/<ulid>     a resting lease; a flock says that its owner lives
 * 	run/collect           a flock: somebody collects
 *
 * Invariant: a blob that a record comes to name was found while its lease was in
 * use, or was named in it before it was looked for, or was put (blob.h) since it
 * rested.
 *
 * A lease ends with its process, however that ends. Nothing is synced: no lease
 * outlives a boot. A fully cached bake pays two system calls.
 *
 * Threads: a lease belongs to one at a time; a process may have many.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

struct lease;

/* In use from now on; waits while a collector deletes, a tenth of a second at most. */
int lease_open(struct store *store, struct lease **out, struct err *err) MUST_CHECK;
void lease_close(struct lease *lease);

/* The same, for one that holds what is named in it, and not what is put meanwhile. */
int lease_open_named(struct store *store, struct lease **out, struct err *err) MUST_CHECK;

/*
 * Name what is to be held: blobs, diff ids, keys of steps. While the lease
 * rests, look for them only after this has returned.
 */
int lease_add(struct lease *lease, const struct digest *digest, struct err *err) MUST_CHECK;

/* Let collectors work; what was added stays. Nothing happens if it rests already. */
int lease_rest(struct lease *lease, struct err *err) MUST_CHECK;

/* In use again. */
int lease_resume(struct lease *lease, struct err *err) MUST_CHECK;

DEFINE_AUTO(lease, struct lease *, lease_close);
