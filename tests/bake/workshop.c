/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bake/workshop.h"

#include "bake/queue_priv.h"
#include "layers/journal.h"

#include <poll.h>
#include <sys/eventfd.h>

#define WORKSHOP_PATIENCE_S 50 /* a test that hangs says where */

static void workshop_note(struct workshop *workshop)
{
	workshop->changes++;
	(void)pthread_cond_broadcast(&workshop->changed);
}

static void workshop_begin(struct workshop *workshop, const struct maker_order *order)
{
	struct workshop_made *made;

	(void)pthread_mutex_lock(&workshop->lock);
	if (workshop->made_count == WORKSHOP_MADE_MAX)
		abort();
	made = &workshop->made[workshop->made_count++];
	*made = (struct workshop_made){.version = order->record->version,
				       .attempt = order->record->attempt,
				       .rebake = order->record->rebake,
				       .has_base = order->base != NULL,
				       .has_previous = order->previous != NULL};
	memcpy(made->agent_id, order->record->agent_id, sizeof(made->agent_id));
	if (order->base)
		made->base = *order->base;
	if (order->previous)
		made->previous = *order->previous;
	workshop->running++;
	if (workshop->running > workshop->running_most)
		workshop->running_most = workshop->running;
	workshop_note(workshop);
	(void)pthread_mutex_unlock(&workshop->lock);
}

/* Until it may pass. False: it was cancelled. */
static bool workshop_pass_gate(struct workshop *workshop, const struct cancel *cancel)
{
	struct pollfd wake[] = {{.fd = workshop->gate, .events = POLLIN},
				{.fd = cancel_fd(cancel), .events = POLLIN}};
	uint64_t one;

	while (!cancel_is_raised(cancel)) {
		(void)poll(wake, 2, -1);
		if ((wake[0].revents & POLLIN) &&
		    read(workshop->gate, &one, sizeof(one)) == (ssize_t)sizeof(one))
			return true;
	}
	return false;
}

static int workshop_end(struct workshop *workshop, struct maker_result *out, struct err *err)
{
	int result = 0;

	(void)pthread_mutex_lock(&workshop->lock);
	workshop->running--;
	if (workshop->why.kind != ERR_NONE) {
		*err = workshop->why;
		out->terminal = workshop->terminal;
		out->step = 2;
		out->exit_code = 3;
		result = -1;
		if (buf_add(&out->log_tail, STR("no such file\n"), err) < 0)
			abort();
	} else {
		out->image = workshop_image(workshop->image);
		out->base = workshop_image(workshop->base);
		out->size = 100;
		out->steps = 3;
		out->cached_steps = 2;
		out->counts.all[INSTRUCTION_COPY] = 3;
		out->counts.cached[INSTRUCTION_COPY] = 2;
		out->pushes = workshop->pushes;
	}
	(void)pthread_mutex_unlock(&workshop->lock);
	return result;
}

static int workshop_make(struct maker *maker, const struct maker_order *order,
			 const struct maker_ear *ear, const struct cancel *cancel,
			 struct maker_result *out, struct err *err)
{
	struct workshop *workshop = (struct workshop *)maker;
	const struct status_progress progress = {
		.phase = "running", .step = 2, .of = 3, .text = STR("RUN make")};
	bool held;

	ear->progress(ear->ctx, &progress);
	ear->log(ear->ctx, STR("it works\n"));
	(void)pthread_mutex_lock(&workshop->lock);
	held = workshop->held;
	workshop->ear = ear;
	(void)pthread_mutex_unlock(&workshop->lock);
	workshop_begin(workshop, order);
	if (!held || workshop_pass_gate(workshop, cancel))
		return workshop_end(workshop, out, err);
	(void)pthread_mutex_lock(&workshop->lock);
	workshop->running--;
	(void)pthread_mutex_unlock(&workshop->lock);
	return err_set(err, ERR_CANCELLED, "stopped");
}

static int workshop_publish(struct maker *maker, struct meta *meta,
			    const struct maker_result *result, const struct maker_names *names,
			    struct err *err)
{
	struct workshop *workshop = (struct workshop *)maker;
	bool fails;

	(void)meta;
	(void)result;
	(void)names;
	(void)pthread_mutex_lock(&workshop->lock);
	fails = workshop->publish_fails;
	workshop->published += fails ? 0 : 1;
	(void)pthread_mutex_unlock(&workshop->lock);
	return fails ? err_set(err, ERR_FULL, "no space left") : 0;
}

static int workshop_restore(struct maker *maker, struct meta *meta, const struct maker_return *what,
			    struct err *err)
{
	struct workshop *workshop = (struct workshop *)maker;

