/* SPDX-License-Identifier: Apache-2.0 */
/* fsck_priv.h - what the parts of the check share. */
#pragma once

#include "bake/fsck.h"
#include "layers/collect.h"
#include "layers/verify.h"

struct fsck {
	const struct fsck_options *options;
	struct verify_findings findings;
	bool sure; /* everybody else is kept out: findings are reported, and mended */
	uint64_t suspects;
	struct fsck_result result;
};

/* Report it; or, before it is sure, remember to look again. */
void fsck_find(struct fsck *fsck, const struct fsck_finding *finding);

/* Whether findings are to be mended now. */
static inline bool fsck_mends(const struct fsck *fsck)
{
	return fsck->sure && !fsck->options->dry_run;
}

/* What records name, and whether it is there and whole. */
int fsck_records(struct fsck *fsck, struct err *err) MUST_CHECK;

/* Every layer's tar, and the tree of each, by workers. */
int fsck_layers(struct fsck *fsck, struct err *err) MUST_CHECK;

/* Trees that are recorded and gone. The collector is NULL before it is sure. */
int fsck_lost_trees(struct fsck *fsck, struct collector *collector, struct err *err) MUST_CHECK;
