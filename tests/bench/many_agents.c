/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_agents.c - what the bench of the daemon needs of a store.
 *
 *	many_agents DIR N    agent-0 to agent-(N-1), each with a version that is
 *	                     ready; prints their ids
 */
#include "bake/agent.h"
#include "bake/status.h"
#include "layers/base/clock.h"

#include <inttypes.h>
#include <stdio.h>

/* An agent_appended_fn: its image is there. */
static int be_ready(void *ctx, struct meta *meta, const struct agent *agent,
		    const struct agent_version *version, struct err *err)
{
	const struct str id = str_of(agent->id);
	const struct str slug = str_of(agent->slug);
	AUTO(json) json_t *status = status_new(id, slug, version->number);
	struct status_image image = {.size = 1000, .finished_ms = version->at_ms};

	(void)ctx;
	digest_of(slug, &image.digest);
	status_set_ready(status, &image);
	return status_put(meta, status, err);
}

static int sync_one(struct store *store, uintmax_t n, struct err *err)
{
	auto_agent_synced struct agent_synced synced = {0};
	char text[256];
	struct agent_sync sync = {.id = STR(""), .now_ms = clock_now_ms(), .appended = be_ready};

	(void)snprintf(text, sizeof(text),
		       "{\"slug\":\"agent-%ju\",\"model\":\"m\",\"system\":\"s\",\"sandbox\":{"
		       "\"image\":{\"base\":\"scratch\",\"steps\":[\"ENV N=%ju\"]}}}",
		       n, n);
	sync.text = str_of(text);
	if (agent_sync(store, &sync, &synced, err) < 0)
		return -1;
	(void)puts(synced.agent.id);
	return 0;
}

int main(int argc, char **argv)
{
	struct store_options options = {.create = true};
	AUTO(store) struct store *store = NULL;
	struct err err;
	int rc;

	if (argc != 3)
		return 2;
	options.path = argv[1];
	rc = store_open(&options, &store, &err);
	for (uintmax_t n = 0; rc == 0 && n < strtoumax(argv[2], NULL, 10); n++)
		rc = sync_one(store, n, &err);
	if (rc < 0)
		(void)fprintf(stderr, "%s\n", err.text);
	return rc < 0 ? 1 : 0;
}
