/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/fsck_priv.h"

#include "layers/base/clock.h"
#include "layers/proof.h"
#include "layers/variant.h"
#include "registry/document.h"

#include <stdio.h>

static const struct {
	const char *name;
	bool damage;
} fsck_kinds[FSCK_KINDS] = {
	[FSCK_CHUNK] = {"chunk", true},
	[FSCK_BLOB] = {"blob", true},
	[FSCK_COUNTS] = {"counts", true},
	[FSCK_RECORD] = {"record", true},
	[FSCK_TAG] = {"tag", true},
	[FSCK_IMAGE] = {"image", true},
	[FSCK_STEP] = {"step", true},
	[FSCK_LOG] = {"log", true},
	[FSCK_CONTEXT] = {"context", true},
	[FSCK_HELD] = {"repository", true},
	[FSCK_TREE] = {"tree", true},
	[FSCK_TREE_LOST] = {"tree", false},
	[FSCK_TREE_UNKNOWN] = {"tree", false},
};

bool fsck_is_damage(enum fsck_kind kind)
{
	return fsck_kinds[kind].damage;
}

const char *fsck_kind_name(enum fsck_kind kind)
{
	return fsck_kinds[kind].name;
}

void fsck_find(struct fsck *fsck, const struct fsck_finding *finding)
{
	fsck->suspects++;
	if (!fsck->sure)
		return;
	if (fsck_is_damage(finding->kind))
		fsck->result.damaged++;
	else
		fsck->result.noted++;
	fsck->options->tell(fsck->options->ctx, finding);
}

static int fsck_hash(struct fsck *fsck, struct err *err)
{
	const struct verify_options options = {
		.cancel = fsck->options->cancel,
		.progress = fsck->options->progress,
		.ctx = fsck->options->ctx,
	};

	if (verify_read(fsck->options->store, &options, &fsck->findings, err) < 0)
		return -1;
	fsck->result.chunks = fsck->findings.chunk_count;
	fsck->result.bytes = fsck->findings.chunk_bytes;
	fsck->result.blobs = fsck->findings.blob_count;
	fsck->result.hash_ms = fsck->findings.ms;
	return 0;
}

static void fsck_find_each(struct fsck *fsck, const struct digest_set *set, enum fsck_kind kind,
			   const char *text)
{
	struct fsck_finding finding = {.kind = kind, .name = "", .text = text};
	size_t at = 0;

	while (digest_set_next(set, &at, &finding.digest))
		fsck_find(fsck, &finding);
}

static void fsck_find_bytes(struct fsck *fsck)
{
	const struct verify_findings *findings = &fsck->findings;
	char text[FSCK_TEXT_MAX];
	const struct fsck_finding counts = {.kind = FSCK_COUNTS, .name = "", .text = text};

	fsck_find_each(fsck, &findings->chunks, FSCK_CHUNK, "holds other bytes than its name says");
	fsck_find_each(fsck, &findings->blobs, FSCK_BLOB, "is not whole");
	if (findings->wrong_counts == 0)
		return;
	(void)snprintf(text, sizeof(text), "%ju counts of chunks, or lists of blobs, %s wrong",
		       (uintmax_t)findings->wrong_counts, fsck_mends(fsck) ? "were" : "are");
	fsck_find(fsck, &counts);
}

/* With everybody excluded: records go before what they name. */
static int fsck_judge(struct fsck *fsck, struct err *err)
{
	struct store *store = fsck->options->store;

	if (verify_again(store, &fsck->findings, err) < 0)
		return -1;
	fsck_find_bytes(fsck);
	if (fsck_records(fsck, err) < 0)
		return -1;
	if (!fsck_mends(fsck) || fsck->suspects == 0)
		return 0;
	if (verify_mend(store, &fsck->findings, err) < 0 || proof_sweep(store, err) < 0)
		return -1;
	return variant_sweep(store, err);
}

static int fsck_make_sure(struct fsck *fsck, struct err *err)
{
	const struct collect_options options = {.names = document_names,
						.cancel = fsck->options->cancel,
						.dry_run = fsck->options->dry_run};
	AUTO(collector) struct collector *collector = NULL;
	int result;

	fsck->sure = true;
	fsck->suspects = 0;
	if (collect_open(fsck->options->store, &options, &collector, err) < 0 ||
	    collect_exclude(collector, err) < 0)
		return -1;
	result = fsck_judge(fsck, err);
	collect_admit(collector);
	return result < 0 ? -1 : fsck_lost_trees(fsck, collector, err);
}

static int fsck_all(struct fsck *fsck, struct err *err)
{
	if (fsck_hash(fsck, err) < 0)
		return -1;
	fsck_find_bytes(fsck);
	if (fsck_records(fsck, err) < 0 || fsck_lost_trees(fsck, NULL, err) < 0)
		return -1;
	if (fsck->suspects > 0 && fsck_make_sure(fsck, err) < 0)
		return -1;
	return fsck->options->bytes_only ? 0 : fsck_layers(fsck, err);
}

int fsck_run(const struct fsck_options *options, struct fsck_result *out, struct err *err)
{
	struct fsck fsck = {.options = options};
	int64_t start = clock_monotonic_ms();
	int result = fsck_all(&fsck, err);

	verify_done(&fsck.findings);
	fsck.result.ms = clock_monotonic_ms() - start;
	*out = fsck.result;
	return result;
}
