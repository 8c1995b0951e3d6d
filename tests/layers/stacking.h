/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacking.h - layers made by real commands on real overlays.
 *
 * Each step mounts an overlay on the trees below, runs a shell script in it,
 * and takes the difference. Then it checks what must hold of every layer: the
 * sealed upper directory is what the tar unpacks to, and stacking either shows
 * what the script left.
 */
#pragma once

#include "layers/diff_priv.h"
#include "tests/check.h"
#include "tests/layers/listing.h"

struct stacking {
	char path[64];
	int root;
	int trees;                 /* 1 is the lowest */
	struct diff_result result; /* of the last step */
	struct buf tar;
	struct buf cuts;  /* offsets in the tar, in decimal, one a line */
	struct buf names; /* of the tar's entries, one a line */
	int64_t clamp;    /* 0 for none */
	uint64_t max_entries;
};

int stacking_setup(void **state);
int stacking_teardown(void **state);

/* Run a script in a directory. */
void run_script(const char *dir, const char *script);

/* A layer made by a script in an empty directory, or in an overlay. */
void stack_step(struct stacking *stacking, const char *script);

/* The same, where taking the difference must fail in these words. */
void stack_refused(struct stacking *stacking, const char *script, enum err_kind kind,
		   const char *words);

/* Take the difference of two directories that are not mounted. */
int take_difference(struct stacking *stacking, int upperfd, int lowerfd, struct err *err);

/* Unpack the last tar into a fresh directory of this name. */
int stack_unpack(struct stacking *stacking, const char *name);

void check_names(struct stacking *stacking, const char *expected);

#define stack_test(name) cmocka_unit_test_setup_teardown(name, stacking_setup, stacking_teardown)
