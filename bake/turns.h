/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - whose bake is next: the open ones of the table of bakes, in memory.
 *
 * Agents take turns, however many bakes each of them has; an agent's own are
 * made in their order. A bake that is not due yet, or must not run beside one
 * that runs, lets others pass: a rebake waits for the bake of its version, even
 * while that waits for another attempt, and for an earlier rebake of the agent.
 * What is due later than in TURNS_WAIT_MAX_MS is due now: the clock went back
 * since it was put off.
 *
 * Threads: its owner locks.
 */
#pragma once

#include "layers/base/ulid.h"

#define TURNS_MAX ((size_t)100000) /* waiting bakes, which the owner ensures; 16 MiB */
#define TURNS_NEVER INT64_MAX
#define TURNS_WAIT_MAX_MS ((int64_t)10 * 60 * 1000) /* nobody is put off for longer */

struct turn {
	char bake_id[ID_TEXT_MAX];
	char agent_id[ID_TEXT_MAX];
	int64_t version;
	bool rebake;
	int64_t due_ms;
};

struct turns;
struct turns *turns_new(void);
void turns_free(struct turns *turns);

void turns_add(struct turns *turns, const struct turn *turn);

/*
 * Take the next bake that is due; it counts as running. Else false, and when
 * one will be due: TURNS_NEVER if only the end of one or a new one can change
 * that.
 */
bool turns_take(struct turns *turns, int64_t now_ms, struct turn *out, int64_t *out_due_ms);

/* A bake that was taken has ended. */
void turns_end(struct turns *turns, const char *bake_id);

/* Forget a waiting bake. False: none waits under that id. */
bool turns_drop(struct turns *turns, struct str bake_id);

/* How many wait, and how many run. */
size_t turns_waiting(const struct turns *turns);
size_t turns_running(const struct turns *turns);

DEFINE_AUTO(turns, struct turns *, turns_free);
