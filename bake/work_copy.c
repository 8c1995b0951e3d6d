/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_copy_priv.h"

#include "bake/shortcut_priv.h"
#include "bake/work.h"

static int work_copy_into(void *ctx, int rootfd, struct err *err)
{
	return copy_into(rootfd, ctx, err);
}

static int work_open_image(struct machine *machine, const struct task_image *image, int *out_fd,
			   struct err *err)
{
	auto_free struct digest *diff_ids = calloc(image->layer_count + 1, sizeof(*diff_ids));

	if (!diff_ids)
		abort();
	for (size_t i = 0; i < image->layer_count; i++)
		diff_ids[i] = image->layers[i].diff_id;
	return machine_image_view(machine, diff_ids, image->layer_count, false, out_fd, err);
}

static struct context_sources work_sources(const struct task *task, int fd)
{
	return (struct context_sources){
		.fd = fd,
		.paths = task->argv,
		.count = task->argc - 1,
		.excludes = task->excludes,
		.exclude_count = task->exclude_count,
		.parents = task->parents,
		.image = task->image_count > 0,
		.label = task->image_name,
	};
}

int work_copy(struct store *store, struct machine *machine, const struct task *task, int log_fd,
	      const struct cancel *cancel, struct err *err)
{
	bool image = task->image_count > 0;
	AUTO(shortcut)
	struct shortcut *shortcut = image ? NULL : shortcut_open(store, WORK_FD_CONTEXT);
	auto_close int imagefd = -1;
	struct copy_spec spec = {
		.destination = task->argv[task->argc - 1],
		.workdir = task->workdir,
		.chown = task->chown,
		.chmod = task->chmod,
		.content = task->content,
		.shortcut = shortcut,
		.first_id = machine_first_id(machine),
		.log_fd = log_fd,
		.cancel = cancel,
	};

	if (image && work_open_image(machine, &task->images[0], &imagefd, err) < 0)
		return err_ctx(err, "--from=%s", task->image_name);
	spec.sources = work_sources(task, image ? imagefd : WORK_FD_CONTEXT);
	return machine_as_root(machine, work_copy_into, &spec, cancel, err);
}
