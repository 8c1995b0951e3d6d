/* SPDX-License-Identifier: Apache-2.0 */
/* small_fixture.h - the fixture's store on a file system of its own, which is soon full. */
#pragma once

#include "tests/layers/store_fixture.h"

#include <sys/mount.h>

/* options are those of tmpfs: "size=24m,mode=0700". */
static inline int small_fixture_open(void **state, const char *options)
{
	struct store_fixture *fixture;

	if (store_fixture_open(state) != 0)
		return -1;
	fixture = *state;
	store_close(fixture->store);
	fixture->store = NULL;
	if (mount("small", fixture->parent, "tmpfs", 0, options) < 0)
		return -1;
	(void)store_fixture_reopen(fixture, true);
	return 0;
}

static inline int small_fixture_close(void **state)
{
	struct store_fixture *fixture = *state;

	store_close(fixture->store);
	fixture->store = NULL;
	if (umount(fixture->parent) < 0)
		return -1;
	return store_fixture_close(state);
}
