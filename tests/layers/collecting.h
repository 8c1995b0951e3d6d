/* SPDX-License-Identifier: Apache-2.0 */
/* collecting.h - a collection that no record holds anything from: only leases do. */
#pragma once

#include "layers/blob.h"
#include "layers/collect.h"
#include "tests/layers/store_fixture.h"

/* Documents name nothing. */
static inline int collect_no_names(struct str document, reach_add_fn *add, void *ctx,
				   struct err *err)
{
	(void)document;
	(void)add;
	(void)ctx;
	(void)err;
	return 0;
}

/* All that no lease holds goes. */
static inline void collect_unleased(struct store *store)
{
	const struct collect_options options = {.names = collect_no_names};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct meta *meta;
	struct err err = {0};

	check_ok(collect_open(store, &options, &collector, &err), &err);
	check_ok(collect_mark(collector, &meta, &err), &err);
	check_ok(collect_sweep(collector, &result, &err), &err);
}

static inline bool has_blob(struct store *store, const struct digest *digest)
{
	struct blob_info info;
	struct err err = {0};

	return blob_find(store, digest, &info, &err) == 1;
}

/* The files of leases that rest. */
static inline int count_leases(struct store *store)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err err = {0};
	int count = 0;

	check_ok(fd_open_dir(store_dirfd(store, STORE_RUN), "leases", &dir, &err), &err);
	while ((entry = readdir(dir)))
		count += !fd_is_dots(entry->d_name);
	return count;
}
