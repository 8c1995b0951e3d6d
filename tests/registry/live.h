/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - a store, the sample image in it and in a layout, and a registry of
 * its own, which a test starts as it likes.
 */
#pragma once

#include "tests/registry/live_registry.h"
#include "tests/registry/pulling.h"

/* One registry a test: it starts in a fifth of a second. */
struct live {
	struct pulling *pulling;
	struct live_registry registry;
	char dir[64];
	char ca[128];
};

int live_new(void **state);
int live_free(void **state);

/* It wants "me" and "secret". */
void live_start_with_password(struct live *live);

/* With a certificate of its own, whose file is live->ca. */
void live_start_with_tls(struct live *live);

#define TEST(name) cmocka_unit_test_setup_teardown(name, live_new, live_free)
