/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_copy_priv.h"

#include "bake/shortcut_priv.h"
#include "bake/work.h"
#include "layers/base/fd.h"

#include <sys/mman.h>

/* A copy in a child, which tells by a file what it listed. */
struct work_copying {
	struct copy_spec spec;
	int listfd;
};

static int work_copy_into(void *ctx, int rootfd, struct err *err)
{
	const struct work_copying *copying = ctx;
	const struct buf *list = copying->spec.sources.list;

	if (copy_into(rootfd, &copying->spec, err) < 0)
		return -1;
	return list ? fd_write_all(copying->listfd, list->ptr, list->len, err) : 0;
}

/* Copy, and take the list over from the child. */
static int work_copy_listed(struct machine *machine, struct work_copying *copying,
			    const struct cancel *cancel, struct err *err)
{
	auto_close int listfd = memfd_create("list", MFD_CLOEXEC);
	struct buf *list = copying->spec.sources.list;

	if (listfd < 0)
		return err_os(err, errno, "make a file in memory");
	copying->listfd = listfd;
	if (machine_as_root(machine, work_copy_into, copying, cancel, err) < 0)
		return -1;
	buf_clear(list);
	if (lseek(listfd, 0, SEEK_SET) < 0)
		return err_os(err, errno, "read a file in memory");
	return fd_read_all(listfd, list, err);
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

struct context_sources work_copy_sources(const struct task *task, int fd)
{
	return (struct context_sources){
		.fd = fd,
		.paths = task->argv,
		.count = task->argc - 1,
		.excludes = task->excludes,
		.exclude_count = task->exclude_count,
		.parents = task->parents,
		.chmod = task->chmod,
		.image = task->image_count > 0,
		.label = task->image_name,
	};
}

int work_copy(struct store *store, struct machine *machine, const struct task *task, int log_fd,
	      struct buf *list, const struct cancel *cancel, struct err *err)
{
	bool image = task->image_count > 0;
	AUTO(shortcut)
	struct shortcut *shortcut = image ? NULL : shortcut_open(store, WORK_FD_CONTEXT);
	auto_close int imagefd = -1;
	struct work_copying copying = {.listfd = -1};

	copying.spec = (struct copy_spec){
		.destination = task->argv[task->argc - 1],
		.workdir = task->workdir,
		.chown = task->chown,
		.content = task->content,
		.shortcut = shortcut,
		.first_id = machine_first_id(machine),
		.log_fd = log_fd,
		.cancel = cancel,
	};

	if (image && work_open_image(machine, &task->images[0], &imagefd, err) < 0)
		return err_ctx(err, "--from=%s", task->image_name);
	copying.spec.sources = work_copy_sources(task, image ? imagefd : WORK_FD_CONTEXT);
	if (!image)
		return machine_as_root(machine, work_copy_into, &copying, cancel, err);
	copying.spec.sources.list = list;
	return work_copy_listed(machine, &copying, cancel, err);
}
