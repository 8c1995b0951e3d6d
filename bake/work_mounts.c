/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_mounts_priv.h"

#include "bake/copy.h"
#include "bake/expand.h"
#include "bake/state.h"
#include "bake/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define WORK_BIND_NAME "bound" /* of a copy, in a directory of its own */

/* What one step's mounts are gathered with. */
struct gathering {
	struct store *store;
	const struct task *task;
	int log_fd;
	struct buf *list; /* of what is bound of images */
	const struct cancel *cancel;
	struct work_mounts *to;
	size_t seed; /* the mount that says what fills the cache at hand */
};

static void *work_new_array(size_t count, size_t size)
{
	void *array = calloc(count + 1, size);

	if (!array)
		abort();
	return array;
}

/* Say in the step's log what it waits for. */
static void work_say_waiting(void *ctx, const struct cache_spec *spec)
{
	const struct gathering *gathering = ctx;

	(void)dprintf(gathering->log_fd,
		      "hearth: waiting for the cache " STR_FMT ", which another step is using\n",
		      STR_ARG(spec->id));
}

int work_open_lender(struct store *store, const struct task *task, const struct task_image *image,
		     struct machine **out, struct err *err)
{
	auto_free struct digest *diff_ids = work_new_array(image->layer_count, sizeof(*diff_ids));
	const struct machine_spec spec = {
		.store = store,
		.diff_ids = diff_ids,
		.diff_id_count = image->layer_count,
		.network = NETWORK_NONE,
		.runtime = task->runtime,
		.agent_path = task->agent_path,
	};

	for (size_t i = 0; i < image->layer_count; i++)
		diff_ids[i] = image->layers[i].diff_id;
	return machine_open(&spec, out, err);
}

const struct task_image *work_find_image(const struct task *task, size_t mount)
{
	size_t place = 0;

	for (size_t i = 0; i < mount; i++)
		place += task->mounts[i].mount.from != NULL;
	return place < task->image_count ? &task->images[place] : NULL;
}

static int work_copy_from(const struct gathering *gathering, size_t i, struct copy_spec *spec,
			  int dirfd, struct err *err)
{
	const struct task_image *image = work_find_image(gathering->task, i);
	AUTO(machine) struct machine *lender = NULL;
	auto_close int viewfd = -1;
	int fd;

	if (!image)
		return err_set(err, ERR_INVALID, "a mount without its image");
	if (work_open_lender(gathering->store, gathering->task, image, &lender, err) < 0 ||
	    machine_lower_view(lender, &fd, err) < 0)
		return -1;
	viewfd = fd;
	spec->sources.fd = viewfd;
	spec->sources.image = true;
	if (gathering->task->mounts[i].mount.type == MOUNT_BIND && gathering->list->len > 0)
		spec->sources.list = gathering->list;
	spec->sources.label = gathering->task->mounts[i].mount.from;
	spec->content = NULL; /* an image does not change */
	return copy_into(dirfd, spec, err);
}

/*
 * Bind a copy, so that the step sees what its key says even while the context
 * changes, and may write to it with rw. A context's files belong to the image's
 * root.
 */
static int work_copy_bind(const struct gathering *gathering, size_t i, int dirfd, const char *name,
			  struct err *err)
{
	const struct mount *mount = &gathering->task->mounts[i].mount;
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	struct copy_spec spec = {
		.sources = {.fd = WORK_FD_CONTEXT, .count = 1, .whole = true},
		.destination = name,
		.workdir = "/",
		.content = &mount->content,
		.log_fd = gathering->log_fd,
		.cancel = gathering->cancel,
	};
	const char *path;

	if (mount_source_word(mount, &word, err) < 0)
		return -1;
	path = word.ptr;
	spec.sources.paths = &path;
	if (mount->from)
		return work_copy_from(gathering, i, &spec, dirfd, err);
	return copy_into(dirfd, &spec, err);
}

