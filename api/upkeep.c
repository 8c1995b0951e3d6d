/* SPDX-License-Identifier: Apache-2.0 */
#include "api/upkeep.h"

#include "layers/base/clock.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/base/thread.h"
#include "layers/journal.h"

#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>

#define UPKEEP_ROUND_MS 60000
#define UPKEEP_TRIM_MS 2000 /* until memory that nobody has any more is the host's again */
#define UPKEEP_COLLECT_MS ((int64_t)60 * 60 * 1000)

struct upkeep {
	struct store *store;
	const struct v2 *registry;
	const struct config *config;
	pthread_t thread;
	struct cancel cancel;
	int64_t collect_ms; /* when it collects next, on the monotonic clock */
};

/* 1 there are more that go. */
static int upkeep_trim_some(struct store *store, const struct journal_policy *policy,
			    struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int more;

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	more = journal_trim(meta, policy, clock_now_ms(), err);
	return more < 0 || meta_commit(steal_ptr(&meta), err) < 0 ? -1 : more;
}

int upkeep_trim_events(struct store *store, const struct config *config,
		       const struct cancel *cancel, struct err *err)
{
	bool said = config->events_keep > 0 || config->events_keep_ms > 0;
	const struct journal_policy policy = {
		.keep = said ? (uint64_t)config->events_keep : UPKEEP_EVENTS_KEEP,
		.keep_ms = config->events_keep_ms,
	};
	int more = 1;

	while (more == 1 && !cancel_is_raised(cancel))
		more = upkeep_trim_some(store, &policy, err);
	return more < 0 ? -1 : 0;
}

static int upkeep_collect(const struct upkeep *upkeep, struct err *err)
{
	const struct gc_options options = {
		.store = upkeep->store,
		.policy = upkeep->config->gc,
		.cancel = &upkeep->cancel,
	};
	struct gc_result result = {0};

	if (gc_run(&options, &result, err) < 0)
		return -1;
	log_info("collected images=%" PRIu64 " steps=%" PRIu64 " bytes=%" PRIu64, result.images,
		 result.steps, result.punched);
	return 0;
}

/* What of the mirror goes is given back at once: there may be much of it. */
static void upkeep_trim_mirror(struct upkeep *upkeep)
{
	uint64_t bytes = 0;
	struct err err;

	if (mirror_trim(upkeep->registry->mirror, &upkeep->cancel, &bytes, &err) < 0) {
		log_warn("mirror not trimmed why=\"%s\"", err.text);
		return;
	}
	if (bytes == 0)
		return;
	log_info("mirror trimmed bytes=%" PRIu64, bytes);
	upkeep->collect_ms = clock_monotonic_ms() + UPKEEP_COLLECT_MS;
	if (upkeep_collect(upkeep, &err) < 0 && err.kind != ERR_CANCELLED)
		log_warn("store not collected why=\"%s\"", err.text);
}

static void upkeep_round(struct upkeep *upkeep)
{
	int64_t now_ms = clock_monotonic_ms();
	struct err err;
	int result = upkeep_trim_events(upkeep->store, upkeep->config, &upkeep->cancel, &err);

	if (result == 0 && uploads_expire(upkeep->registry->uploads, UPLOADS_IDLE_MS, &err) < 0)
		result = -1;
	if (result == 0)
		result = gc_make_room(upkeep->store, &upkeep->config->gc, &upkeep->cancel, &err);
	if (result == 0 && now_ms >= upkeep->collect_ms) {
		upkeep->collect_ms = now_ms + UPKEEP_COLLECT_MS;
		result = upkeep_collect(upkeep, &err);
	}
	if (result < 0 && err.kind != ERR_CANCELLED)
		log_warn("store not looked after why=\"%s\"", err.text);
}

static void *upkeep_main(void *ctx)
{
	struct upkeep *upkeep = ctx;
	struct pollfd stop = {.fd = cancel_fd(&upkeep->cancel), .events = POLLIN};
	int64_t round_ms = clock_monotonic_ms() + UPKEEP_ROUND_MS;

	if (upkeep->registry->mirror)
		upkeep_trim_mirror(upkeep); /* the limits may be new */
	while (poll(&stop, 1, UPKEEP_TRIM_MS) == 0) {
		if (upkeep->registry->mirror && mirror_may_be_over(upkeep->registry->mirror))
			upkeep_trim_mirror(upkeep);
		if (clock_monotonic_ms() >= round_ms) {
			upkeep_round(upkeep);
			round_ms = clock_monotonic_ms() + UPKEEP_ROUND_MS;
		}
		(void)malloc_trim(0); /* a thousand connections have been, and left holes */
	}
	return NULL;
}

static void upkeep_free(struct upkeep *upkeep)
{
	if (!upkeep)
		return;
	cancel_done(&upkeep->cancel);
	free(upkeep);
}
DEFINE_AUTO(upkeep, struct upkeep *, upkeep_free);

int upkeep_start(const struct v2 *registry, const struct config *config, struct upkeep **out,
		 struct err *err)
{
	AUTO(upkeep) struct upkeep *upkeep = calloc(1, sizeof(*upkeep));

	if (!upkeep)
		abort();
	*upkeep = (struct upkeep){
		.store = registry->store,
		.registry = registry,
		.config = config,
		.cancel.fd = -1,
		.collect_ms = clock_monotonic_ms() + UPKEEP_COLLECT_MS,
	};
	if (cancel_init(&upkeep->cancel, err) < 0 ||
	    thread_start(&upkeep->thread, upkeep_main, upkeep, err) < 0)
		return -1;
	*out = steal_ptr(&upkeep);
	return 0;
}

void upkeep_stop(struct upkeep *upkeep)
{
	if (!upkeep)
		return;
	cancel_raise(&upkeep->cancel);
	(void)pthread_join(upkeep->thread, NULL);
	upkeep_free(upkeep);
}
