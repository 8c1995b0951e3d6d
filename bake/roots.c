/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/roots.h"

#include "bake/image.h"
#include "bake/tarball.h"
#include "layers/draft.h"
#include "layers/variant.h"
#include "registry/tag.h"

struct roots_walk {
	root_each_fn *fn;
	void *ctx;
};

static int roots_tag(void *ctx, struct str reference, const struct tag *tag, struct err *err)
{
	const struct roots_walk *walk = ctx;
	const struct root root = {
		.kind = ROOT_TAG,
		.name = reference,
		.digest = tag->target,
		.image = tag->manifest,
		.at_ms = tag->at_ms,
	};

	return walk->fn(walk->ctx, &root, err);
}

static int roots_image(void *ctx, const struct image *image, struct err *err)
{
	static const struct digest none;
	const struct roots_walk *walk = ctx;
	const struct root root = {
		.kind = ROOT_IMAGE,
		.name = image->slug,
		.digest = image->manifest,
		.image = image->manifest,
		.at_ms = image->baked_ms,
		.size = image->size,
	};
	const struct root base = {
		.kind = ROOT_BASE, .digest = image->base_digest, .image = image->manifest};
	int result = walk->fn(walk->ctx, &root, err);

	if (result != 0 || digest_equal(&image->base_digest, &none))
		return result;
	return walk->fn(walk->ctx, &base, err);
}

static int roots_step(void *ctx, const struct step_record *record, struct err *err)
{
	const struct roots_walk *walk = ctx;
	const struct root root = {
		.kind = ROOT_STEP,
		.digest = record->blob,
		.key = record->key,
		.diff_id = record->diff_id,
		.at_ms = record->created_ms,
		.size = record->blob_size,
	};

	return record->empty ? 0 : walk->fn(walk->ctx, &root, err);
}

static int roots_log(void *ctx, const struct digest *key, const struct digest *blob,
		     struct err *err)
{
	const struct roots_walk *walk = ctx;
	const struct root root = {.kind = ROOT_LOG, .digest = *blob, .key = *key};

	return walk->fn(walk->ctx, &root, err);
}

struct roots_draft {
	const struct roots_walk *walk;
	struct str owner;
};

static int roots_draft_log(void *ctx, const struct digest *key, const struct digest *blob,
			   struct err *err)
{
	const struct roots_draft *draft = ctx;
	const struct root root = {
		.kind = ROOT_DRAFT, .name = draft->owner, .digest = *blob, .key = *key};

	return draft->walk->fn(draft->walk->ctx, &root, err);
}

static int roots_draft(void *ctx, struct str owner, const struct step_record *record,
		       struct err *err)
{
	struct roots_draft draft = {ctx, owner};
	const struct root root = {
		.kind = ROOT_DRAFT,
		.name = owner,
		.digest = record->blob,
		.key = record->key,
		.diff_id = record->diff_id,
		.at_ms = record->created_ms,
		.size = record->blob_size,
	};
	int result = record->empty ? 0 : draft.walk->fn(draft.walk->ctx, &root, err);

	return result != 0 ? result : draft_each_log(record, roots_draft_log, &draft, err);
}

static int roots_context(void *ctx, const struct tarball_info *info, struct err *err)
{
	const struct roots_walk *walk = ctx;
	struct root root = {
		.kind = ROOT_CONTEXT,
		.digest = info->digest,
		.at_ms = info->at_ms,
		.size = info->size,
	};

	tarball_tree(&info->digest, &root.diff_id);
	return walk->fn(walk->ctx, &root, err);
}

static int roots_held(void *ctx, struct str repository, const struct repository_item *item,
		      struct err *err)
{
	const struct roots_walk *walk = ctx;
	const struct root root = {
		.kind = ROOT_HELD,
		.name = repository,
		.digest = item->blob,
		.at_ms = item->at_ms,
		.size = item->size,
		.item = item,
	};

	return walk->fn(walk->ctx, &root, err);
}

static int roots_variant(void *ctx, const struct digest *diff_id, const struct variant *variant,
			 struct err *err)
{
	const struct roots_walk *walk = ctx;
	const struct root root = {
		.kind = ROOT_VARIANT,
		.digest = variant->blob,
		.diff_id = *diff_id,
		.size = variant->size,
	};

	return walk->fn(walk->ctx, &root, err);
}

int roots_each(struct meta *meta, root_each_fn *fn, void *ctx, struct err *err)
{
	struct roots_walk walk = {fn, ctx};
	int result = tag_each(meta, roots_tag, &walk, err);

	if (result == 0)
		result = image_each(meta, roots_image, &walk, err);
	if (result == 0)
		result = step_each(meta, roots_step, &walk, err);
	if (result == 0)
		result = step_each_log(meta, roots_log, &walk, err);
	if (result == 0)
		result = draft_each(meta, roots_draft, &walk, err);
	if (result == 0)
		result = tarball_each(meta, roots_context, &walk, err);
	if (result == 0)
		result = repository_each(meta, roots_held, &walk, err);
	if (result == 0)
		result = variant_each(meta, roots_variant, &walk, err);
	return result;
}
