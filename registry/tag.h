/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tag.h - the names of images in the store: what was pulled and what we tagged.
 *
 * Table `tags`: canonical reference -> digest of a manifest or index that is in
 * the store, the platform manifest chosen from it, and when. Only images whose
 * manifest, config and layers are all durable are ever tagged.
 *
 * A tag of ours, localhost/REPOSITORY:TAG, is served by the registry: whoever
 * puts one also puts what it leads to into that repository (holding.h). The gzip
 * variant that was made of it goes when it stands for something else or is
 * deleted.
 */
#pragma once

#include "layers/meta.h"
#include "registry/reference.h"

struct tag {
	struct digest target;   /* what the name stands for: an index or a manifest */
	struct digest manifest; /* the image of `platform` */
	struct platform platform;
	bool pulled; /* from a registry, or ours */
	int64_t at_ms;
	struct digest called;  /* a sha512, where a registry calls target so; else all zero */
	struct digest made_of; /* of a gzip variant (gzip_tag.h); else all zero */
};

#define TAG_GZIP_SUFFIX "-gzip"

/* Whether it is a variant that we made. */
bool tag_is_made(const struct tag *tag);

/* What a registry calls it. */
const struct digest *tag_digest(const struct tag *tag);

/*
 * reference is canonical text (reference_format). One reference may hold one
 * image a platform; the best match is found (platform_rank). 1 hit, 0 miss,
 * -1.
 */
int tag_find(struct meta *meta, struct str reference, const struct platform *platform,
	     struct tag *out, struct err *err) MUST_CHECK;
int tag_put(struct meta *meta, struct str reference, const struct tag *tag, struct err *err)
	MUST_CHECK;

/* The same, where all that it leads to is in its repository already. */
int tag_put_held(struct meta *meta, struct str reference, const struct tag *tag, struct err *err)
	MUST_CHECK;

/*
 * The same in a transaction of its own; without one, which costs a sync, where
 * the name stands for this already.
 */
int tag_set(struct store *store, struct str reference, const struct tag *tag, struct err *err)
	MUST_CHECK;

/* The only image of a reference, whatever its platform. 1; 0 it has none, or several; -1. */
int tag_find_only(struct meta *meta, struct str reference, struct tag *out, struct err *err)
	MUST_CHECK;

/* What a registry gives for it: of several images the newest. 1, 0, -1. */
int tag_find_newest(struct meta *meta, struct str reference, struct tag *out, struct err *err)
	MUST_CHECK;

/* All platforms of it. 1 deleted, 0 was not there. */
int tag_del(struct meta *meta, struct str reference, struct err *err) MUST_CHECK;

/* Only its images that a registry calls so. 1 deleted, 0 there were none. */
int tag_del_digest(struct meta *meta, struct str reference, const struct digest *digest,
		   struct err *err) MUST_CHECK;

/* Every image of every reference, until fn returns non-zero, which is returned. */
typedef int tag_each_fn(void *ctx, struct str reference, const struct tag *tag, struct err *err);
int tag_each(struct meta *meta, tag_each_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The tags of a repository of ours, in byte order, that come after this one ("" for all). */
typedef int tag_name_fn(void *ctx, struct str tag, struct err *err);
int tag_each_name(struct meta *meta, struct str repository, struct str after, tag_name_fn *fn,
		  void *ctx, struct err *err) MUST_CHECK;

/* All of them, with their images. */
int tag_each_in(struct meta *meta, struct str repository, tag_each_fn *fn, void *ctx,
		struct err *err) MUST_CHECK;

/*
 * The tags of a store that was made before there were repositories: what they
 * lead to is put there. Nothing is written where nothing is missing.
 */
int tag_adopt(struct store *store, struct err *err) MUST_CHECK;
