/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - two tables that agree:
 *
 *	schedules       agent's id                     v, cron, jitterMs; afterMs: the times
 *	                                               that count come after it; dueMs: the next
 *	schedules.due   dueMs big-endian, agent's id   v
 */
#include "bake/schedule.h"

#include "bake/cron.h"
#define LOG_MODULE "bake"
#include "layers/base/array.h"
#include "layers/base/lock.h"
#include "layers/base/log.h"
#include "layers/base/thread.h"

#include <endian.h>
#include <stdio.h>
#include <time.h>

#define SCHEDULES "schedules"
#define SCHEDULES_DUE "schedules.due"
#define SCHEDULE_LOOK_MS ((int64_t)60000) /* a clock that was set is noticed after that */
#define SCHEDULE_AGAIN_MS ((int64_t)5000) /* after a transaction that could not be made */
#define SCHEDULE_NEVER INT64_MAX

struct schedule {
	struct store *store;
	struct queue *queue;
	const struct clock *clock;
	pthread_t thread;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool woken;
	bool ended;
};

/* An agent's times. */
struct schedule_entry {
	char agent_id[ID_TEXT_MAX];
	char cron[CRON_TEXT_MAX + 1];
	int64_t jitter_ms;
	int64_t after_ms;
	int64_t due_ms;
};

struct schedule_key {
	char bytes[sizeof(uint64_t) + ID_TEXT_MAX];
};

static struct str schedule_key(const struct schedule_entry *entry, struct schedule_key *key)
{
	uint64_t big_endian = htobe64((uint64_t)entry->due_ms);
	size_t len = strlen(entry->agent_id);

	memcpy(key->bytes, &big_endian, sizeof(big_endian));
	memcpy(key->bytes + sizeof(big_endian), entry->agent_id, len);
	return (struct str){key->bytes, sizeof(big_endian) + len};
}

static int64_t schedule_due_of(struct str key)
{
	uint64_t big_endian = 0;

	if (key.len > sizeof(big_endian))
		memcpy(&big_endian, key.ptr, sizeof(big_endian));
	return (int64_t)be64toh(big_endian);
}

/* The same for an agent and a time, whoever asks; less than max. */
static int64_t schedule_jitter(const struct schedule_entry *entry, int64_t at_ms, int64_t max)
{
	char text[ID_TEXT_MAX + 32];
	struct digest digest;
	uint64_t number;

	if (max <= 0)
		return 0;
	(void)snprintf(text, sizeof(text), "%s %lld", entry->agent_id, (long long)at_ms);
	digest_of(str_of(text), &digest);
	memcpy(&number, digest.bytes, sizeof(number));
	return (int64_t)(number % (uint64_t)max);
}

/* The first time after after_ms, plus jitter, but before the time that follows. */
static int schedule_set_due(struct schedule_entry *entry, struct err *err)
{
	struct cron cron;
	int64_t at_ms;
	int64_t gap_ms;

	if (cron_parse(str_of(entry->cron), &cron, err) < 0)
		return err_ctx(err, "the schedule of %s", entry->agent_id);
	at_ms = cron_next(&cron, entry->after_ms);
	gap_ms = cron_next(&cron, at_ms) - at_ms;
	entry->due_ms =
		at_ms + schedule_jitter(entry, at_ms,
					entry->jitter_ms < gap_ms ? entry->jitter_ms : gap_ms);
	return 0;
}

static int schedule_parse(struct str agent_id, const json_t *record, struct schedule_entry *out,
			  struct err *err)
{
	struct str cron;

	if (json_need_string(record, SCHEDULES, "cron", &cron, err) < 0 ||
	    json_need_int(record, SCHEDULES, "jitterMs", &out->jitter_ms, err) < 0 ||
	    json_need_int(record, SCHEDULES, "afterMs", &out->after_ms, err) < 0 ||
	    json_need_int(record, SCHEDULES, "dueMs", &out->due_ms, err) < 0)
		return -1;
	if (cron.len > CRON_TEXT_MAX || agent_id.len >= ID_TEXT_MAX)
		return err_set(err, ERR_CORRUPT, "the schedule of " STR_FMT, STR_ARG(agent_id));
	(void)snprintf(out->cron, sizeof(out->cron), STR_FMT, STR_ARG(cron));
	(void)snprintf(out->agent_id, sizeof(out->agent_id), STR_FMT, STR_ARG(agent_id));
	return 0;
}

