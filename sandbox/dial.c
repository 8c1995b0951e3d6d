/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/dial_priv.h"

static void dial_next(struct dial *dial);

static void dial_drop(struct dial_attempt *attempt)
{
	loop_unwatch(attempt->dial->loop, &attempt->watch);
	loop_disarm(&attempt->deadline);
	auto_close_release(&attempt->watch.fd);
	attempt->watch.fd = -1;
}

static void dial_on_deadline(void *ctx)
{
	struct dial_attempt *attempt = ctx;

	dial_drop(attempt);
	dial_next(attempt->dial);
}

static void dial_on_stagger(void *ctx)
{
	dial_next(ctx);
}

/* It is connected, or has failed. */
static void dial_on_answer(void *ctx, uint32_t events)
{
	struct dial_attempt *attempt = ctx;
	struct dial *dial = attempt->dial;
	socklen_t size = sizeof(int);
	int os = 0;
	int fd;

	(void)events;
	if (getsockopt(attempt->watch.fd, SOL_SOCKET, SO_ERROR, &os, &size) < 0 || os != 0) {
		dial_drop(attempt);
		dial_next(dial);
		return;
	}
	loop_unwatch(dial->loop, &attempt->watch);
	fd = steal_fd(&attempt->watch.fd);
	dial_done(dial);
	dial->done(dial->ctx, fd);
}

void dial_init(struct dial *dial, struct loop *loop, void (*done)(void *ctx, int fd), void *ctx)
{
	*dial = (struct dial){.loop = loop, .done = done, .ctx = ctx};
	dial->stagger = (struct timer){.due = dial_on_stagger, .ctx = dial};
	for (size_t i = 0; i < DIAL_PARALLEL; i++) {
		struct dial_attempt *attempt = &dial->attempts[i];

		attempt->dial = dial;
		attempt->watch = (struct watch){.fd = -1, .ready = dial_on_answer, .ctx = attempt};
		attempt->deadline = (struct timer){.due = dial_on_deadline, .ctx = attempt};
	}
}

void dial_done(struct dial *dial)
{
	loop_disarm(&dial->stagger);
	for (size_t i = 0; i < DIAL_PARALLEL; i++)
		dial_drop(&dial->attempts[i]);
}

bool dial_add(struct dial *dial, const union address *address)
{
	if (dial->count >= DIAL_ADDRESSES_MAX)
		return false;
	dial->addresses[dial->count++] = *address;
	return true;
}

/* Begin to connect; false when that failed already. */
static bool dial_try(struct dial *dial, struct dial_attempt *attempt, const union address *address)
{
	auto_close int fd = socket(address->any.sa_family,
				   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	struct err err;

	if (fd < 0 ||
	    (connect(fd, &address->any, address_size(address)) < 0 && errno != EINPROGRESS))
		return false;
	attempt->watch.fd = fd;
	if (loop_watch(dial->loop, &attempt->watch, EPOLLOUT, &err) < 0) {
		attempt->watch.fd = -1;
		return false;
	}
	(void)steal_fd(&fd); /* the attempt has it */
	loop_arm(dial->loop, &attempt->deadline, DIAL_ATTEMPT_MS);
	return true;
}

/* Try the next address that can be tried, if there is room for one more. */
static void dial_next(struct dial *dial)
{
	struct dial_attempt *free_attempt = NULL;
	bool has_any = false;

	for (size_t i = 0; i < DIAL_PARALLEL; i++) {
		if (dial->attempts[i].watch.fd < 0)
			free_attempt = &dial->attempts[i];
		else
			has_any = true;
	}
	while (free_attempt && dial->next < dial->count) {
		if (dial_try(dial, free_attempt, &dial->addresses[dial->next++])) {
			loop_arm(dial->loop, &dial->stagger, DIAL_STAGGER_MS);
			return;
		}
	}
	if (!has_any)
		dial->done(dial->ctx, -1);
}

void dial_start(struct dial *dial)
{
	dial_next(dial);
}