	(void)meta;
	(void)err;
	workshop->pushed_again += json_array_size(what->pushes);
	workshop->restored++;
	return 0;
}

static void workshop_release(struct maker *maker, struct maker_result *result)
{
	(void)maker;
	(void)result;
}

static int64_t workshop_now(const struct clock *clock)
{
	struct workshop *workshop =
		(struct workshop *)((char *)drop_const(clock) - offsetof(struct workshop, clock));
	int64_t now_ms;

	(void)pthread_mutex_lock(&workshop->lock);
	now_ms = workshop->now_ms;
	(void)pthread_mutex_unlock(&workshop->lock);
	return now_ms;
}

static void workshop_hear(void *ctx, struct str agent_id)
{
	struct workshop *workshop = ctx;

	(void)agent_id;
	(void)pthread_mutex_lock(&workshop->lock);
	workshop_note(workshop);
	(void)pthread_mutex_unlock(&workshop->lock);
}

int workshop_open(void **state)
{
	struct workshop *workshop = calloc(1, sizeof(*workshop));

	assert_non_null(workshop);
	*workshop = (struct workshop){
		.maker = {workshop_make, workshop_publish, workshop_restore, workshop_release},
		.clock = {workshop_now},
		.gate = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.now_ms = WORKSHOP_NOW_MS,
		.image = "first",
		.base = "base",
	};
	assert_true(workshop->gate >= 0);
	assert_int_equal(store_fixture_open((void **)&workshop->fixture), 0);
	*state = workshop;
	return 0;
}

int workshop_close(void **state)
{
	struct workshop *workshop = *state;

	workshop_stop(workshop, 0);
	assert_int_equal(store_fixture_close((void **)&workshop->fixture), 0);
	(void)close(workshop->gate);
	free(workshop);
	return 0;
}

void workshop_start(struct workshop *workshop, size_t parallel)
{
	const struct queue_options options = {.store = workshop->fixture->store,
					      .maker = &workshop->maker,
					      .parallel = parallel,
					      .clock = &workshop->clock,
					      .changed = workshop_hear,
					      .changed_ctx = workshop};
	struct err err = {0};

	check_ok(queue_start(&options, &workshop->queue, &err), &err);
}

void workshop_stop(struct workshop *workshop, int grace_ms)
{
	queue_stop(workshop->queue, grace_ms);
	workshop->queue = NULL;
}

void workshop_hold(struct workshop *workshop)
{
	(void)pthread_mutex_lock(&workshop->lock);
	workshop->held = true;
	(void)pthread_mutex_unlock(&workshop->lock);
}

void workshop_let_go(struct workshop *workshop, size_t count)
{
	uint64_t many = count;

	assert_int_equal(write(workshop->gate, &many, sizeof(many)), sizeof(many));
}

void workshop_open_gate(struct workshop *workshop)
{
	(void)pthread_mutex_lock(&workshop->lock);
	workshop->held = false;
	(void)pthread_mutex_unlock(&workshop->lock);
	workshop_let_go(workshop, WORKSHOP_MADE_MAX);
}

void workshop_fail(struct workshop *workshop, enum err_kind kind, bool terminal)
{
	struct err why = {0};

	if (kind != ERR_NONE)
		(void)err_set(&why, kind, "step 2: it went wrong");
	(void)pthread_mutex_lock(&workshop->lock);
	workshop->why = why;
	workshop->terminal = terminal;
	(void)pthread_mutex_unlock(&workshop->lock);
}

void workshop_set_image(struct workshop *workshop, const char *name)
{
	(void)pthread_mutex_lock(&workshop->lock);
	(void)snprintf(workshop->image, sizeof(workshop->image), "%s", name);
	(void)pthread_mutex_unlock(&workshop->lock);
}

void workshop_set_base(struct workshop *workshop, const char *name)
{
	(void)pthread_mutex_lock(&workshop->lock);
	(void)snprintf(workshop->base, sizeof(workshop->base), "%s", name);
	(void)pthread_mutex_unlock(&workshop->lock);
}

struct digest workshop_image(const char *name)
{
	struct digest digest;

	digest_of(str_of(name), &digest);
	return digest;
}

void workshop_pass_ms(struct workshop *workshop, int64_t ms)
{
	(void)pthread_mutex_lock(&workshop->lock);
	workshop->now_ms += ms;
	(void)pthread_mutex_unlock(&workshop->lock);
	queue_wake(workshop->queue);
}

struct str workshop_agent(int agent)
{
	static const char *const ids[] = {
		"agt_01jd0000000000000000000000",
		"agt_01jd0000000000000000000001",
		"agt_01jd0000000000000000000002",
		"agt_01jd0000000000000000000003",
	};

