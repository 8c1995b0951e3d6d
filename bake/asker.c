/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/asker.h"

#include "bake/rendezvous.h"
#include "bake/work.h"
#define LOG_MODULE "bake"
#include "layers/base/log.h"
#include "layers/draft.h"
#include "layers/step.h"
#include "sandbox/machine.h"

#include <poll.h>
#include <sys/socket.h>

#define ASKER_RETRY_MS 5 /* between looks at a key that another process holds */
#define ASKER_DIED_ADVICE ": was it killed, or is memory short? dmesg may tell; then bake again"

/*
 * Tell the worker that we leave, and wait until it closes the stream, when all
 * is cleaned up. True: others stay, and the step goes on.
 */
static bool asker_leave(int fd)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	enum wire_type type;
	struct err ignored;

	if (wire_send(fd, WIRE_LEAVE, STR(""), &ignored) < 0)
		return false;
	while (poll(&end, 1, ASKER_LEAVE_MS) > 0) {
		if (wire_receive(fd, NULL, &type, &payload, &ignored) != 1)
			return false;
		if (type == WIRE_LEAVE)
			return true;
	}
	return false;
}

struct answer {
	bool ended;       /* there is one */
	bool started;     /* a worker of ours was asked */
	bool others_stay; /* we left, and the step goes on without us */
	int exit_code;
	json_t *value; /* owned: of a WIRE_RESULT */
};

static int asker_hear(const struct asker *asker, enum wire_type type, struct str payload,
		      struct answer *answer, struct err *err)
{
	AUTO(json) json_t *value = NULL;

	if (type == WIRE_LOG) {
		if (asker->log)
			asker->log(asker->ctx, payload);
		return 0;
	}
	if (type == WIRE_ERROR) {
		answer->ended = true;
		return wire_error_parse(payload, &answer->exit_code, err);
	}
	if (json_parse(payload, WIRE_PAYLOAD_MAX, &value, err) < 0)
		return -1;
	if (type == WIRE_PROGRESS && asker->progress)
		asker->progress(asker->ctx, value);
	if (type == WIRE_RESULT) {
		answer->ended = true;
		answer->value = steal_ptr(&value);
	}
	return 0;
}

/* Listen to the end: 0 with an answer or, when the worker died, without. */
static int asker_listen(const struct asker *asker, int fd, struct answer *answer, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	enum wire_type type;

	while (!answer->ended) {
		int got = wire_receive(fd, asker->cancel, &type, &payload, err);

		if (got < 0 && err->kind == ERR_CANCELLED)
			answer->others_stay = asker_leave(fd);
		if (got < 0 && err->kind != ERR_UNAVAILABLE)
			return -1;
		if (got <= 0)
			return 0;
		if (asker_hear(asker, type, buf_str(&payload), answer, err) < 0)
			return -1;
	}
	return 0;
}

/* Starts the process that serves the other end of the connection. */
typedef int asker_start_fn(void *ctx, int theirs, struct err *err);

/* Send a request; a step's secrets follow it. task is NULL where it is no step's. */
static int asker_send(int fd, const json_t *request, const struct task *task, struct err *err)
{
	if (wire_send_json(fd, WIRE_REQUEST, request, err) < 0)
		return -1;
	return task ? task_send_secrets(task, fd, err) : 0;
}

/* Start a worker, ask it, and listen: as asker_listen(). */
static int asker_request(const struct asker *asker, asker_start_fn *start, void *ctx,
			 const json_t *request, const struct task *task, struct answer *answer,
			 struct err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_os(err, errno, "make a socket");
	auto_close int ours = ends[0];
	auto_close int theirs = ends[1];

	if (start(ctx, theirs, err) < 0)
		return -1;
	answer->started = true;
	auto_close_release(&theirs);
	theirs = -1;
	if (asker_send(ours, request, task, err) < 0)
		return err->kind == ERR_UNAVAILABLE ? 0 : -1; /* it died: no answer */
	return asker_listen(asker, ours, answer, err);
}

/* The right to start a key's worker: its lock, and the socket to listen on. */
struct claim {
	int lockfd;
	int listener;
};

