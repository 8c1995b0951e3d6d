/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - the order of things, and why nothing is lost.
 *
 * A blob goes when it was not reached from the snapshot, no lease names it, and
 * it was put before the stamp. A record that is written after the snapshot may
 * still come to name it:
 *
 *	by who found it     while his lease was in use: all of it lay after the
 *	                    snapshot, which excluded him, so what he found it by is
 *	                    in the snapshot or was written since by one of these
 *	                    named in a lease: read before each deletion, with those
 *	                    that ended since (lease.c keeps them for us)
 *	by who put it       with a receipt: the floor above finds that while it
 *	                    marks, or the blob's stamp is later than ours
 *	                    after the snapshot: its stamp is later than ours
 *	                    before: his lease was there when we took the snapshot,
 *	                    and our stamp is not later than its
 */
#include "layers/collect_priv.h"

#include "layers/blob_priv.h"
#include "layers/proof.h"
#include "layers/variant.h"

int collect_open(struct store *store, const struct collect_options *options, struct collector **out,
		 struct err *err)
{
	AUTO(collector) struct collector *collector = calloc(1, sizeof(*collector));

	if (!collector)
		abort();
	*collector = (struct collector){
		.store = store, .options = *options, .collectfd = -1, .excludefd = -1};
	collector->collectfd = lease_collect(store, options->cancel, err);
	if (collector->collectfd < 0)
		return -1;
	*out = steal_ptr(&collector);
	return 0;
}

/* Leases of owners that died, or that ended while we needed to know of them. */
static void collect_sweep_leases(struct collector *collector)
{
	struct err ignored; /* the next collector removes what stays */
	auto_close int fd = lease_exclude(collector->store, collector->options.cancel, &ignored);

	if (fd >= 0 && lease_sweep(collector->store, &ignored) < 0)
		return;
}

void collect_close(struct collector *collector)
{
	if (!collector)
		return;
	collect_admit(collector);
	if (collector->collectfd >= 0 && !collector->options.dry_run)
		collect_sweep_leases(collector);
	reach_close(collector->reach);
	meta_abort(collector->snapshot);
	digest_set_done(&collector->leased);
	auto_close_release(&collector->collectfd);
	free(collector);
}

int collect_exclude(struct collector *collector, struct err *err)
{
	uint32_t ignored = 0; /* what has begun since is after our stamp anyway */
	int dead;

	collector->excludefd = lease_exclude(collector->store, collector->options.cancel, err);
	if (collector->excludefd < 0)
		return -1;
	dead = lease_read(collector->store, false, &collector->leased, &ignored, err);
	return dead < 0 ? -1 : 0;
}

void collect_admit(struct collector *collector)
{
	auto_close_release(&collector->excludefd);
	collector->excludefd = -1;
}

bool collect_is_leased(const struct collector *collector, const struct digest *digest)
{
	return digest_set_has(&collector->leased, digest);
}

static int collect_take_snapshot(struct collector *collector, struct err *err)
{
	const struct store_blobs *blobs;
	bool dry_run = collector->options.dry_run;
	int dead;

	if (store_blobs(collector->store, &blobs, err) < 0 ||
	    blob_stamp_now(blobs, &collector->stamp, err) < 0)
		return -1;
	dead = lease_read(collector->store, dry_run, &collector->leased, &collector->stamp, err);
	collector->result.held_back = dead > 0 && !dry_run;
	if (dead < 0 ||
	    reach_open(collector->store, collector->options.names, &collector->reach, err) < 0)
		return -1;
	return meta_begin(collector->store, META_READ, &collector->snapshot, err);
}

static int collect_keep_leased(struct collector *collector, struct err *err)
{
	size_t at = 0;
	struct digest digest;

	while (digest_set_next(&collector->leased, &at, &digest)) {
		if (collect_keep(collector, &digest, err) < 0)
			return -1;
	}
	return 0;
}

int collect_mark(struct collector *collector, struct meta **out, struct err *err)
{
	int result;

	collector->excludefd = lease_exclude(collector->store, collector->options.cancel, err);
	if (collector->excludefd < 0)
		return -1;
	result = collect_take_snapshot(collector, err);
	collect_admit(collector);
	if (result < 0 || collect_keep_leased(collector, err) < 0)
		return -1;
	*out = collector->snapshot;
	return 0;
}

int collect_keep(struct collector *collector, const struct digest *root, struct err *err)
{
	return reach_from(collector->reach, root, NULL, NULL, err);
}

bool collect_keeps(const struct collector *collector, const struct digest *digest)
{
	return reach_has(collector->reach, digest);
}

int collect_sweep(struct collector *collector, struct collect_result *out, struct err *err)
{
	int result = collect_trees(collector, err);

	meta_abort(steal_ptr(&collector->snapshot));
	reach_end(collector->reach); /* until then no freed page is used again */
	if (result < 0)
		return -1;
	if (collector->options.dry_run)
		result = collect_count_blobs(collector, err);
	else
		result = collect_blobs(collector, err);
	if (result == 0)
		result = collect_chunks(collector, err);
	if (result == 0 && collector->result.blobs > 0 && !collector->options.dry_run) {
		result = proof_sweep(collector->store, err);
		if (result == 0)
			result = variant_sweep(collector->store, err);
	}
	*out = collector->result;
	return result;
}
