/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plane.h - what runs behind the daemon's methods: the queue and its bakes, and
 * the waking of those who wait for them.
 *
 * Requests wait for an agent by its id, and for events by PLANE_EVENTS: these
 * are topics (layers/base/http.h). The queue reports all of its work, steps'
 * output included, as changes of an agent; each commit that appended an event
 * wakes those who wait for events, and for the agent that it is about.
 *
 * Threads: plane_start() and plane_stop() are the main thread's; the callbacks
 * come from those that commit.
 */
#pragma once

#include "api/cli.h"
#include "api/delivery.h"
#include "api/server.h"
#include "api/upkeep.h"
#include "bake/agent.h"
#include "bake/maker_job.h"
#include "bake/queue.h"
#include "bake/schedule.h"

#include <stdatomic.h>

#define PLANE_EVENTS "events"

struct plane {
	struct store *store;
	struct server *server;
	const struct config *config;
	struct delivery delivery;
	struct pusher *pusher;
	struct maker *maker;
	struct queue *queue;
	struct schedule *schedule;
	struct upkeep *upkeep;
	atomic_uint_least64_t told; /* the last event whose agent was woken */
};

/* The store, the server, the registry and the cli outlive it. */
int plane_start(struct plane *plane, const struct cli *cli, struct store *store,
		struct server *server, const struct v2 *registry, struct err *err) MUST_CHECK;

/* Give running bakes so long to end, and put back those that do not. */
void plane_stop(struct plane *plane, int64_t grace_ms);

/* A version that is synced, and whether it has an image to bake. */
struct plane_version {
	struct plane *plane;
	bool has_image;
};

/*
 * An agent_appended_fn: the version's bake joins the queue, and its rebakes the
 * schedule. ctx is a struct plane_version.
 */
int plane_take_version(void *ctx, struct meta *meta, const struct agent *agent,
		       const struct agent_version *version, struct err *err) MUST_CHECK;

/* A metrics_source_fn. ctx is the plane. */
int plane_metrics(void *ctx, struct buf *page, struct err *err) MUST_CHECK;
