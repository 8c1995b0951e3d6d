/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsck.h - the whole store is read and compared with what it should be.
 *
 * 	1 every chunk and every blob is hashed, counts are compared (layers/verify.h)
 * 	2 every record is compared with what it names
 * 	3 every layer is inflated, and its tree compared (layers/tree_check.h)
 *
 * What looks wrong is checked again while everybody else is kept out, and only
 * then reported, so bakes, pulls and collections beside it cause no false
 * alarm. What is damaged is removed with all records that name it: the next
 * bake or pull makes it again. Trees and counts are repaired.
 *
 * What a power cut or a kill may leave (chunks of no blob, records of trees
 * that are gone, proofs of blobs that were collected) is no damage.
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

enum fsck_kind {
	FSCK_CHUNK,   /* holds other bytes than its digest says */
	FSCK_BLOB,    /* is not whole */
	FSCK_COUNTS,  /* of chunks' uses were wrong */
	FSCK_RECORD,  /* cannot be read */
	FSCK_TAG,     /* names an image that is not whole */
	FSCK_IMAGE,   /* baked here, and not whole */
	FSCK_STEP,    /* its layer is not whole */
	FSCK_LOG,     /* of a step */
	FSCK_CONTEXT, /* a stored one */
	FSCK_HELD,    /* by a repository, and not whole */
	FSCK_TREE,    /* differs from its layer */
	FSCK_TREE_LOST,
	FSCK_TREE_UNKNOWN, /* no room to look at it */
	FSCK_KINDS,
};

#define FSCK_TEXT_MAX ((size_t)512)

struct fsck_finding {
	enum fsck_kind kind;
	struct digest digest; /* of it; of a step and a log the key; all zero for none */
	const char *name;     /* a reference, a slug, or "" */
	const char *text;     /* what is wrong with it */
};

/* Whether it is damage; else only something that is made again when needed. */
bool fsck_is_damage(enum fsck_kind kind);
const char *fsck_kind_name(enum fsck_kind kind);

typedef void fsck_tell_fn(void *ctx, const struct fsck_finding *finding);
typedef void fsck_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct fsck_options {
	struct store *store;
	const char *worker_path; /* of hearth-worker */
	bool dry_run;            /* report, and change nothing */
	bool bytes_only;         /* without 3 */
	fsck_tell_fn *tell;
	fsck_progress_fn *progress; /* or NULL; bytes */
	void *ctx;
	const struct cancel *cancel;
};

struct fsck_result {
	uint64_t damaged; /* findings that are damage */
	uint64_t noted;   /* others */
	uint64_t chunks;
	uint64_t bytes; /* of chunks */
	uint64_t blobs;
	uint64_t tar_bytes;  /* of layers, inflated and hashed */
	uint64_t tree_bytes; /* of trees' files, compared */
	int64_t hash_ms;     /* for chunks and blobs */
	int64_t ms;          /* for all of it */
};

int fsck_run(const struct fsck_options *options, struct fsck_result *out, struct err *err)
	MUST_CHECK;