	return str_of(ids[agent]);
}

void workshop_put_base(struct workshop *workshop, int agent, int64_t version, const char *base)
{
	struct queue_version put = {.agent_id = workshop_agent(agent),
				    .slug = STR("repo-bot"),
				    .version = version,
				    .base = str_of(base)};
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(queue_put(workshop->queue, meta, &put, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
}

void workshop_put(struct workshop *workshop, int agent, int64_t version)
{
	workshop_put_base(workshop, agent, version, "debian:12");
}

/* Wait for another change than the last one seen. */
static uint64_t workshop_watch(struct workshop *workshop, uint64_t seen)
{
	struct timespec end;
	int rc = 0;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WORKSHOP_PATIENCE_S;
	(void)pthread_mutex_lock(&workshop->lock);
	while (workshop->changes == seen && rc == 0)
		rc = pthread_cond_timedwait(&workshop->changed, &workshop->lock, &end);
	seen = workshop->changes;
	(void)pthread_mutex_unlock(&workshop->lock);
	if (rc != 0)
		fail_msg("nothing happens any more");
	return seen;
}

static uint64_t workshop_seen(struct workshop *workshop)
{
	uint64_t seen;

	(void)pthread_mutex_lock(&workshop->lock);
	seen = workshop->changes;
	(void)pthread_mutex_unlock(&workshop->lock);
	return seen;
}

static size_t workshop_count_made(struct workshop *workshop)
{
	size_t count;

	(void)pthread_mutex_lock(&workshop->lock);
	count = workshop->made_count;
	(void)pthread_mutex_unlock(&workshop->lock);
	return count;
}

void workshop_wait_made(struct workshop *workshop, size_t count)
{
	uint64_t seen = workshop_seen(workshop);

	while (workshop_count_made(workshop) < count)
		seen = workshop_watch(workshop, seen);
}

static int workshop_take_newest(void *ctx, const struct bakes_record *record, struct err *err)
{
	struct bakes_record *out = ctx;

	(void)err;
	*out = *record;
	out->document = json_incref(record->document);
	out->error = json_incref(record->error);
	return 1;
}

static struct bakes_record workshop_newest(struct workshop *workshop, int agent)
{
	AUTO(meta) struct meta *meta = NULL;
	struct bakes_record record = {0};
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	check_ok(bakes_each(meta, workshop_agent(agent), STR(""), workshop_take_newest, &record,
			    &err),
		 &err);
	return record;
}

struct bakes_record workshop_wait(struct workshop *workshop, int agent, enum bakes_state state)
{
	uint64_t seen = workshop_seen(workshop);
	struct bakes_record record = workshop_newest(workshop, agent);

	while (!record.document || record.state != state) {
		bakes_record_done(&record);
		seen = workshop_watch(workshop, seen);
		record = workshop_newest(workshop, agent);
	}
	return record;
}

json_t *workshop_status(struct workshop *workshop, int agent, int64_t version)
{
	auto_buf struct buf body = BUF_INIT(STATUS_BODY_MAX);
	AUTO(meta) struct meta *meta = NULL;
	char etag[STATUS_ETAG_MAX];
	json_t *status = NULL;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	assert_int_equal(queue_status(workshop->queue, meta, workshop_agent(agent), version, &body,
				      etag, &err),
			 1);
	check_ok(json_parse(buf_str(&body), STATUS_BODY_MAX, &status, &err), &err);
	return status;
}

struct workshop_line {
	char *text;
	size_t max;
	size_t len;
};

static int workshop_add_event(void *ctx, const struct event *event, struct err *err)
{
	struct workshop_line *line = ctx;

	(void)err;
	line->len += (size_t)snprintf(line->text + line->len, line->max - line->len, "%s" STR_FMT,
				      line->len ? " " : "", STR_ARG(event->type));
	return line->len >= line->max;
}

void workshop_check_events(struct workshop *workshop, const char *expected)
{
	char text[2048] = "";
	struct workshop_line line = {text, sizeof(text), 0};
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(workshop->fixture->store, META_READ, &meta, &err), &err);
	check_ok(journal_read(meta, 0, workshop_add_event, &line, &err), &err);
	assert_string_equal(text, expected);
}

const char *workshop_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

void workshop_check_image(const json_t *image, const char *name)
{
	struct digest digest = workshop_image(name);
	char text[DIGEST_TEXT_MAX];

	assert_string_equal(workshop_text(image, "digest"), digest_format(&digest, text));
}

void workshop_ended(struct workshop *workshop, int agent, enum bakes_state state)
{
	struct bakes_record record = workshop_wait(workshop, agent, state);

	bakes_record_done(&record);
}
