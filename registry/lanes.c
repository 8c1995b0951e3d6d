/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/lanes_priv.h"

#include "layers/base/lock.h"
#include "layers/base/thread.h"

/* What the lanes share. */
struct lanes {
	lanes_fn *fn;
	void *ctx;
	size_t jobs;
	struct cancel *stop;
	struct lock lock;
	/* guarded by lock: */
	size_t next;
	struct err failure; /* the first */
};

struct lane {
	struct lanes *lanes;
	size_t number;
	pthread_t thread;
};

static bool lanes_take(struct lanes *lanes, size_t *out)
{
	bool taken = false;

	lock_take(&lanes->lock);
	if (lanes->failure.kind == ERR_NONE && lanes->next < lanes->jobs) {
		*out = lanes->next++;
		taken = true;
	}
	lock_drop(&lanes->lock);
	return taken;
}

static void lanes_fail(struct lanes *lanes, const struct err *err)
{
	lock_take(&lanes->lock);
	if (lanes->failure.kind == ERR_NONE)
		lanes->failure = *err;
	lock_drop(&lanes->lock);
	cancel_raise(lanes->stop);
}

static void *lane_run(void *ctx)
{
	struct lane *lane = ctx;
	struct lanes *lanes = lane->lanes;
	struct err err;
	size_t job;

	while (lanes_take(lanes, &job)) {
		if (lanes->fn(lanes->ctx, lane->number, job, &err) < 0)
			lanes_fail(lanes, &err);
	}
	return NULL;
}

int lanes_run(lanes_fn *fn, void *ctx, size_t jobs, struct cancel *stop, struct err *err)
{
	struct lanes lanes = {.fn = fn, .ctx = ctx, .jobs = jobs, .stop = stop, .lock = LOCK_INIT};
	struct lane lane[LANES];
	size_t wanted = jobs < LANES ? jobs : LANES;
	size_t started = 1;
	struct err ignored; /* fewer lanes than wanted do the same work */

	for (size_t i = 0; i < LANES; i++)
		lane[i] = (struct lane){.lanes = &lanes, .number = i};
	while (started < wanted &&
	       thread_start(&lane[started].thread, lane_run, &lane[started], &ignored) == 0)
		started++;
	(void)lane_run(&lane[0]);
	for (size_t i = 1; i < started; i++)
		(void)pthread_join(lane[i].thread, NULL);
	if (lanes.failure.kind == ERR_NONE)
		return 0;
	*err = lanes.failure;
	return -1;
}
