/* SPDX-License-Identifier: Apache-2.0 */
/* bake_task.c - a step of a bake as the task that a worker gets. */
#include "bake/bake_priv.h"

#include "bake/proxies.h"

#define MB ((uint64_t)1024 * 1024)

static void bake_task_layers(const struct bake *bake, struct task *task)
{
	task->parent = bake->state.chain_id;
	task->layers = from_layers(&bake->state);
	task->layer_count = bake->state.layer_count;
}

static bool bake_sets(const struct bake *bake, const char *assignment)
{
	struct str name = {assignment, strcspn(assignment, "=")};
	struct str ignored;

	return state_env_get(&bake->state, name, &ignored);
}

/* What the image says, and of proxies what it does not say. */
static void bake_task_env(const struct bake *bake, struct task *task)
{
	const json_t *env = state_env(&bake->state);
	const struct proxies *proxies = bake->options->proxies;
	size_t proxy_count = proxies ? proxies->count : 0;

	task->env = calloc(json_array_size(env) + proxy_count + 1, sizeof(*task->env));
	if (!task->env)
		abort();
	for (size_t i = 0; i < json_array_size(env); i++)
		task->env[task->env_count++] = json_string_value(json_array_get(env, i));
	for (size_t i = 0; i < proxy_count; i++) {
		if (!bake_sets(bake, proxies->at[i]))
			task->env[task->env_count++] = proxies->at[i];
	}
}

static void bake_task_limits(const struct bake *bake, struct task *task)
{
	const struct spec_resources *resources = &bake->spec->resources;

	task->limits = (struct machine_limits){
		.memory_bytes = resources->memory_mb * MB,
		.cpu_millis = (uint64_t)(resources->cpu * 1000 + 0.5),
		.pids = resources->pids,
		.disk_bytes = resources->disk_mb * MB,
	};
	task->timeout_ms = bake->spec->timeout_ms;
	task->codec = bake->spec->compression;
}

/* What runs: argv as it is, or a command for the base's shell. COPY: its words. */
static void bake_task_argv(const struct bake *bake, const struct instruction *ready,
			   struct task *task)
{
	const json_t *shell = state_shell(&bake->state);
	size_t shell_words = shell ? json_array_size(shell) : 2;
	static const char *const usual[] = {"/bin/sh", "-c"};

	task->argv = calloc(ready->args.count + shell_words + 2, sizeof(*task->argv));
	if (!task->argv)
		abort();
	for (size_t i = 0; ready->command && i < shell_words; i++)
		task->argv[task->argc++] =
			shell ? json_string_value(json_array_get(shell, i)) : usual[i];
	if (ready->command)
		task->argv[task->argc++] = ready->command;
	for (size_t i = 0; i < ready->args.count; i++)
		task->argv[task->argc++] = ready->args.at[i];
}

static void bake_task_excludes(const struct instruction *ready, struct task *task)
{
	task->excludes = calloc(ready->excludes.count + 1, sizeof(*task->excludes));
	if (!task->excludes)
		abort();
	for (size_t i = 0; i < ready->excludes.count; i++)
		task->excludes[task->exclude_count++] = ready->excludes.at[i];
}

static void bake_task_mounts(const struct bake *bake, const struct instruction *ready,
			     struct task *task)
{
	task->mounts = calloc(ready->mounts.count + 1, sizeof(*task->mounts));
	if (!task->mounts)
		abort();
	for (size_t i = 0; i < ready->mounts.count; i++) {
		const struct mount *mount = &ready->mounts.at[i];

		task->mounts[i].mount = *mount;
		if (mount->type == MOUNT_SECRET)
			task->mounts[i].secret =
				secrets_find(bake->options->secrets, str_of(mount->id));
	}
	task->mount_count = ready->mounts.count;
	(void)platform_format(&bake->state.platform, task->platform);
}

size_t bake_task_images(const struct bake_key *key, struct task_image images[static MOUNTS_MAX + 1])
{
	size_t count = 0;

	if (key->from.layer_count > 0)
		images[count++] = (struct task_image){key->from.layers, key->from.layer_count};
	for (size_t i = 0; i < key->bind_count; i++)
		images[count++] =
			(struct task_image){key->binds[i].layers, key->binds[i].layer_count};
	return count;
}

void bake_fill_task(const struct bake *bake, const struct instruction *ready,
		    const struct key_parts *parts, const struct digest *key, struct task *task)
{
	const struct bake_options *options = bake->options;

	*task = (struct task){
		.key = *key,
		.kind = ready->kind,
		.workdir = state_workdir(&bake->state).ptr,
		.user = state_user(&bake->state).ptr,
		.chown = ready->chown,
		.chmod = ready->chmod,
		.parents = ready->parents,
		.image_name = ready->from,
		.content = ready->from ? NULL : parts->content, /* an image does not change */
		.clamp = parts->clamp,
		.network = ready->network_none ? NETWORK_NONE : NETWORK_OPEN,
		.host_count = options->host_count,
		.runtime = options->runtime,
		.agent_path = options->agent_path,
		.store_path = store_path(options->store),
		.store_map_bytes = store_map_bytes(options->store),
		.fresh = bake_anew(bake),
		.draft = options->rebake,
	};
	task->hosts = drop_const(options->hosts);
	if (!ready->link)
		bake_task_layers(bake, task);
	bake_task_argv(bake, ready, task);
	bake_task_excludes(ready, task);
	bake_task_mounts(bake, ready, task);
	bake_task_env(bake, task);
	bake_task_limits(bake, task);
}

void bake_free_task(struct task *task)
{
	free(task->layers);
	free(task->argv);
	free(task->mounts);
	free(task->env);
	free(task->excludes);
}
