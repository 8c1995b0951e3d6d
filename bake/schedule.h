/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - rebakes at the times that image.rebake of an agent's latest
 * version names.
 *
 * A due time is recorded in the transaction that puts the rebake into the
 * queue, so none is kept twice, however the daemon ends. Times that were
 * missed, by a daemon that was down or a clock that jumped, are caught up by
 * one rebake. Where the clock goes back, times that were kept already are not
 * kept again; if it goes back by more than SCHEDULE_BACK_MS it was wrong
 * before, and what was kept then is forgotten.
 *
 * Tables: `schedules` by the agent's id, `schedules.due` by time and id; so a
 * hundred thousand agents that wait cost no memory.
 *
 * Threads: one of its own. schedule_put() may be called from any.
 */
#pragma once

#include "bake/queue.h"
#include "bake/spec.h"

#define SCHEDULE_BACK_MS ((int64_t)24 * 60 * 60 * 1000)
#define SCHEDULE_BATCH 64 /* agents whose time has come, in one transaction */

struct schedule;

/* The queue and clock outlive it; clock may be NULL. */
int schedule_start(struct store *store, struct queue *queue, const struct clock *clock,
		   struct schedule **out, struct err *err) MUST_CHECK;
void schedule_stop(struct schedule *schedule);

/*
 * In the transaction that appends a version: from now on its times count; none
 * where cron is "". Where the times stay the same none is missed.
 */
int schedule_put(struct schedule *schedule, struct meta *meta, struct str agent_id,
		 const struct spec_rebake *rebake, struct err *err) MUST_CHECK;

/* Look at the clock again, after it was set. ctx is the schedule. */
void schedule_wake(void *ctx);
