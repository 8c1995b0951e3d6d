/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop.h - a queue with a maker that does what a test says, and a clock
 * that stands still until it is moved.
 *
 * What is made is held at a gate where a test asks for that, so nothing depends
 * on who is faster.
 */
#pragma once

#include "bake/queue.h"
#include "tests/layers/store_fixture.h"

#include <pthread.h>

#define WORKSHOP_MADE_MAX 64
#define WORKSHOP_NOW_MS ((int64_t)1700000000000)

/* An attempt, as it began. */
struct workshop_made {
	char agent_id[ID_TEXT_MAX];
	int64_t version;
	int64_t attempt;
	bool rebake;
	bool has_base;
	struct digest base;
	bool has_previous;
	struct digest previous;
};

struct workshop {
	struct maker maker;
	struct clock clock;
	struct store_fixture *fixture;
	struct queue *queue;
	size_t parallel;
	int gate; /* a semaphore */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	int64_t now_ms;
	uint64_t changes;
	bool held;      /* each attempt waits at the gate */
	struct err why; /* how attempts end, where there is a kind */
	bool terminal;  /* such an end is */
	char image[64]; /* what the next images' names are made of */
	char base[64];  /* and their bases' */
	struct workshop_made made[WORKSHOP_MADE_MAX];
	const struct maker_ear *ear; /* of the one that began last, while it is held */
	size_t made_count;
	size_t running;
	size_t running_most;
	size_t published;
	size_t restored;
	size_t pushed_again; /* references */
	json_t *pushes;      /* of each image; borrowed */
	bool publish_fails;
};

int workshop_open(void **state);
int workshop_close(void **state);

/* With so many threads, on what is in the store. */
void workshop_start(struct workshop *workshop, size_t parallel);
void workshop_stop(struct workshop *workshop, int grace_ms);

/* Hold what is made from now on; let so many go, or all from now on. */
void workshop_hold(struct workshop *workshop);
void workshop_let_go(struct workshop *workshop, size_t count);
void workshop_open_gate(struct workshop *workshop);

/* How attempts end from now on. ERR_NONE: well. */
void workshop_fail(struct workshop *workshop, enum err_kind kind, bool terminal);

/* Another content, so another image. */
void workshop_set_image(struct workshop *workshop, const char *name);
void workshop_set_base(struct workshop *workshop, const char *name);
struct digest workshop_image(const char *name);

void workshop_pass_ms(struct workshop *workshop, int64_t ms);

/* Put a version's bake into the queue; agents are numbered. */
void workshop_put(struct workshop *workshop, int agent, int64_t version);
void workshop_put_base(struct workshop *workshop, int agent, int64_t version, const char *base);
struct str workshop_agent(int agent);

/* Wait until so many attempts have begun, in all. */
void workshop_wait_made(struct workshop *workshop, size_t count);

/* Wait until the newest bake of an agent is in that state; its record. */
struct bakes_record workshop_wait(struct workshop *workshop, int agent, enum bakes_state state);

/* The same, where its record does not matter. */
void workshop_ended(struct workshop *workshop, int agent, enum bakes_state state);

/* What imageStatus says now. Owned. */
json_t *workshop_status(struct workshop *workshop, int agent, int64_t version);

/* A member's text, or "". */
const char *workshop_text(const json_t *object, const char *name);

/* That the types of all events so far are these, with blanks between them. */
void workshop_check_events(struct workshop *workshop, const char *expected);

/* That an image of a status is the one of that name. */
void workshop_check_image(const json_t *image, const char *name);