/* 1, 0 or -1. */
static int schedule_find(struct meta *meta, struct str agent_id, struct schedule_entry *out,
			 struct err *err)
{
	AUTO(json) json_t *record = NULL;
	int found = meta_get(meta, SCHEDULES, agent_id, &record, err);

	return found == 1 && schedule_parse(agent_id, record, out, err) < 0 ? -1 : found;
}

static int schedule_forget_due(struct meta *meta, const struct schedule_entry *entry,
			       struct err *err)
{
	struct schedule_key key;

	return meta_del(meta, SCHEDULES_DUE, schedule_key(entry, &key), err) < 0 ? -1 : 0;
}

/* Write an entry whose due time was just set; the caller has removed the old one. */
static int schedule_write(struct meta *meta, const struct schedule_entry *entry, struct err *err)
{
	AUTO(json) json_t *due = json_pack("{s:i}", "v", 1);
	AUTO(json)
	json_t *record = json_pack("{s:i, s:s, s:I, s:I, s:I}", "v", 1, "cron", entry->cron,
				   "jitterMs", (json_int_t)entry->jitter_ms, "afterMs",
				   (json_int_t)entry->after_ms, "dueMs", (json_int_t)entry->due_ms);
	struct schedule_key key;

	if (meta_put(meta, SCHEDULES_DUE, schedule_key(entry, &key), due, err) < 0)
		return -1;
	return meta_put(meta, SCHEDULES, str_of(entry->agent_id), record, err);
}

/* Times up to then are done with. */
static int schedule_advance(struct meta *meta, struct schedule_entry *entry, int64_t after_ms,
			    struct err *err)
{
	if (schedule_forget_due(meta, entry, err) < 0)
		return -1;
	entry->after_ms = after_ms;
	if (schedule_set_due(entry, err) < 0)
		return -1;
	return schedule_write(meta, entry, err);
}

void schedule_wake(void *ctx)
{
	struct schedule *schedule = ctx;

	lock_take(&schedule->lock);
	schedule->woken = true;
	pthread_cond_broadcast(&schedule->changed);
	lock_drop(&schedule->lock);
}

int schedule_put(struct schedule *schedule, struct meta *meta, struct str agent_id,
		 const struct spec_rebake *rebake, struct err *err)
{
	struct schedule_entry entry = {.agent_id = ""};
	int found = schedule_find(meta, agent_id, &entry, err);

	if (found < 0)
		return -1;
	if (found == 1 && str_equal(str_of(entry.cron), rebake->cron) &&
	    entry.jitter_ms == rebake->jitter_ms)
		return 0;
	if (found == 1 && schedule_forget_due(meta, &entry, err) < 0)
		return -1;
	if (rebake->cron.len == 0)
		return meta_del(meta, SCHEDULES, agent_id, err) < 0 ? -1 : 0;
	if (rebake->cron.len > CRON_TEXT_MAX || agent_id.len >= ID_TEXT_MAX)
		return err_set(err, ERR_INVALID, "no schedule");
	(void)snprintf(entry.agent_id, sizeof(entry.agent_id), STR_FMT, STR_ARG(agent_id));
	(void)snprintf(entry.cron, sizeof(entry.cron), STR_FMT, STR_ARG(rebake->cron));
	entry.jitter_ms = rebake->jitter_ms;
	entry.after_ms = clock_ask_ms(schedule->clock);
	if (schedule_set_due(&entry, err) < 0 || schedule_write(meta, &entry, err) < 0)
		return -1;
	meta_on_commit(meta, schedule_wake, schedule);
	return 0;
}

/* 1 and the entry that `due` names; 0 it names none, or none that can be read; -1. */
static int schedule_resolve(struct meta *meta, const struct schedule_entry *due,
			    struct schedule_entry *out, struct err *err)
{
	int found = schedule_find(meta, str_of(due->agent_id), out, err);

	if (found == 1)
		return out->due_ms == due->due_ms;
	if (found == 0 || (err->kind != ERR_CORRUPT && err->kind != ERR_INVALID))
		return found;
	log_warn("schedule not read agent=%s why=\"%s\"", due->agent_id, err->text);
	return 0;
}