static int work_open_bind(struct gathering *gathering, size_t i, struct err *err)
{
	const struct mount *mount = &gathering->task->mounts[i].mount;
	struct work_mounts *to = gathering->to;
	auto_close int dirfd = -1;
	char name[32];
	int fd;

	(void)snprintf(name, sizeof(name), "%zu", i);
	if (to->staging.fd < 0 && staging_open(gathering->store, &to->staging, err) < 0)
		return -1;
	if (mkdirat(to->staging.fd, name, 0755) < 0)
		return err_os(err, errno, "make a directory");
	dirfd = openat(to->staging.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_os(err, errno, "open a directory");
	if (work_copy_bind(gathering, i, dirfd, WORK_BIND_NAME, err) < 0)
		return -1;
	fd = openat(dirfd, WORK_BIND_NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, "%s: nothing to be mounted is there",
			       mount->source);
	to->fds[to->fd_count++] = fd;
	to->at[i].fd = fd;
	return 0;
}

static int work_open_binds(struct gathering *gathering, struct err *err)
{
	const struct task *task = gathering->task;

	for (size_t i = 0; i < task->mount_count; i++) {
		if (task->mounts[i].mount.type == MOUNT_BIND &&
		    work_open_bind(gathering, i, err) < 0)
			return err_ctx(err, "mount on %s", task->mounts[i].mount.target);
	}
	return 0;
}

static bool work_is_cache(const struct mount *mount, const char *id)
{
	return mount->type == MOUNT_CACHE && strcmp(mount->id, id) == 0;
}

/* The next id of a cache behind the last one, so that all steps lock in one order. */
static const struct mount *work_next_cache(const struct task *task, const char *last)
{
	const struct mount *next = NULL;

	for (size_t i = 0; i < task->mount_count; i++) {
		const struct mount *mount = &task->mounts[i].mount;

		if (mount->type == MOUNT_CACHE && (!last || strcmp(mount->id, last) > 0) &&
		    (!next || strcmp(mount->id, next->id) < 0))
			next = mount;
	}
	return next;
}

/* The first of an id's mounts that says what fills it, or behind the last one. */
static size_t work_find_seed(const struct task *task, const char *id)
{
	size_t i = 0;

	while (i < task->mount_count &&
	       !(work_is_cache(&task->mounts[i].mount, id) && task->mounts[i].mount.from))
		i++;
	return i;
}

static int work_fill_cache(void *ctx, int dirfd, struct err *err)
{
	const struct gathering *gathering = ctx;
	const struct mount *seed = &gathering->task->mounts[gathering->seed].mount;
	struct stat st;

	if (work_copy_bind(gathering, gathering->seed, dirfd, CACHE_DATA, err) < 0)
		return -1;
	if (fstatat(dirfd, CACHE_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "%s in %s is no directory, and a cache is one",
			       seed->source, seed->from);
	return 0;
}

/* All mounts of one id are one cache, shared as the strictest of them says. */
static int work_open_cache(struct gathering *gathering, const struct mount *first, struct err *err)
{
	const struct task *task = gathering->task;
	struct work_mounts *to = gathering->to;
	struct cache *cache = &to->caches[to->cache_count];
	struct cache_spec spec = {
		.id = str_of(first->id),
		.platform = str_of(task->platform),
		.mode = first->mode,
		.uid = first->uid,
		.gid = first->gid,
	};

	for (size_t i = 0; i < task->mount_count; i++) {
		const struct mount *mount = &task->mounts[i].mount;

		if (work_is_cache(mount, first->id) && mount->sharing > spec.sharing)
			spec.sharing = mount->sharing;
	}
	gathering->seed = work_find_seed(task, first->id);
	if (gathering->seed < task->mount_count)
		spec.fill = work_fill_cache;
	*cache = CACHE_INIT;
	if (cache_open(gathering->store, &spec, work_say_waiting, gathering, gathering->cancel,
		       cache, err) < 0)
		return err_ctx(err, "cache %s", first->id);
	to->cache_count++;
	for (size_t i = 0; i < task->mount_count; i++) {
		if (work_is_cache(&task->mounts[i].mount, first->id))
			to->at[i].fd = cache->fd;
	}
	return 0;
}

static int work_open_caches(struct gathering *gathering, struct err *err)
{
	const struct mount *next = NULL;

	while ((next = work_next_cache(gathering->task, next ? next->id : NULL))) {
		if (work_open_cache(gathering, next, err) < 0)
			return -1;
	}
	return 0;
}

static int work_make_variable(const struct task_mount *entry, struct buf *out, struct err *err)
{
	struct str value = secret_bytes(entry->secret);
	AUTO(json) json_t *text = json_stringn(value.ptr, value.len);

	*out = BUF_WIPED(STATE_ENV_ENTRY_MAX);
	if (!text || memchr(value.ptr, '\0', value.len))
		return err_set(err, ERR_INVALID,
			       "the secret %s is no text, and no variable can hold it; mount it "
			       "as a file",
			       entry->mount.id);
	if (buf_addf(out, err, "%s=", entry->mount.env) < 0 || buf_add(out, value, err) < 0)
		return err_ctx(err, "the secret %s as a variable", entry->mount.id);
	return 0;
}

static bool work_is_variable(const struct task_mount *entry)
{
	return entry->secret && entry->mount.env;
}

/* A secret's variable replaces those of the image and of ENV. */
static bool work_is_hidden(const struct task *task, const char *assignment)
{
	for (size_t i = 0; i < task->mount_count; i++) {
		const struct task_mount *entry = &task->mounts[i];
		size_t len = entry->mount.env ? strlen(entry->mount.env) : 0;

		if (work_is_variable(entry) && strncmp(assignment, entry->mount.env, len) == 0 &&
		    assignment[len] == '=')
			return true;
	}
	return false;
}

static int work_make_env(struct gathering *gathering, struct err *err)
{
	const struct task *task = gathering->task;
	struct work_mounts *to = gathering->to;
	size_t count = 0;

	to->env = work_new_array(task->env_count + task->mount_count, sizeof(*to->env));
	to->variables = work_new_array(task->mount_count, sizeof(*to->variables));
	for (size_t i = 0; i < task->env_count; i++) {
		if (!work_is_hidden(task, task->env[i]))
			to->env[count++] = task->env[i];
	}
	for (size_t i = 0; i < task->mount_count; i++) {
		struct buf *variable = &to->variables[to->variable_count];

		if (!work_is_variable(&task->mounts[i]))
			continue;
		to->variable_count++;
		if (work_make_variable(&task->mounts[i], variable, err) < 0)
			return -1;
		to->env[count++] = variable->ptr;
	}
	return 0;
}

static void work_describe(const struct task_mount *entry, struct machine_mount *out)
{
	const struct mount *mount = &entry->mount;
	static const enum machine_mount_kind kinds[] = {
		[MOUNT_BIND] = MACHINE_MOUNT_TREE,
		[MOUNT_CACHE] = MACHINE_MOUNT_TREE,
		[MOUNT_SECRET] = MACHINE_MOUNT_SECRET,
		[MOUNT_TMPFS] = MACHINE_MOUNT_TMPFS,
	};

	*out = (struct machine_mount){
		.kind = kinds[mount->type],
		.target = mount->target,
		.read_only = mount->read_only,
		.fd = -1,
		.size = mount->size,
		.secret = entry->secret,
		.mode = mount->mode,
		.uid = mount->uid,
		.gid = mount->gid,
	};
}

/* A secret that nobody gave, or that is a variable alone, is mounted nowhere. */
static void work_drop_absent(struct work_mounts *mounts)
{
	size_t kept = 0;

	for (size_t i = 0; i < mounts->count; i++) {
		const struct machine_mount *mount = &mounts->at[i];

		if (mount->target && (mount->kind != MACHINE_MOUNT_SECRET || mount->secret))
			mounts->at[kept++] = *mount;
	}
	mounts->count = kept;
}

int work_mounts_open(struct store *store, const struct task *task, int log_fd, struct buf *list,
		     const struct cancel *cancel, struct work_mounts *out, struct err *err)
{
	struct gathering gathering = {
		.store = store,
		.task = task,
		.log_fd = log_fd,
		.list = list,
		.cancel = cancel,
		.to = out,
	};

	*out = (struct work_mounts){.count = task->mount_count, .staging = STAGING_INIT};
	out->fds = work_new_array(task->mount_count, sizeof(*out->fds));
	out->at = work_new_array(task->mount_count, sizeof(*out->at));
	out->caches = work_new_array(task->mount_count, sizeof(*out->caches));
	for (size_t i = 0; i < task->mount_count; i++)
		work_describe(&task->mounts[i], &out->at[i]);
	if (work_open_binds(&gathering, err) < 0 || work_open_caches(&gathering, err) < 0 ||
	    work_make_env(&gathering, err) < 0)
		return -1;
	work_drop_absent(out);
	return 0;
}

void work_mounts_close(struct work_mounts *mounts)
{
	for (size_t i = 0; i < mounts->cache_count; i++)
		cache_close(&mounts->caches[i]);
	for (size_t i = 0; i < mounts->fd_count; i++)
		auto_close_release(&mounts->fds[i]);
	staging_close(&mounts->staging);
	free(mounts->fds);
	for (size_t i = 0; i < mounts->variable_count; i++)
		buf_done(&mounts->variables[i]);
	free(mounts->at);
	free(mounts->caches);
	free(mounts->env);
	free(mounts->variables);
	*mounts = WORK_MOUNTS_INIT;
}
