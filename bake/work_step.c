/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_step.c - one step, from its task to its record.
 *
 *	task -> trees -> machine -> command (log) -> upper directory
 *	     -> diff: blob, sealed tree -> record
 *
 * The record is written last, in one transaction with the tree's; a step that
 * is killed anywhere before leaves chunks that nothing names and a machine
 * that the next worker sweeps. A step that fails leaves its log (failure.h).
 */
#include "bake/copy.h"
#include "bake/hub.h"
#include "bake/listing.h"
#include "bake/mask.h"
#include "bake/rendezvous.h"
#include "bake/task.h"
#include "bake/work.h"
#include "bake/work_copy_priv.h"
#include "bake/work_list_priv.h"
#include "bake/work_log_priv.h"
#include "bake/work_mounts_priv.h"
#include "bake/work_trees_priv.h"
#include "layers/base/clock.h"
#include "layers/diff.h"
#include "layers/draft.h"
#include "layers/lease.h"
#include "layers/proof.h"
#include "layers/step.h"
#include "layers/variant.h"
#include "sandbox/machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct step_work {
	struct task task;
	struct digest meeting; /* of its askers */
	struct store *store;
	struct lease *lease; /* of the layers that the machine stands on, and of what is made */
	struct work_mounts mounts;
	struct machine *machine;
	struct hub *hub;
	struct buf list;  /* of what is read, where images are (listing.h) */
	struct mask mask; /* of the secrets in the log */
	struct cancel cancel;
	int spoolfd;
	int exit_code; /* of the command */
	int64_t started_ms;
	struct diff_result diff;
	struct step_record record;
};

static int work_receive_task(struct step_work *work, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);

	if (work_receive(&payload, err) < 0)
		return -1;
	if (task_parse(buf_str(&payload), &work->task, err) < 0)
		return -1;
	task_meeting(&work->task, &work->meeting);
	return task_receive_secrets(&work->task, WORK_FD_ASKER, err);
}

static int work_open_machine(struct step_work *work, struct err *err)
{
	const struct task *task = &work->task;
	auto_free struct digest *diff_ids = calloc(task->layer_count + 1, sizeof(*diff_ids));
	struct machine_spec spec = {
		.store = work->store,
		.diff_ids = diff_ids,
		.diff_id_count = task->layer_count,
		.network = task->network,
		.hosts = task->hosts,
		.host_count = task->host_count,
		.limits = task->limits,
		.mounts = work->mounts.at,
		.mount_count = work->mounts.count,
		.runtime = task->runtime,
		.agent_path = task->agent_path,
	};

	if (!diff_ids)
		abort();
	for (size_t i = 0; i < task->layer_count; i++)
		diff_ids[i] = task->layers[i].diff_id;
	if (machine_open(&spec, &work->machine, err) < 0)
		return -1;
	if (machine_disk_unlimited(work->machine))
		(void)dprintf(hub_log_fd(work->hub),
			      "hearth: warning: resources.diskMb does not limit this step: %s\n",
			      machine_disk_unlimited(work->machine));
	return 0;
}