/*
 * Keep one due time: put the rebake into the queue. An agent that cannot be
 * rebaked is passed over this time.
 */
static int schedule_keep_time(struct schedule *schedule, struct meta *meta,
			      const struct schedule_entry *due, int64_t now_ms, struct err *err)
{
	struct schedule_entry entry;
	struct queue_ticket ticket;
	int found = schedule_resolve(meta, due, &entry, err);

	if (found < 0)
		return -1;
	if (found == 0)
		return schedule_forget_due(meta, due, err);
	if (queue_put_rebake(schedule->queue, meta, str_of(entry.agent_id), 0, &ticket, err) < 0) {
		if (err->kind != ERR_NOT_FOUND && err->kind != ERR_CONFLICT)
			return -1;
		log_debug("rebake passed over agent=%s why=\"%s\"", entry.agent_id, err->text);
	}
	return schedule_advance(meta, &entry, now_ms, err);
}

/* The first one, of which nothing but its name and time is read: 1, 0 none, -1. */
static int schedule_first(struct meta *meta, struct schedule_entry *out, struct err *err)
{
	struct str key;
	int found = meta_find_end(meta, SCHEDULES_DUE, STR(""), META_FIRST, &key, err);

	if (found != 1)
		return found;
	if (key.len <= sizeof(uint64_t))
		return err_set(err, ERR_CORRUPT, SCHEDULES_DUE ": a key of %zu bytes", key.len);
	out->due_ms = schedule_due_of(key);
	key = str_skip(key, sizeof(uint64_t));
	(void)snprintf(out->agent_id, sizeof(out->agent_id), STR_FMT, STR_ARG(key));
	return 1;
}

/* When the first is due; SCHEDULE_NEVER for none. */
static int schedule_look(const struct schedule *schedule, int64_t *out_due_ms, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct schedule_entry first = {.due_ms = SCHEDULE_NEVER};

	if (meta_begin(schedule->store, META_READ, &meta, err) < 0 ||
	    schedule_first(meta, &first, err) < 0)
		return -1;
	*out_due_ms = first.due_ms;
	return 0;
}

/* Keep a batch of due times. */
static int schedule_run(struct schedule *schedule, int64_t now_ms, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct schedule_entry due = {.due_ms = 0};
	int found = 1;

	if (meta_begin(schedule->store, META_WRITE, &meta, err) < 0)
		return -1;
	for (int i = 0; i < SCHEDULE_BATCH && found == 1; i++) {
		found = schedule_first(meta, &due, err);
		if (found == 1 && due.due_ms > now_ms)
			break;
		if (found == 1 && schedule_keep_time(schedule, meta, &due, now_ms, err) < 0)
			return -1;
	}
	return found < 0 ? -1 : meta_commit(steal_ptr(&meta), err);
}

/* Entries whose times count from a future that a wrong clock made. */
struct schedule_wrong {
	int64_t now_ms;
	struct schedule_entry *entries; /* owned */
	size_t count;
};

static int schedule_judge(void *ctx, struct str key, const json_t *record, struct err *err)
{
	struct schedule_wrong *wrong = ctx;
	struct schedule_entry entry;

	if (schedule_parse(key, record, &entry, err) < 0 ||
	    entry.after_ms <= wrong->now_ms + SCHEDULE_BACK_MS)
		return 0; /* what cannot be read is passed over when it is due */
	wrong->entries = array_grow(wrong->entries, wrong->count, sizeof(*wrong->entries));
	wrong->entries[wrong->count++] = entry;
	return wrong->count == SCHEDULE_BATCH;
}

/* Some of them. 1 there may be more, 0, -1. */
static int schedule_find_wrong(const struct schedule *schedule, struct schedule_wrong *wrong,
			       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(schedule->store, META_READ, &meta, err) < 0)
		return -1;
	return meta_each(meta, SCHEDULES, STR(""), schedule_judge, wrong, err);
}

static int schedule_mend_one(struct meta *meta, const char *agent_id, int64_t now_ms,
			     struct err *err)
{
	struct schedule_entry entry;
	int found = schedule_find(meta, str_of(agent_id), &entry, err);

