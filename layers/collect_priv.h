/* SPDX-License-Identifier: Apache-2.0 */
/* collect_priv.h - what the files of the collector share. */
#pragma once

#include "layers/collect.h"
#include "layers/lease_priv.h"
#include "layers/store_priv.h"

#define COLLECT_BATCH_BLOBS ((size_t)64)
#define COLLECT_BATCH_REFS ((size_t)2048) /* chunks of blobs: a page of 4 KiB each, dirty */
#define COLLECT_BATCH_CHUNKS ((size_t)2048)

struct collector {
	struct store *store;
	struct collect_options options;
	int collectfd;            /* run/collect */
	int excludefd;            /* -1 while others are let in */
	struct digest_set leased; /* by any lease since collect_open() */
	uint32_t stamp;           /* blobs put after it stay */
	struct meta *snapshot;
	struct reach *reach;
	struct collect_result result;
};

int collect_trees(struct collector *collector, struct err *err) MUST_CHECK;
int collect_blobs(struct collector *collector, struct err *err) MUST_CHECK;

/* What blobs/ would give back without the blobs that are not kept. */
int collect_count_blobs(struct collector *collector, struct err *err) MUST_CHECK;

/* Chunks without a count, and frames without a chunk. */
int collect_chunks(struct collector *collector, struct err *err) MUST_CHECK;