static void claim_release(struct claim *claim)
{
	auto_close_release(&claim->lockfd);
	auto_close_release(&claim->listener);
	*claim = (struct claim){-1, -1};
}

static inline void auto_claim_release(struct claim *slot)
{
	claim_release(slot);
}

struct step_start {
	const struct asker *asker;
	const struct task *task;
	const struct digest *meeting;
	int contextfd; /* or -1 */
	struct claim *claim;
};

static int asker_fork_step(void *ctx, int theirs, struct err *err)
{
	const struct step_start *start = ctx;
	const int fds[] = {theirs, start->claim->listener, start->claim->lockfd, start->contextfd};

	if (crew_fork(start->asker->crew, fds, start->contextfd < 0 ? 3 : 4, err) == 0) {
		claim_release(start->claim); /* from here on they are the worker's alone, and end
						with it */
		return 0;
	}
	rendezvous_close(start->asker->store, start->meeting);
	rendezvous_leave(start->asker->store, start->meeting);
	return -1;
}

/*
 * A worker belongs to all its askers, so we never end it; we wait for its end,
 * so that a step leaves nothing behind.
 */
static int asker_start_step(struct step_start *start, struct answer *answer, struct err *err)
{
	const struct asker *asker = start->asker;
	AUTO(json) json_t *request = task_format(start->task);
	struct err end;
	int result =
		asker_request(asker, asker_fork_step, start, request, start->task, answer, err);

	if (!answer->started || answer->others_stay)
		return result;
	if (crew_wait(asker->crew, ASKER_LEAVE_MS, &end) < 0 && result == 0) {
		*err = end;
		return -1;
	}
	return result;
}

/* Another process holds the key and does not listen: it is about to start or to end. */
static int asker_pause(const struct asker *asker, struct err *err)
{
	struct pollfd wake = {.fd = cancel_fd(asker->cancel), .events = POLLIN};

	(void)poll(&wake, 1, ASKER_RETRY_MS);
	return cancel_check(asker->cancel, err);
}

/* 1 the step has a record already. */
static int asker_find(const struct asker *asker, const struct task *task, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_step_record struct step_record record = STEP_RECORD_INIT;

	if (task->fresh)
		return 0;
	if (meta_begin(asker->store, META_READ, &meta, err) < 0)
		return -1;
	if (task->draft)
		return draft_find(meta, str_of(task->draft), &task->key, false, &record, err);
	return step_find(meta, &task->key, false, &record, err);
}

/* The holder may be done, and only wait for an asker who does not read: so look for the record. */
static int asker_await_holder(const struct asker *asker, const struct task *task,
			      struct answer *answer, struct err *err)
{
	int found = asker_find(asker, task, err);

	answer->ended = found == 1;
	if (found != 0)
		return found < 0 ? -1 : 0;
	return asker_pause(asker, err);
}

/* One try: join, or claim and start. Sets answer->ended when it is over. */
static int asker_try(const struct asker *asker, const struct task *task, int contextfd,
		     bool *out_shared, struct answer *answer, struct err *err)
{
	auto_close int fd = -1;
	AUTO(claim) struct claim claim = {-1, -1};
	struct digest meeting;
	struct step_start start = {asker, task, &meeting, contextfd, &claim};
	int got;

	task_meeting(task, &meeting);
	got = rendezvous_join(asker->store, &meeting, &fd, err);
	if (got == 1) {
		*out_shared = true;
		return asker_listen(asker, fd, answer, err);
	}
	if (got == 0)
		got = rendezvous_claim(asker->store, &meeting, &claim.lockfd, &claim.listener, err);
	if (got == 0)
		return asker_await_holder(asker, task, answer, err);
	if (got < 0)
		return -1;
	/* Whoever held the key before us may just have finished. */
	got = asker_find(asker, task, err);
	if (got != 0) {
		answer->ended = got == 1;
		rendezvous_close(asker->store, &meeting);
		rendezvous_leave(asker->store, &meeting);
		return got < 0 ? -1 : 0;
	}
	return asker_start_step(&start, answer, err);
}