	if (found != 1 || entry.after_ms <= now_ms + SCHEDULE_BACK_MS)
		return found < 0 ? -1 : 0; /* another version has other times meanwhile */
	return schedule_advance(meta, &entry, now_ms, err);
}

static int schedule_mend_found(const struct schedule *schedule, const struct schedule_wrong *wrong,
			       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (wrong->count == 0)
		return 0;
	if (meta_begin(schedule->store, META_WRITE, &meta, err) < 0)
		return -1;
	for (size_t i = 0; i < wrong->count; i++) {
		if (schedule_mend_one(meta, wrong->entries[i].agent_id, wrong->now_ms, err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

static int schedule_mend(const struct schedule *schedule, int64_t now_ms, struct err *err)
{
	int more;

	do {
		struct schedule_wrong wrong = {.now_ms = now_ms};

		more = schedule_find_wrong(schedule, &wrong, err);
		if (more >= 0 && schedule_mend_found(schedule, &wrong, err) < 0)
			more = -1;
		free(wrong.entries);
	} while (more == 1);
	return more;
}

/* Wait until something changes, or for so long. False: at the end. */
static bool schedule_wait(struct schedule *schedule, int64_t wait_ms)
{
	int64_t most = wait_ms < SCHEDULE_LOOK_MS ? wait_ms : SCHEDULE_LOOK_MS;
	struct timespec end;
	bool more;
	int rc = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += most / 1000;
	end.tv_nsec += (long)(most % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	lock_take(&schedule->lock);
	while (!schedule->woken && !schedule->ended && rc == 0)
		rc = pthread_cond_timedwait(&schedule->changed, &schedule->lock.os, &end);
	schedule->woken = false;
	more = !schedule->ended;
	lock_drop(&schedule->lock);
	return more;
}

/* Do what is due; returns how long there is nothing to do then. */
static int64_t schedule_turn(struct schedule *schedule, int64_t now_ms, bool went_back)
{
	struct err err;
	int64_t due_ms = now_ms;

	if (went_back && schedule_mend(schedule, now_ms, &err) < 0) {
		log_warn("schedules not mended why=\"%s\"", err.text);
		return SCHEDULE_AGAIN_MS;
	}
	if (schedule_look(schedule, &due_ms, &err) < 0 ||
	    (due_ms <= now_ms && schedule_run(schedule, now_ms, &err) < 0)) {
		log_warn("rebakes not scheduled why=\"%s\"", err.text);
		return SCHEDULE_AGAIN_MS;
	}
	return due_ms <= now_ms ? 0 : due_ms - now_ms;
}

static void *schedule_main(void *ctx)
{
	struct schedule *schedule = ctx;
	int64_t last_ms = INT64_MAX; /* at the start the clock may have gone back, too */
	int64_t now_ms;
	int64_t wait_ms;

	do {
		now_ms = clock_ask_ms(schedule->clock);
		wait_ms = schedule_turn(schedule, now_ms, now_ms < last_ms - SCHEDULE_LOOK_MS);
		last_ms = now_ms;
	} while (schedule_wait(schedule, wait_ms));
	return NULL;
}

static void schedule_free(struct schedule *schedule)
{
	(void)pthread_cond_destroy(&schedule->changed);
	free(schedule);
}

int schedule_start(struct store *store, struct queue *queue, const struct clock *clock,
		   struct schedule **out, struct err *err)
{
	struct schedule *schedule = calloc(1, sizeof(*schedule));
	pthread_condattr_t monotonic;

	if (!schedule)
		abort();
	*schedule = (struct schedule){
		.store = store, .queue = queue, .clock = clock, .lock = LOCK_INIT};
	if (pthread_condattr_init(&monotonic) != 0 ||
	    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&schedule->changed, &monotonic) != 0)
		abort();
	(void)pthread_condattr_destroy(&monotonic);
	if (thread_start(&schedule->thread, schedule_main, schedule, err) < 0) {
		schedule_free(schedule);
		return -1;
	}
	*out = schedule;
	return 0;
}

void schedule_stop(struct schedule *schedule)
{
	if (!schedule)
		return;
	lock_take(&schedule->lock);
	schedule->ended = true;
	pthread_cond_broadcast(&schedule->changed);
	lock_drop(&schedule->lock);
	(void)pthread_join(schedule->thread, NULL);
	schedule_free(schedule);
}
