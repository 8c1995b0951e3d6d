/* SPDX-License-Identifier: Apache-2.0 */
/* bake_list.c - what a step reads of the context and of images, name by name. */
#include "bake/bake_priv.h"

#include "bake/expand.h"
#include "bake/listing.h"
#include "layers/base/fd.h"
#include "layers/digest_json.h"

#include <sys/mman.h>

struct context_sources bake_sources(const struct bake *bake, const struct instruction *ready)
{
	return (struct context_sources){
		.fd = bake->options->contextfd,
		.paths = (const char *const *)ready->args.at,
		.count = ready->args.count - 1,
		.excludes = (const char *const *)ready->excludes.at,
		.exclude_count = ready->excludes.count,
		.parents = ready->parents,
		.chmod = ready->chmod,
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

static bool bake_reads_image(const struct instruction *ready)
{
	bool reads = ready->kind == INSTRUCTION_COPY && ready->from;

	for (size_t i = 0; i < ready->mounts.count; i++)
		reads |= ready->mounts.at[i].type == MOUNT_BIND && ready->mounts.at[i].from;
	return reads;
}

/* A worker lists it into a file in memory, since only a machine sees an image's layers as one. */
static int bake_call_list(const struct bake *bake, const struct task *task, struct buf *list,
			  struct err *err)
{
	auto_close int listfd = memfd_create("list", MFD_CLOEXEC);
	AUTO(json) json_t *request = task_format(task);
	AUTO(json) json_t *answer = NULL;
	const struct asker asker = {
		.store = bake->options->store,
		.worker_path = bake->options->worker_path,
		.streamfd = listfd,
		.cancel = bake->options->cancel,
	};

	if (listfd < 0)
		return err_os(err, errno, "make a file in memory");
	if (asker_call(&asker, "list", request, &answer, err) < 0)
		return -1;
	if (lseek(listfd, 0, SEEK_SET) < 0)
		return err_os(err, errno, "read a file in memory");
	return fd_read_all(listfd, list, err);
}

int bake_list_from(const struct bake *bake, const struct instruction *ready,
		   const struct bake_key *key, struct buf *list, struct err *err)
{
	struct task_image images[MOUNTS_MAX + 1];
	struct task task;
	int result;

	if (!bake_reads_image(ready))
		return 0;
	bake_fill_task(bake, ready, &key->parts, &key->key, &task);
	task.images = images;
	task.image_count = bake_task_images(key, images);
	result = bake_call_list(bake, &task, list, err);
	bake_free_task(&task);
	return result;
}

int bake_keep_list(const struct bake *bake, const struct instruction *ready,
		   const struct bake_key *key, json_t *components, struct err *err)
{
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);
	struct digest kept;

	if (bake_list_context(bake, ready, key, &list, err) < 0)
		return err->kind == ERR_LIMIT ? 0 : -1; /* the step is made without a listing */
	if (list.len == 0)
		return 0;
	if (listing_keep(bake->options->store, buf_str(&list), &kept, err) < 0)
		return -1;
	digest_json_set(components, "files", &kept);
	return 0;
}
