/* SPDX-License-Identifier: Apache-2.0 */
/* bake_list.c - what a step reads of the context, name by name. */
#include "bake/bake_priv.h"

#include "bake/expand.h"
#include "bake/listing.h"
#include "layers/digest_json.h"

struct context_sources bake_sources(const struct bake *bake, const struct instruction *ready)
{
	return (struct context_sources){
		.fd = bake->options->contextfd,
		.paths = (const char *const *)ready->args.at,
		.count = ready->args.count - 1,
		.excludes = (const char *const *)ready->excludes.at,
		.exclude_count = ready->excludes.count,
		.parents = ready->parents,
		.store = bake->options->store,
	};
}

struct context_sources bake_bind_sources(const struct bake *bake, const char *const *path)
{
	return (struct context_sources){
		.fd = bake->options->contextfd,
		.paths = path,
		.count = 1,
		.whole = true,
		.store = bake->options->store,
	};
}

static int bake_list_bind(const struct bake *bake, const struct mount *mount, struct buf *list,
			  struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	struct context_sources sources;
	const char *path;

	if (mount_source_word(mount, &word, err) < 0)
		return -1;
	path = word.ptr;
	sources = bake_bind_sources(bake, &path);
	return listing_read(&sources, &mount->content, bake->options->cancel, list, err);
}

int bake_list_context(const struct bake *bake, const struct instruction *ready,
		      const struct bake_key *key, struct buf *list, struct err *err)
{
	const struct context_sources sources = bake_sources(bake, ready);

	if (ready->kind == INSTRUCTION_COPY && !ready->from)
		return listing_read(&sources, &key->content, bake->options->cancel, list, err);
	for (size_t i = 0; i < ready->mounts.count; i++) {
		const struct mount *mount = &ready->mounts.at[i];

		if (mount->type == MOUNT_BIND && !mount->from &&
		    bake_list_bind(bake, mount, list, err) < 0)
			return -1;
	}
	return 0;
}

int bake_keep_list(const struct bake *bake, const struct instruction *ready,
		   const struct bake_key *key, json_t *components, struct err *err)
{
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);
	struct digest kept;

	if (bake_list_context(bake, ready, key, &list, err) < 0)
		return err->kind == ERR_LIMIT ? 0 : -1; /* it is made without one */
	if (list.len == 0)
		return 0;
	if (listing_keep(bake->options->store, buf_str(&list), &kept, err) < 0)
		return -1;
	digest_json_set(components, "files", &kept);
	return 0;
}
