/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - a ring of the agents that have waiting bakes, each with its bakes
 * in order. After its turn an agent goes to the ring's end.
 */
#include "bake/turns.h"

#include "layers/base/array.h"

#include <sys/queue.h>

#define TURNS_BUCKETS ((size_t)4096)

struct turns_bake {
	TAILQ_ENTRY(turns_bake) next;
	struct turn turn;
};

struct turns_agent {
	TAILQ_ENTRY(turns_agent) ring;
	LIST_ENTRY(turns_agent) bucket;
	TAILQ_HEAD(turns_bakes, turns_bake) bakes; /* never empty while the agent is in the ring */
};

struct turns {
	TAILQ_HEAD(turns_ring, turns_agent) ring;
	LIST_HEAD(turns_bucket, turns_agent) buckets[TURNS_BUCKETS];
	struct turn *running; /* owned array */
	size_t running_count;
	size_t waiting;
};

struct turns *turns_new(void)
{
	struct turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		abort();
	TAILQ_INIT(&turns->ring);
	return turns;
}

static void turns_remove(struct turns *turns, struct turns_agent *agent, struct turns_bake *bake)
{
	TAILQ_REMOVE(&agent->bakes, bake, next);
	free(bake);
	turns->waiting--;
	if (!TAILQ_EMPTY(&agent->bakes))
		return;
	TAILQ_REMOVE(&turns->ring, agent, ring);
	LIST_REMOVE(agent, bucket);
	free(agent);
}

void turns_free(struct turns *turns)
{
	if (!turns)
		return;
	while (!TAILQ_EMPTY(&turns->ring)) {
		struct turns_agent *agent = TAILQ_FIRST(&turns->ring);

		turns_remove(turns, agent, TAILQ_FIRST(&agent->bakes));
	}
	free(turns->running);
	free(turns);
}

/* An id's end is random. */
static struct turns_bucket *turns_bucket(struct turns *turns, const char *agent_id)
{
	uint32_t hash = 0;

	for (; *agent_id; agent_id++)
		hash = hash * 31 + (unsigned char)*agent_id;
	return &turns->buckets[hash % TURNS_BUCKETS];
}

static struct turns_agent *turns_find_agent(struct turns *turns, const char *agent_id)
{
	struct turns_bucket *bucket = turns_bucket(turns, agent_id);
	struct turns_agent *agent;

	LIST_FOREACH(agent, bucket, bucket)
	{
		if (strcmp(TAILQ_FIRST(&agent->bakes)->turn.agent_id, agent_id) == 0)
			return agent;
	}
	agent = calloc(1, sizeof(*agent));
	if (!agent)
		abort();
	TAILQ_INIT(&agent->bakes);
	TAILQ_INSERT_TAIL(&turns->ring, agent, ring);
	LIST_INSERT_HEAD(bucket, agent, bucket);
	return agent;
}

void turns_add(struct turns *turns, const struct turn *turn)
{
	struct turns_agent *agent = turns_find_agent(turns, turn->agent_id);
	struct turns_bake *bake = calloc(1, sizeof(*bake));

	if (!bake)
		abort();
	bake->turn = *turn;
	TAILQ_INSERT_TAIL(&agent->bakes, bake, next);
	turns->waiting++;
}

/* Whether a running bake must end first. */
static bool turns_is_held(const struct turns *turns, const struct turn *turn)
{
	for (size_t i = 0; i < turns->running_count; i++) {
		const struct turn *running = &turns->running[i];

		if (strcmp(running->agent_id, turn->agent_id) == 0 &&
		    (running->version == turn->version || (running->rebake && turn->rebake)))
			return true;
	}
	return false;
}

/* Whether it is a rebake of a version whose bake still waits: that one comes first. */
static bool turns_is_early(const struct turns_agent *agent, const struct turn *turn)
{
	const struct turns_bake *bake;

	TAILQ_FOREACH(bake, &agent->bakes, next)
	{
		if (turn->rebake && !bake->turn.rebake && bake->turn.version == turn->version)
			return true;
	}
	return false;
}

static bool turns_is_due(const struct turn *turn, int64_t now_ms)
{
	return turn->due_ms <= now_ms || turn->due_ms - now_ms > TURNS_WAIT_MAX_MS;
}

/* The first of an agent's that may run now, or NULL. */
static struct turns_bake *turns_choose(const struct turns *turns, const struct turns_agent *agent,
				       int64_t now_ms, int64_t *due_ms)
{
	struct turns_bake *bake;

	TAILQ_FOREACH(bake, &agent->bakes, next)
	{
		if (turns_is_held(turns, &bake->turn) || turns_is_early(agent, &bake->turn))
			continue;
		if (turns_is_due(&bake->turn, now_ms))
			return bake;
		if (bake->turn.due_ms < *due_ms)
			*due_ms = bake->turn.due_ms;
	}
	return NULL;
}

static void turns_run(struct turns *turns, const struct turn *turn)
{
	turns->running = array_grow(turns->running, turns->running_count, sizeof(*turns->running));
	turns->running[turns->running_count++] = *turn;
}

bool turns_take(struct turns *turns, int64_t now_ms, struct turn *out, int64_t *out_due_ms)
{
	struct turns_agent *agent;
	int64_t due_ms = TURNS_NEVER;

	TAILQ_FOREACH(agent, &turns->ring, ring)
	{
		struct turns_bake *bake = turns_choose(turns, agent, now_ms, &due_ms);

		if (!bake)
			continue;
		*out = bake->turn;
		turns_run(turns, out);
		TAILQ_REMOVE(&turns->ring, agent, ring);
		TAILQ_INSERT_TAIL(&turns->ring, agent, ring);
		turns_remove(turns, agent, bake);
		return true;
	}
	*out_due_ms = due_ms;
	return false;
}

void turns_end(struct turns *turns, const char *bake_id)
{
	for (size_t i = 0; i < turns->running_count; i++) {
		if (strcmp(turns->running[i].bake_id, bake_id) == 0) {
			turns->running[i] = turns->running[--turns->running_count];
			return;
		}
	}
}

bool turns_drop(struct turns *turns, struct str bake_id)
{
	struct turns_agent *agent;
	struct turns_bake *bake;

	TAILQ_FOREACH(agent, &turns->ring, ring)
	{
		TAILQ_FOREACH(bake, &agent->bakes, next)
		{
			if (str_equal(str_of(bake->turn.bake_id), bake_id)) {
				turns_remove(turns, agent, bake);
				return true;
			}
		}
	}
	return false;
}

size_t turns_waiting(const struct turns *turns)
{
	return turns->waiting;
}

size_t turns_running(const struct turns *turns)
{
	return turns->running_count;
}
