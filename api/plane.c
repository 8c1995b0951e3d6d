/* SPDX-License-Identifier: Apache-2.0 */
#include "api/plane.h"

#include "api/metrics.h"
#include "api/secret_option.h"
#include "bake/appended.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/base/thread.h"
#include "layers/journal.h"
#include "registry/tag.h"

#include <stdio.h>

/* The queue reports that something of this agent has changed, perhaps only its log. */
static void plane_hear_queue(void *ctx, struct str agent_id)
{
	const struct plane *plane = ctx;

	if (agent_id.len > 0) /* a change of any agent has an event of its own */
		server_wake(plane->server, http_topic(agent_id));
}

struct plane_telling {
	struct server *server;
	uint64_t last;
};

static int plane_tell(void *ctx, const struct event *event, struct err *err)
{
	struct plane_telling *telling = ctx;

	(void)err;
	if (event->agent_id.len > 0)
		server_wake(telling->server, http_topic(event->agent_id));
	telling->last = event->id;
	return 0;
}

/* Two threads may run this at once; then an agent is woken twice. */
static void plane_hear_journal(void *ctx)
{
	struct plane *plane = ctx;
	struct plane_telling telling = {plane->server, atomic_load(&plane->told)};
	uint64_t before = telling.last;
	AUTO(meta) struct meta *meta = NULL;
	struct err err;

	if (meta_begin(plane->store, META_READ, &meta, &err) < 0 ||
	    journal_read(meta, before, plane_tell, &telling, &err) < 0)
		log_warn("events not read why=\"%s\"", err.text);
	while (before < telling.last &&
	       !atomic_compare_exchange_weak(&plane->told, &before, telling.last))
		continue;
	server_wake(plane->server, http_topic(STR(PLANE_EVENTS)));
}

static int plane_find_last_event(struct plane *plane, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	uint64_t oldest;
	uint64_t newest = 0;

	if (meta_begin(plane->store, META_READ, &meta, err) < 0 ||
	    journal_ends(meta, &oldest, &newest, err) < 0)
		return -1;
	atomic_init(&plane->told, newest);
	return 0;
}

static int plane_read_secrets(void *ctx, struct secrets *out, struct err *err)
{
	const struct plane *plane = ctx;

	return secret_option_read_config(plane->config, out, err);
}

static struct maker *plane_make_maker(struct plane *plane, const struct cli *cli)
{
	struct maker_job_options options = {
		.request.program = cli->hearth_path,
		.request.config = cli_text(cli, "config"),
		.request.store = plane->store,
		.request.hosts = cli->config.hosts,
		.request.host_count = cli->config.host_count,
		.pusher = plane->pusher,
		.timeout_ms = cli->config.bakes_timeout_ms,
		.secrets = plane_read_secrets,
		.ctx = plane,
	};

	return maker_job_new(&options);
}

static int plane_start_queue(struct plane *plane, const struct cli *cli, struct err *err)
{
	struct queue_options options = {
		.store = plane->store,
		.maker = plane->maker,
		.parallel = (size_t)cli->config.bakes_parallel,
		.changed = plane_hear_queue,
		.changed_ctx = plane,
	};

	if (options.parallel == 0)
		options.parallel = thread_cores(QUEUE_PARALLEL_MAX);
	if (queue_start(&options, &plane->queue, err) < 0)
		return -1;
	return schedule_start(plane->store, plane->queue, NULL, &plane->schedule, err);
}

static int plane_start_pusher(struct plane *plane, const struct cli *cli, struct err *err)
{
	struct pusher_options options = {
		.store = plane->store, .push = delivery_push, .push_ctx = &plane->delivery};

	plane->delivery = (struct delivery){cli, plane->store};
	return pusher_start(&options, &plane->pusher, err);
}

int plane_start(struct plane *plane, const struct cli *cli, struct store *store,
		struct server *server, const struct v2 *registry, struct err *err)
{
	*plane = (struct plane){.store = store, .server = server, .config = &cli->config};
	if (tag_adopt(store, err) < 0)
		return err_ctx(err, "serve the images that are here");
	if (plane_start_pusher(plane, cli, err) < 0)
		return -1;
	plane->maker = plane_make_maker(plane, cli);
	if (plane_find_last_event(plane, err) < 0)
		return -1;
	journal_listen(store, plane_hear_journal, plane);
	if (plane_start_queue(plane, cli, err) < 0)
		return -1;
	return upkeep_start(registry, plane->config, &plane->upkeep, err);
}

void plane_stop(struct plane *plane, int64_t grace_ms)
{
	upkeep_stop(plane->upkeep);
	schedule_stop(plane->schedule);
	queue_stop(plane->queue, grace_ms > INT32_MAX ? INT32_MAX : (int)grace_ms);
	maker_job_free(plane->maker);
	pusher_stop(plane->pusher);
}

int plane_take_version(void *ctx, struct meta *meta, const struct agent *agent,
		       const struct agent_version *version, struct err *err)
{
	struct plane_version *taking = ctx;
	const json_t *sandbox = json_object_get(version->spec, "sandbox");
	struct appended appended = {taking->plane->queue, taking->plane->schedule};

	taking->has_image = json_is_object(json_object_get(sandbox, "image"));
	return appended_version(&appended, meta, agent, version, err);
}

static int plane_step_metric(enum instruction_kind kind, bool hit, uint64_t value, struct buf *page,
			     struct err *err)
{
	bool first = kind == INSTRUCTION_RUN && hit;
	char labels[64];
	const struct metric_sample sample = {"hearth_steps_total", labels, first ? "counter" : NULL,
					     first ? "Steps of bakes that ended well." : NULL,
					     value};

	(void)snprintf(labels, sizeof(labels), "kind=\"%s\",cache=\"%s\"", instruction_name(kind),
		       hit ? "hit" : "miss");
	return metrics_value(page, &sample, err);
}

static int plane_step_metrics(const struct instruction_counts *steps, struct buf *page,
			      struct err *err)
{
	for (size_t i = 0; i < INSTRUCTION_KINDS; i++) {
		enum instruction_kind kind = (enum instruction_kind)i;

		if (plane_step_metric(kind, true, steps->cached[i], page, err) < 0 ||
		    plane_step_metric(kind, false, steps->all[i] - steps->cached[i], page, err) < 0)
			return -1;
	}
	return 0;
}

int plane_metrics(void *ctx, struct buf *page, struct err *err)
{
	const struct plane *plane = ctx;
	struct queue_counts counts;

	queue_count(plane->queue, &counts);
	const struct metric_sample samples[] = {
		{"hearth_queue_bakes", "state=\"waiting\"", "gauge",
		 "Bakes that are open: for their turn or another attempt, and at work.",
		 counts.waiting},
		{"hearth_queue_bakes", "state=\"running\"", NULL, NULL, counts.running},
		{"hearth_bakes_total", "state=\"ready\"", "counter",
		 "Bakes that ended, since the start.", counts.ended[BAKES_READY]},
		{"hearth_bakes_total", "state=\"unchanged\"", NULL, NULL,
		 counts.ended[BAKES_UNCHANGED]},
		{"hearth_bakes_total", "state=\"failed\"", NULL, NULL, counts.ended[BAKES_FAILED]},
		{"hearth_bakes_total", "state=\"cancelled\"", NULL, NULL,
		 counts.ended[BAKES_CANCELLED]},
		{"hearth_bake_retries_total", "", "counter",
		 "Attempts that failed in passing, and were put off.", counts.retried},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		if (metrics_value(page, &samples[i], err) < 0)
			return -1;
	}
	return plane_step_metrics(&counts.steps, page, err);
}
