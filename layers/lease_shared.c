/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/lease_shared.h"

#include "layers/store_priv.h"

/* What one lease holds back goes once it has ended: so nobody joins an old one. */
#define LEASE_SHARED_MS ((int64_t)10 * 1000)

struct lease_shared {
	struct store *store;
	struct lease *lease;
	int64_t since_ms;
	size_t users; /* guarded by the store's share_lock */
};

/* The one that rests, unless it is old. */
static struct lease_shared *lease_shared_find_locked(struct store *store)
	REQUIRES(store->share_lock);
static struct lease_shared *lease_shared_find_locked(struct store *store)
{
	struct lease_shared *shared = store->shared_lease;

	if (!shared || clock_monotonic_ms() - shared->since_ms >= LEASE_SHARED_MS)
		return NULL;
	shared->users++;
	return shared;
}

/* Others who come may join this one from now on. */
static int lease_shared_open_up(struct lease_shared *shared, struct err *err)
{
	struct store *store = shared->store;

	if (lease_rest(shared->lease, err) < 0)
		return -1;
	lock_take(&store->share_lock);
	store->shared_lease = shared;
	lock_drop(&store->share_lock);
	return 0;
}

int lease_shared_join(struct store *store, struct lease_shared **out, struct err *err)
{
	AUTO(lease_shared) struct lease_shared *made = NULL;
	struct lease_shared *found;
	bool alone;

	lock_take(&store->share_lock);
	found = lease_shared_find_locked(store);
	alone = store->sharing == 0;
	store->sharing++;
	lock_drop(&store->share_lock);
	if (!found) {
		made = calloc(1, sizeof(*made));
		if (!made)
			abort();
		*made = (struct lease_shared){
			.store = store, .since_ms = clock_monotonic_ms(), .users = 1};
		if (lease_open(store, &made->lease, err) < 0 ||
		    (!alone && lease_shared_open_up(made, err) < 0))
			return -1;
	}
	*out = found ? found : steal_ptr(&made);
	return 0;
}

void lease_shared_leave(struct lease_shared *shared)
{
	struct store *store;
	bool last;

	if (!shared)
		return;
	store = shared->store;
	lock_take(&store->share_lock);
	store->sharing--;
	last = --shared->users == 0;
	if (last && store->shared_lease == shared)
		store->shared_lease = NULL;
	lock_drop(&store->share_lock);
	if (!last)
		return;
	lease_close(shared->lease);
	free(shared);
}
