/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/lease_reading.h"

#include "layers/store_priv.h"

#define LEASE_READING_MS ((int64_t)10 * 1000)
#define LEASE_READING_MAX ((size_t)10000) /* names in one */

struct lease_reading {
	struct store *store;
	struct lease *lease;
	int64_t since_ms;
	/* guarded by the store's reading_lock: */
	size_t names;
	size_t users;
};

static bool lease_reading_takes_more(const struct lease_reading *reading)
{
	return reading && reading->names < LEASE_READING_MAX &&
	       clock_monotonic_ms() - reading->since_ms < LEASE_READING_MS;
}

static void lease_reading_free(struct lease_reading *reading)
{
	if (!reading)
		return;
	lease_close(reading->lease);
	free(reading);
}
DEFINE_AUTO(lease_reading_made, struct lease_reading *, lease_reading_free);

static int lease_reading_make(struct store *store, struct lease_reading **out, struct err *err)
{
	AUTO(lease_reading_made) struct lease_reading *made = calloc(1, sizeof(*made));

	if (!made)
		abort();
	*made = (struct lease_reading){.store = store, .since_ms = clock_monotonic_ms()};
	if (lease_open_named(store, &made->lease, err) < 0 || lease_rest(made->lease, err) < 0)
		return -1;
	*out = steal_ptr(&made);
	return 0;
}

/* The one that takes names: ours, or made for that. */
static int lease_reading_join_locked(struct store *store, const struct digest *blob,
				     struct lease_reading **out, struct err *err)
	REQUIRES(store->reading_lock);
static int lease_reading_join_locked(struct store *store, const struct digest *blob,
				     struct lease_reading **out, struct err *err)
{
	AUTO(lease_reading_made) struct lease_reading *made = NULL;
	struct lease_reading *reading = store->reading;

	if (!lease_reading_takes_more(reading)) {
		if (lease_reading_make(store, &made, err) < 0)
			return -1;
		reading = made;
	}
	if (lease_add(reading->lease, blob, err) < 0)
		return -1;
	reading->names++;
	reading->users++;
	store->reading = reading;
	(void)steal_ptr(&made);
	*out = reading;
	return 0;
}

int lease_reading_begin(struct store *store, const struct digest *blob, struct lease_reading **out,
			struct err *err)
{
	int result;

	lock_take(&store->reading_lock);
	result = lease_reading_join_locked(store, blob, out, err);
	lock_drop(&store->reading_lock);
	return result;
}

void lease_reading_end(struct lease_reading *reading)
{
	struct store *store;
	bool last;

	if (!reading)
		return;
	store = reading->store;
	lock_take(&store->reading_lock);
	last = --reading->users == 0;
	if (last && store->reading == reading)
		store->reading = NULL;
	lock_drop(&store->reading_lock);
	if (last)
		lease_reading_free(reading);
}
