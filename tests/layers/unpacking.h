/* SPDX-License-Identifier: Apache-2.0 */
/* unpacking.h - the fixture of the unpacker's tests. */
#pragma once

#include "layers/unpack.h"
#include "tests/check.h"
#include "tests/layers/listing.h"
#include "tests/layers/tarball.h"

#include <sys/stat.h>

/* A tar in the making, beside an empty tree that has a neighbour. */
struct fixture {
	struct tarball tar;
	char path[64];
	int outer;
	int tree;
};

int unpacking_setup(void **state);
int unpacking_teardown(void **state);

/* End the tar and unpack it, lent step bytes at a time. */
int unpack_with(struct fixture *fixture, const struct unpack_limits *limits, size_t step,
		struct err *err);

/* The same, which must work. */
void unpack(struct fixture *fixture);

/* The same, which must fail in these words and without touching the neighbour. */
void check_refused(struct fixture *fixture, enum err_kind kind, const char *words);

/* The listing of the tree, without its root. */
void check_tree(struct fixture *fixture, const char *expected);

struct stat stat_of(struct fixture *fixture, const char *name);

#define EMPTY "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HI "sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"

#define unpack_test(name) cmocka_unit_test_setup_teardown(name, unpacking_setup, unpacking_teardown)
