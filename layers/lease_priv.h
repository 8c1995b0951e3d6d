/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_priv.h - leases as a collector sees them.
 */
#pragma once

#include "layers/digest_set.h"
#include "layers/lease.h"

/*
 * Take run/collect: one collector at a time, for as long as the descriptor is
 * open. Waits for another one; ERR_CANCELLED.
 */
int lease_collect(struct store *store, const struct cancel *cancel, struct err *err) MUST_CHECK;

/*
 * Keep everybody from the store: no lease is in use until the returned
 * descriptor is closed, which has to be within a tenth of a second.
 */
int lease_exclude(struct store *store, const struct cancel *cancel, struct err *err) MUST_CHECK;

/*
 * With everybody excluded: add what the leases name, and lower *stamp to the
 * smallest that one of them began at (blob_priv.h). How many of them are of dead
 * owners, or -1. Those count, since they may have named what became a record a
 * moment ago; but where `living` asks for the others alone.
 */
int lease_read(struct store *store, bool living, struct digest_set *names, uint32_t *stamp,
	       struct err *err) MUST_CHECK;

/* With everybody excluded: remove those whose owner is dead. */
int lease_sweep(struct store *store, struct err *err) MUST_CHECK;
