/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_shared.h - a lease that threads of a process have together.
 *
 * A lease in use keeps collectors waiting; threads that come one after another
 * without a gap, each with one of its own, would keep them waiting for ever. Who
 * comes alone gets one in use, which costs two system calls; who comes while
 * others are at it joins them in one that rests.
 *
 * It holds the blobs that are put (blob.h) between joining and leaving, and not
 * what is only found in that time.
 *
 * Ownership: who has joined leaves, once. Threads: any.
 */
#pragma once

#include "layers/lease.h"

struct lease_shared;

int lease_shared_join(struct store *store, struct lease_shared **out, struct err *err) MUST_CHECK;
void lease_shared_leave(struct lease_shared *shared);

DEFINE_AUTO(lease_shared, struct lease_shared *, lease_shared_leave);
