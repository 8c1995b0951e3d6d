/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_fixture.h - a fresh store in a directory of its own, for one test.
 *
 *	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)
 *
 *	struct store_fixture *fixture = *state;
 *	... fixture->store ...
 *
 * The map is small, because sanitizers and valgrind cannot map a tebibyte.
 */
#pragma once

#include "layers/base/fd.h"
#include "layers/store.h"
#include "tests/check.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_FIXTURE_MAP ((uint64_t)1 << 30)

struct store_fixture {
	char parent[32]; /* a temporary directory; tests may put their own things in it */
	char path[48];   /* of the data directory in it */
	struct store *store;
};

static inline struct store *store_fixture_reopen(struct store_fixture *fixture, bool create)
{
	struct store_options options = {
		.path = fixture->path, .map_bytes = STORE_FIXTURE_MAP, .create = create};
	struct err err = {0};

	store_close(fixture->store);
	fixture->store = NULL;
	check_ok(store_open(&options, &fixture->store, &err), &err);
	return fixture->store;
}

static inline int store_fixture_open(void **state)
{
	struct store_fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	memcpy(fixture->parent, "/tmp/hearth-test-XXXXXX", sizeof("/tmp/hearth-test-XXXXXX"));
	assert_non_null(mkdtemp(fixture->parent));
	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/data", fixture->parent);
	*state = fixture;
	(void)store_fixture_reopen(fixture, true);
	return 0;
}

/* The entries of one of the store's directories. */
static inline int store_fixture_count(struct store *store, enum store_dir which)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;
	struct err err = {0};
	int count = 0;

	check_ok(fd_open_dir(store_dirfd(store, which), ".", &dir, &err), &err);
	while ((entry = readdir(dir)))
		count += !fd_is_dots(entry->d_name);
	return count;
}

static inline int store_fixture_remove_one(const char *path, const struct stat *st, int type,
					   struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline int store_fixture_close(void **state)
{
	struct store_fixture *fixture = *state;
	int rc;

	store_close(fixture->store);
	rc = nftw(fixture->parent, store_fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(fixture);
	return rc;
}