/* Open the store after machine_enter_private(): a rename does not cross mount namespaces. */
static int work_open(struct step_work *work, struct err *err)
{
	struct store_options options = {.path = work->task.store_path,
					.map_bytes = work->task.store_map_bytes};

	if (work_need_root(err) < 0 || machine_enter_private(err) < 0 ||
	    store_open(&options, &work->store, err) < 0 ||
	    work_trees_hold(work->store, &work->task, &work->lease, err) < 0)
		return -1;
	work->spoolfd = openat(store_dirfd(work->store, STORE_TMP), ".",
			       O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (work->spoolfd < 0)
		return err_os(err, errno, "open the log's spool");
	if (hub_start(WORK_FD_ASKER, WORK_FD_LISTENER, work->spoolfd, HUB_LOG_MAX, &work->cancel,
		      &work->hub, err) < 0)
		return -1;
	for (size_t i = 0; i < work->task.mount_count; i++) {
		if (work->task.mounts[i].secret)
			mask_add(&work->mask, secret_bytes(work->task.mounts[i].secret));
	}
	hub_hide(work->hub, &work->mask);
	return 0;
}

/* Do what may take long while askers are served: they may leave. */
static int work_prepare(struct step_work *work, struct err *err)
{
	if (machine_sweep(work->store, err) < 0 ||
	    work_trees_make(work->store, &work->task, &work->cancel, err) < 0)
		return -1;
	rendezvous_sweep(work->store);
	if (cancel_check(&work->cancel, err) < 0 ||
	    work_list_begin(work->store, &work->task, &work->list, err) < 0 ||
	    work_mounts_open(work->store, &work->task, hub_log_fd(work->hub), &work->list,
			     &work->cancel, &work->mounts, err) < 0)
		return -1;
	return work_open_machine(work, err);
}

static int work_workdir(void *ctx, int rootfd, struct err *err)
{
	const struct step_work *work = ctx;

	return copy_make_workdir(rootfd, work->task.workdir, work->task.user,
				 machine_first_id(work->machine), err);
}

/* A working directory that the base only names is made when a command needs it. */
static int work_need_workdir(struct step_work *work, struct err *err)
{
	if (machine_has_directory(work->machine, work->task.workdir))
		return 0;
	return machine_as_root(work->machine, work_workdir, work, &work->cancel, err);
}

/* Add to the error that a limit was hit, since a command rarely says so. */
static int work_failed(const struct step_work *work, struct err *err)
{
	const struct machine_limits *limits = &work->task.limits;
	uint64_t pids = limits->pids > 0 ? limits->pids : MACHINE_PIDS_DEFAULT;

	if (machine_hit_memory(work->machine))
		return err_set(err, ERR_STEP,
			       "the command ended with exit code %d: the step reached its memory "
			       "limit of %" PRIu64 " MB (resources.memoryMb)",
			       work->exit_code, limits->memory_bytes >> 20);
	if (machine_hit_pids(work->machine))
		return err_set(err, ERR_STEP,
			       "the command ended with exit code %d: the step reached its limit "
			       "of %" PRIu64 " processes (resources.pids)",
			       work->exit_code, pids);
	return err_set(err, ERR_STEP, "the command ended with exit code %d", work->exit_code);
}

static int work_run(struct step_work *work, struct err *err)
{
	const struct task *task = &work->task;
	struct machine_command command = {
		.argv = task->argv,
		.envp = work->mounts.env,
		.cwd = task->workdir,
		.user = str_of(task->user),
		.hostname = "hearth",
		.out_fd = hub_log_fd(work->hub),
		.timeout_ms = task->timeout_ms,
		.cancel = &work->cancel,
	};

	if (work_need_workdir(work, err) < 0 ||
	    machine_run(work->machine, &command, &work->exit_code, err) < 0)
		return -1;
	if (machine_check_room(work->machine, err) < 0)
		return err_ctx(err,
			       "the command ended with exit code %d where nothing more can be "
			       "written",
			       work->exit_code);
	if (work->exit_code != 0)
		return work_failed(work, err);
	return 0;
}

static int work_do(struct step_work *work, struct err *err)
{
	switch (work->task.kind) {
	case INSTRUCTION_RUN:
		return work_run(work, err);
	case INSTRUCTION_COPY:
		return work_copy(work->store, work->machine, &work->task, hub_log_fd(work->hub),
				 &work->list, &work->cancel, err);
	case INSTRUCTION_WORKDIR:
		return machine_as_root(work->machine, work_workdir, work, &work->cancel, err);
	case INSTRUCTION_ENV:
		break;
	}
	return err_set(err, ERR_INVALID, "ENV needs no worker");
}

/* A full limit fails the step even if the command ignores it, since a limit is in no key. */
static int work_reached_disk(const struct step_work *work, struct err *err)
{
	uint64_t mb = work->task.limits.disk_bytes >> 20;

	if (work->task.kind == INSTRUCTION_RUN)
		return err_set(err, ERR_STEP,
			       "the command ended with exit code %d: the step reached its disk "
			       "limit of %" PRIu64 " MB (resources.diskMb)",
			       work->exit_code, mb);
	return err_set(err, ERR_STEP,
		       "the step reached its disk limit of %" PRIu64 " MB (resources.diskMb)", mb);
}

static int work_execute(struct step_work *work, struct err *err)
{
	int result = work_do(work, err);

	if (result < 0 && err->kind != ERR_STEP && err->kind != ERR_FULL)
		return -1;
	return machine_hit_disk(work->machine) ? work_reached_disk(work, err) : result;
}

static int work_diff(struct step_work *work, int dirfd, const char *name, struct err *err)
{
	auto_close int upperfd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int lowerfd = -1;
	struct diff_spec spec = {
		.upperfd = upperfd,
		.lowerfd = -1,
		.codec = work->task.codec,
		.clamp = work->task.clamp,
		.cancel = &work->cancel,
	};

	if (upperfd < 0)
		return err_os(err, errno, "open the upper directory");
	if (machine_lower_view(work->machine, &lowerfd, err) < 0)
		return -1;
	spec.lowerfd = lowerfd;
	return diff_seal(work->store, &spec, &work->diff, err);
}

static void work_fill_record(struct step_work *work)
{
	struct step_record *record = &work->record;

	record->key = work->task.key;
	record->parent = work->task.parent;
	record->created_ms = work->started_ms;
	record->duration_ms = clock_now_ms() - work->started_ms;
	record->empty = work->diff.empty;
	record->components = json_incref(work->task.components);
	if (work->diff.empty)
		return;
	record->blob = work->diff.info.blob;
	record->codec = work->task.codec;
	record->diff_id = work->diff.info.diff_id;
	record->blob_size = work->diff.info.blob_size;
	record->tar_size = work->diff.info.tar_size;
	record->linked_bytes = work->diff.linked_bytes;
	/* In a reproducible bake times count, too: only a layer of the same tar stands in. */
	record->content = work->task.clamp ? record->diff_id : work->diff.content;
}

/* Whether the new layer's tree can be placed and is worth it, as far as is seen. 1, 0 or -1. */
static int work_wants_tree(struct step_work *work, struct err *err)
{
	const struct step_record *record = &work->record;
	auto_step_record struct step_record earlier = STEP_RECORD_INIT;
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (record->empty || machine_has_volume(work->machine))
		return 0;
	if (meta_begin(work->store, META_READ, &meta, err) < 0)
		return -1;
	found = step_find_content(meta, &record->parent, &record->content, &earlier, err);
	if (found != 1)
		return found < 0 ? -1 : 1;
	return digest_equal(&earlier.diff_id, &record->diff_id);
}

/* The record may name an earlier layer of the other codec, with the same tar. */
static int work_put_variant(const struct step_work *work, struct meta *meta, struct err *err)
{
	const struct layer_info *made = &work->diff.info;
	const struct variant variant = {made->blob, made->blob_size};

	if (work->record.empty || work->record.codec == work->task.codec ||
	    !digest_equal(&work->record.diff_id, &made->diff_id))
		return 0;
	return variant_put(meta, &made->diff_id, work->task.codec, &variant, err);
}

/* Who bakes on this layer, or pulls it again, need not read it to know what it is. */
static int work_put_proof(const struct step_work *work, struct meta *meta, struct err *err)
{
	const struct layer_info *made = &work->diff.info;

	return work->diff.empty ? 0 : proof_put(meta, &made->blob, &made->diff_id, err);
}

static int work_put_record(struct step_work *work, struct meta *meta, struct err *err)
{
	if (work->task.draft)
		return draft_put(meta, str_of(work->task.draft), &work->record, err);
	return step_put(meta, &work->record, err);
}

/*
 * work_put_record() decides which layer it is. A tree that was placed in vain
 * is swept, and one that was not placed is made from the blob when it is
 * needed.
 */
static int work_commit(struct step_work *work, int dirfd, const char *name, struct err *err)
{
	struct step_record *record = &work->record;
	auto_close int hold = -1; /* of the tree, until it is recorded */
	AUTO(meta) struct meta *meta = NULL;
	int wanted = work_wants_tree(work, err);

	if (wanted == 1)
		hold = tree_place(work->store, &record->diff_id, dirfd, name, err);
	if (wanted < 0 || (wanted == 1 && hold < 0))
		return -1;
	if (meta_begin(work->store, META_WRITE, &meta, err) < 0 ||
	    work_put_proof(work, meta, err) < 0 || work_put_record(work, meta, err) < 0 ||
	    work_put_variant(work, meta, err) < 0)
		return -1;
	if (wanted == 1 && digest_equal(&record->diff_id, &work->diff.info.diff_id) &&
	    tree_record(meta, work->store, &record->diff_id, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int work_finish(struct step_work *work, struct err *err)
{
	const char *name;
	int dirfd;

	if (work_log_keep(work->store, work->hub, &work->record.log, err) < 0 ||
	    work_list_keep(work->store, &work->task, &work->list, err) < 0 ||
	    machine_detach(work->machine, &dirfd, &name, err) < 0 ||
	    work_diff(work, dirfd, name, err) < 0 || cancel_check(&work->cancel, err) < 0)
		return -1;
	work_fill_record(work);
	return work_commit(work, dirfd, name, err);
}

static int work_all(struct step_work *work, struct err *err)
{
	if (work_open(work, err) < 0 || work_prepare(work, err) < 0)
		return -1;
	work->started_ms = clock_now_ms();
	if (work_execute(work, err) < 0)
		return -1;
	return work_finish(work, err);
}

/* A log that could not be kept ends the step by the same cancel: then it is the cause. */
static void work_find_cause(struct step_work *work, struct err *err)
{
	struct err log_err = {0};
	const struct spool *spool;

	if (err->kind == ERR_CANCELLED && work->hub && hub_end_log(work->hub, &spool, &log_err) < 0)
		*err = log_err;
}

/* The name in run/step goes first, so that no asker comes late. */
static void work_answer(struct step_work *work, int result, struct err *why)
{
	AUTO(json) json_t *answer = result == 0 ? json_object() : wire_error(why, work->exit_code);
	enum wire_type type = result == 0 ? WIRE_RESULT : WIRE_ERROR;
	struct err ignored;

	if (work->store)
		rendezvous_close(work->store, &work->meeting);
	if (work->hub)
		hub_finish(steal_ptr(&work->hub), type, answer);
	else if (wire_send_json(WORK_FD_ASKER, type, answer, &ignored) < 0)
		return; /* nobody is there to be told */
}

int work_step(void)
{
	struct step_work work = {
		.spoolfd = -1,
		.list = BUF_INIT(LISTING_BYTES_MAX),
		.mask = MASK_INIT,
		.mounts = WORK_MOUNTS_INIT,
		.record = STEP_RECORD_INIT,
	};
	struct err err = {0};
	int result;

	if (cancel_init(&work.cancel, &err) < 0)
		return 1;
	result = work_receive_task(&work, &err);
	if (result == 0)
		result = work_all(&work, &err);
	/* Before the answer, so that nothing is left when an asker has it. */
	machine_close(steal_ptr(&work.machine));
	work_mounts_close(&work.mounts);
	if (result < 0) {
		work_find_cause(&work, &err);
		if (work.hub && err.kind != ERR_CANCELLED)
			work_log_keep_failure(work.store, work.hub, &work.task.key, &err);
	}
	work_answer(&work, result, &err);
	if (work.store)
		rendezvous_leave(work.store, &work.meeting);
	auto_close_release(&work.spoolfd);
	step_record_done(&work.record);
	lease_close(work.lease);
	store_close(work.store);
	buf_done(&work.list);
	mask_done(&work.mask);
	task_done(&work.task);
	cancel_done(&work.cancel);
	return result == 0 ? 0 : 1;
}