/*
 * A joined step may have failed because of its starter's hosts, limits, time or
 * secrets; ours may differ.
 */
static bool asker_may_be_its_own(const struct answer *answer, const struct err *err)
{
	return answer->ended && !answer->started &&
	       (err->kind == ERR_STEP || err->kind == ERR_TIMEOUT);
}

/* Sweep what the last worker left, since no other worker of this bake will. */
static void asker_sweep(const struct asker *asker)
{
	struct err err;

	rendezvous_sweep(asker->store);
	if (machine_sweep(asker->store, &err) < 0)
		log_debug("machines not swept why=\"%s\"", err.text);
}

int asker_run_step(const struct asker *asker, const struct task *task, int contextfd,
		   bool *out_shared, int *out_exit_code, struct err *err)
{
	bool once_more = true;
	int died = 0;

	*out_shared = false;
	while (died < ASKER_TRIES) {
		struct answer answer = {0};
		int result = asker_try(asker, task, contextfd, out_shared, &answer, err);

		json_decref(answer.value);
		if (result < 0 && once_more && asker_may_be_its_own(&answer, err)) {
			once_more = false;
			continue;
		}
		if (answer.ended && result < 0)
			*out_exit_code = answer.exit_code;
		if (result < 0 || answer.ended)
			return result;
		died += answer.started;
	}
	asker_sweep(asker);
	return err_set(err, ERR_UNAVAILABLE, "the step's worker died %d times" ASKER_DIED_ADVICE,
		       died);
}

struct role_start {
	const struct asker *asker;
	const char *role;
	struct proc *proc;
};

/* A role of one request; its end is ours to wait for. */
static int asker_spawn_role(void *ctx, int theirs, struct err *err)
{
	const struct role_start *start = ctx;
	const char *argv[] = {"hearth-worker", start->role, NULL};
	int streamfd = start->asker->streamfd;
	const struct proc_spec spec = {
		.path = start->asker->worker_path,
		.argv = argv,
		.fds = {-1, -1, STDERR_FILENO, theirs, streamfd > 0 ? streamfd : -1},
		.fd_count = WORK_FD_STREAM + 1,
		.new_session = true,
	};

	return proc_spawn(&spec, start->proc, err);
}

/* The result of a call, or that its worker could not be started. */
static int asker_reap(const struct asker *asker, struct proc *proc, int result, struct err *err)
{
	struct err ignored;
	int status;

	if (proc_wait(proc, ASKER_LEAVE_MS, NULL, &status, &ignored) < 0)
		proc_forget(proc);
	else if (result == 0)
		return proc_check_started(status, asker->worker_path, err);
	return result;
}

/* *out stays NULL where the worker died. */
static int asker_call_once(const struct asker *asker, const char *role, const json_t *request,
			   json_t **out, struct err *err)
{
	struct answer answer = {0};
	auto_proc struct proc proc = PROC_INIT;
	struct role_start start = {asker, role, &proc};
	int result = asker_request(asker, asker_spawn_role, &start, request, NULL, &answer, err);

	if (answer.started)
		result = asker_reap(asker, &proc, result, err);
	if (result == 0)
		*out = answer.value;
	return result;
}

json_t *asker_request_new(struct store *store)
{
	json_t *request = json_object();

	json_set_text(request, "store", store_path(store));
	json_set_size(request, "mapBytes", store_map_bytes(store));
	return request;
}

int asker_call(const struct asker *asker, const char *role, const json_t *request, json_t **out,
	       struct err *err)
{
	/* A stream that a first try has read or written cannot be used again. */
	int tries = asker->streamfd > 0 ? 1 : ASKER_CALL_TRIES;
	json_t *value = NULL;

	for (int try = 0; try < tries; try++) {
		if (asker_call_once(asker, role, request, &value, err) < 0)
			return -1;
		if (value) {
			*out = value;
			return 0;
		}
	}
	return err_set(err, ERR_UNAVAILABLE, "%s died %d times" ASKER_DIED_ADVICE,
		       asker->worker_path, tries);
}
