/* SPDX-License-Identifier: Apache-2.0 */
/* work_list.c - what a step reads of images: listed as it runs, or by a role as it would. */
#include "bake/work_list_priv.h"

#include "bake/expand.h"
#include "bake/listing.h"
#include "bake/wire.h"
#include "bake/work.h"
#include "bake/work_copy_priv.h"
#include "bake/work_mounts_priv.h"
#include "bake/work_trees_priv.h"
#include "layers/digest_json.h"
#include "layers/text.h"

int work_list_begin(struct store *store, const struct task *task, struct buf *list, struct err *err)
{
	const json_t *files = json_object_get(task->components, "files");
	struct buf_sink sink = BUF_SINK(list);
	struct digest kept;

	if (task->image_count == 0)
		return 0;
	if (!json_is_string(files))
		return listing_begin(list, err);
	if (digest_parse(json_str(files), &kept, err) < 0)
		return -1;
	return text_copy(store, &kept, &sink.sink, err);
}

int work_list_keep(struct store *store, const struct task *task, const struct buf *list,
		   struct err *err)
{
	struct digest kept;

	if (task->image_count == 0 || !task->components)
		return 0;
	(void)json_object_del(task->components, "files");
	if (list->len == 0)
		return 0;
	if (listing_keep(store, buf_str(list), &kept, err) < 0)
		return -1;
	digest_json_set(task->components, "files", &kept);
	return 0;
}

/* What the role works with. */
struct list_work {
	struct task task;
	struct store *store;
	struct lease *lease;
	struct cancel cancel;
	struct buf list;
};

static int list_image(struct list_work *work, const struct task_image *image,
		      struct context_sources *sources, struct err *err)
{
	AUTO(machine) struct machine *lender = NULL;
	auto_close int viewfd = -1;

	if (!image)
		return err_set(err, ERR_INVALID, "an image is named, and none was given");
	if (work_open_lender(work->store, &work->task, image, &lender, err) < 0 ||
	    machine_lower_view(lender, &viewfd, err) < 0)
		return -1;
	sources->fd = viewfd;
	sources->image = true;
	return listing_read(sources, NULL, &work->cancel, &work->list, err);
}

static int list_bind(struct list_work *work, size_t i, struct err *err)
{
	const struct mount *mount = &work->task.mounts[i].mount;
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	struct context_sources sources = {.count = 1, .whole = true, .label = mount->from};
	const char *path;

	if (mount_source_word(mount, &word, err) < 0)
		return -1;
	path = word.ptr;
	sources.paths = &path;
	return list_image(work, work_find_image(&work->task, i), &sources, err);
}

static int list_all(struct list_work *work, struct err *err)
{
	struct task *task = &work->task;

	if (task->kind == INSTRUCTION_COPY) {
		struct context_sources sources = work_copy_sources(task, -1);

		return list_image(work, work_find_image(task, 0), &sources, err);
	}
	for (size_t i = 0; i < task->mount_count; i++) {
		const struct mount *mount = &task->mounts[i].mount;

		if (mount->type == MOUNT_BIND && mount->from && list_bind(work, i, err) < 0)
			return err_ctx(err, "mount on %s", mount->target);
	}
	return 0;
}

static int list_serve(struct list_work *work, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	struct store_options options = {0};

	if (cancel_init(&work->cancel, err) < 0 || work_receive(&payload, err) < 0 ||
	    task_parse(buf_str(&payload), &work->task, err) < 0)
		return -1;
	options.path = work->task.store_path;
	options.map_bytes = work->task.store_map_bytes;
	if (work_need_root(err) < 0 || machine_enter_private(err) < 0 ||
	    store_open(&options, &work->store, err) < 0 ||
	    work_trees_hold(work->store, &work->task, &work->lease, err) < 0 ||
	    work_trees_make(work->store, &work->task, &work->cancel, err) < 0 ||
	    list_all(work, err) < 0)
		return -1;
	return fd_write_all(WORK_FD_STREAM, work->list.ptr, work->list.len, err);
}

int work_list(void)
{
	struct list_work work = {.list = BUF_INIT(LISTING_BYTES_MAX)};
	struct err err = {0};
	struct err gone;
	int result = list_serve(&work, &err);
	AUTO(json) json_t *answer = result == 0 ? json_object() : wire_error(&err, 0);

	lease_close(work.lease);
	store_close(work.store);
	task_done(&work.task);
	cancel_done(&work.cancel);
	buf_done(&work.list);
	return wire_send_json(WORK_FD_ASKER, result == 0 ? WIRE_RESULT : WIRE_ERROR, answer,
			      &gone) < 0;
}
