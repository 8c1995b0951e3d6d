/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - whose bake is next: in memory, what is in the table of bakes.
 *
 * Agents take turns, whatever the number of bakes that each of them has; of an
 * agent's own the one that came first goes first. What is not due yet, or must
 * not run beside one that runs, lets others pass: a rebake waits for the bake of
 * its version, also where that waits for another attempt, and for an agent's
 * earlier rebake.
 *
 * Threads: its owner locks.
 */
#pragma once

#include "layers/base/ulid.h"

#define TURNS_MAX ((size_t)100000) /* that wait, by the owner's care; 16 MiB */
#define TURNS_NEVER INT64_MAX

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
 * The next one that is due; it runs from now on. Else false, and when one will
 * be due: TURNS_NEVER where only an end or another one can change that.
 */
bool turns_take(struct turns *turns, int64_t now_ms, struct turn *out, int64_t *out_due_ms);

/* What was taken runs no longer. */
void turns_end(struct turns *turns, const char *bake_id);

/* Forget one that waits. False: none does under that id. */
bool turns_drop(struct turns *turns, struct str bake_id);

/* How many wait, and how many run. */
size_t turns_waiting(const struct turns *turns);
size_t turns_running(const struct turns *turns);

DEFINE_AUTO(turns, struct turns *, turns_free);
