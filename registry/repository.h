/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repository.h - what each repository holds: manifests, blobs, and which
 * manifests are about which others.
 *
 * Blobs are one set for the whole store; a record here is the leave to read
 * one by a repository's name. The tags of what is ours are in table `tags`
 * (tag.h), as localhost/REPOSITORY:TAG, so that what was pushed is listed,
 * removed and baked on like all images, and what was baked is served.
 *
 * Where a record comes from says how it goes:
 *	pushed    a manifest stays until it is deleted; a blob goes
 *	          REPOSITORY_LEASE_MS after it was put or asked for last, where no
 *	          manifest of its repository names it
 *	baked     with the tags that lead to it: put when a tag is put
 *	mirrored  when the mirror lets it go
 *
 * A blob that is pushed has a receipt at first (layers/receipt.h), which is as good
 * as its record: it is found, deleted and gone through like one. The record comes
 * with the first manifest that names it (repository_confirm()), or with the next
 * collection (unrecorded.h).
 *
 * Invariant: what a record names is in the store. Whoever puts one holds a lease
 * (layers/lease.h), as for any record. A name is at most GRAMMAR_NAME_MAX
 * bytes of a reference's path, so it has none below '-'.
 */
#pragma once

#include "layers/meta.h"
#include "layers/receipt.h"
#include "registry/grammar.h"
#include "registry/outline.h"
#include "registry/reference.h"

/* NOLINTNEXTLINE(misc-redundant-expression): two numbers that are one */
_Static_assert(GRAMMAR_NAME_MAX == RECEIPT_NAME_MAX, "a repository has receipts");

#define REPOSITORY_TYPE_MAX ((size_t)256) /* a media type and its NUL */
#define REPOSITORY_LEASE_MS ((int64_t)24 * 3600 * 1000)

enum repository_kind { REPOSITORY_BLOB, REPOSITORY_MANIFEST };
enum repository_source { REPOSITORY_PUSHED, REPOSITORY_BAKED, REPOSITORY_MIRRORED };

struct repository_item {
	enum repository_kind kind;
	enum repository_source source;
	struct digest digest; /* as it is asked for: a sha512 perhaps */
	struct digest blob;   /* the same bytes; as it is found always a sha256, the store's own */
	uint64_t size;        /* bytes */
	int64_t at_ms;        /* when it was put */
	char media_type[REPOSITORY_TYPE_MAX]; /* of a manifest */
};

/* 1, 0, -1. */
int repository_find(struct meta *meta, struct str repository, enum repository_kind kind,
		    const struct digest *digest, struct repository_item *out, struct err *err)
	MUST_CHECK;

/* What was pushed stays so, whatever else brings it; else the last one counts. */
int repository_put(struct meta *meta, struct str repository, const struct repository_item *item,
		   struct err *err) MUST_CHECK;

/* The same of a manifest, whose outline says what it is about. */
int repository_put_manifest(struct meta *meta, struct str repository,
			    const struct repository_item *item, const struct outline *outline,
			    struct err *err) MUST_CHECK;

/* What was found by a receipt has its record from now on; one that has is left alone. */
int repository_confirm(struct meta *meta, struct str repository, const struct repository_item *item,
		       struct err *err) MUST_CHECK;

/* What the receipt says is a record from now on; the receipt stays. */
int repository_put_receipt(struct meta *meta, const struct receipt *receipt, struct err *err)
	MUST_CHECK;

/* What was pushed follows the tags from now on, as if it were baked. */
int repository_release(struct meta *meta, struct str repository, const struct repository_item *item,
		       struct err *err) MUST_CHECK;

/*
 * 1 deleted, 0 was not there. Tags are left alone. A receipt goes at once, in a
 * commit of its own: the transaction is no shared one.
 */
int repository_del(struct meta *meta, struct str repository, enum repository_kind kind,
		   const struct digest *digest, struct err *err) MUST_CHECK;

/* Somebody relies on it from now on (HEAD, mount): one system call, see layers/use.h. */
void repository_note(struct store *store, const struct repository_item *item);

/* Whether it holds a manifest. 1, 0, -1. */
int repository_exists(struct meta *meta, struct str repository, struct err *err) MUST_CHECK;

/* Or anything at all: blobs come first. 1, 0, -1. */
int repository_is_begun(struct meta *meta, struct str repository, struct err *err) MUST_CHECK;

/*
 * All items of every repository, or those of one that have a record; until fn
 * returns non-zero, which is returned.
 */
typedef int repository_each_fn(void *ctx, struct str repository, const struct repository_item *item,
			       struct err *err);
int repository_each(struct meta *meta, repository_each_fn *fn, void *ctx, struct err *err)
	MUST_CHECK;
int repository_each_in(struct meta *meta, struct str repository, enum repository_kind kind,
		       repository_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The names of repositories that hold a manifest and come after this one, in byte order. */
typedef int repository_name_fn(void *ctx, struct str name, struct err *err);
int repository_each_name(struct meta *meta, struct str after, repository_name_fn *fn, void *ctx,
			 struct err *err) MUST_CHECK;

/* The next name behind this one, in place, also of a repository without a manifest. 1, 0, -1. */
int repository_next_name(struct meta *meta, char name[static GRAMMAR_NAME_MAX + 1], struct err *err)
	MUST_CHECK;

/* Whether a manifest's own record says that it is about this one. 1, 0, -1. */
int repository_has_referrer(struct meta *meta, struct str repository, const struct digest *subject,
			    const struct digest *digest, struct err *err) MUST_CHECK;

/*
 * The manifests that are about this one, as the referrers API describes them,
 * in the order of their digests; behind `after`, where it is not NULL.
 */
typedef int repository_referrer_fn(void *ctx, const struct digest *digest, const json_t *descriptor,
				   struct err *err);
int repository_each_referrer(struct meta *meta, struct str repository, const struct digest *subject,
			     const struct digest *after, repository_referrer_fn *fn, void *ctx,
			     struct err *err) MUST_CHECK;
