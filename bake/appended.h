/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appended.h - what follows from a new version of an agent, in the transaction
 * that appends it: its status, its bake, and the times of its rebakes.
 */
#pragma once

#include "bake/agent.h"
#include "bake/schedule.h"

struct appended {
	struct queue *queue;
	struct schedule *schedule;
};

/* An agent_appended_fn; ctx is a struct appended. */
int appended_version(void *ctx, struct meta *meta, const struct agent *agent,
		     const struct agent_version *version, struct err *err) MUST_CHECK;
