/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulling.h - a store to pull into, beside the one that made the image, and
 * what is told meanwhile.
 */
#pragma once

#include "registry/pull.h"
#include "tests/layers/store_fixture.h"
#include "tests/registry/sample_image.h"

struct pulling {
	struct store_fixture *made; /* the maker's store; its directory is ours too */
	char layout[64];
	char path[64];
	struct store *store;
	struct sample_image image;
	struct reference reference;
	struct pull_spec spec;
	struct tag tag;
	/* by the events: */
	int fetched;
	int held;
};

int pulling_new(void **state);
int pulling_free(void **state);

/* Write the layout, with this fault, and be about to pull it as oci:LAYOUT:1.0. */
void pulling_make(struct pulling *pulling, enum sample_fault fault);

/* Be about to pull that reference instead. */
void pulling_refer(struct pulling *pulling, const char *fmt, ...) PRINTF(2, 3);

int pulling_run(struct pulling *pulling, struct err *err);

/* All that a pulled image needs is in the store, whole, and named. */
void pulling_check_whole(struct pulling *pulling);

/* A pull that failed left no name. */
void pulling_check_unnamed(struct pulling *pulling);
