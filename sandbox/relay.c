/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/relay_priv.h"

#include <fcntl.h>
#include <sys/socket.h>

#define RELAY_CHUNK ((size_t)64 * 1024) /* what a pipe holds */

static void relay_close_pipe(int fds[2])
{
	auto_close_release(&fds[0]);
	auto_close_release(&fds[1]);
	fds[0] = -1;
	fds[1] = -1;
}

static int relay_take_pipe(struct relay_pipes *pipes, int out[2])
{
	if (out[0] >= 0)
		return 0;
	if (pipes->count == 0)
		return pipe2(out, O_CLOEXEC | O_NONBLOCK);
	pipes->count--;
	out[0] = pipes->fds[pipes->count][0];
	out[1] = pipes->fds[pipes->count][1];
	return 0;
}

static void relay_give_pipe(struct relay_pipes *pipes, int fds[2])
{
	if (pipes->count >= RELAY_IDLE_PIPES) {
		relay_close_pipe(fds);
		return;
	}
	pipes->fds[pipes->count][0] = fds[0];
	pipes->fds[pipes->count][1] = fds[1];
	pipes->count++;
	fds[0] = -1;
	fds[1] = -1;
}

void relay_pipes_done(struct relay_pipes *pipes)
{
	while (pipes->count > 0)
		relay_close_pipe(pipes->fds[--pipes->count]);
}

/* Move bytes on; 0 when that would block, too. */
static ssize_t relay_splice(int from, int to, size_t len)
{
	ssize_t n = splice(from, NULL, to, NULL, len, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

static int relay_fill(struct relay *relay, struct relay_flow *flow, int from)
{
	ssize_t n;

	if (relay_take_pipe(relay->pipes, flow->pipe) < 0)
		return -1;
	n = splice(from, NULL, flow->pipe[1], NULL, RELAY_CHUNK, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	flow->held = (size_t)n;
	flow->ended = n == 0;
	return 0;
}

/* Move what can be moved from one side to the other. -1 when that is over. */
static int relay_pump(struct relay *relay, size_t i)
{
	struct relay_flow *flow = &relay->flows[i];
	int from = relay->sides[i].watch.fd;
	int to = relay->sides[1 - i].watch.fd;

	if (!flow->ended && flow->held == 0 && relay_fill(relay, flow, from) < 0)
		return -1;
	if (flow->held > 0) {
		ssize_t n = relay_splice(flow->pipe[0], to, flow->held);

		if (n < 0)
			return -1;
		flow->held -= (size_t)n;
	}
	if (flow->held == 0 && flow->pipe[0] >= 0)
		relay_give_pipe(relay->pipes, flow->pipe);
	if (flow->held == 0 && flow->ended && !flow->closed) {
		flow->closed = true;
		if (shutdown(to, SHUT_WR) < 0)
			return -1;
	}
	return 0;
}

static int relay_await(struct relay *relay, struct err *err)
{
	for (size_t i = 0; i < 2; i++) {
		const struct relay_flow *in = &relay->flows[i];
		uint32_t events = 0;

		if (!in->ended && in->held == 0)
			events |= EPOLLIN;
		if (relay->flows[1 - i].held > 0)
			events |= EPOLLOUT;
		if (loop_watch(relay->loop, &relay->sides[i].watch, events, err) < 0)
			return -1;
	}
	return 0;
}

static void relay_on_ready(void *ctx, uint32_t events)
{
	struct relay *relay = ((struct relay_side *)ctx)->relay;
	struct err err;

	(void)events;
	if (relay_pump(relay, 0) < 0 || relay_pump(relay, 1) < 0 || relay_await(relay, &err) < 0)
		relay->ended(relay->ctx, true);
	else if (relay->flows[0].closed && relay->flows[1].closed)
		relay->ended(relay->ctx, false);
}

void relay_init(struct relay *relay, struct loop *loop, struct relay_pipes *pipes, const int fds[2])
{
	*relay = (struct relay){.loop = loop, .pipes = pipes};
	for (size_t i = 0; i < 2; i++) {
		relay->flows[i].pipe[0] = -1;
		relay->flows[i].pipe[1] = -1;
		relay->sides[i].relay = relay;
		relay->sides[i].watch = (struct watch){
			.fd = fds[i], .ready = relay_on_ready, .ctx = &relay->sides[i]};
	}
}

void relay_done(struct relay *relay)
{
	for (size_t i = 0; i < 2; i++) {
		loop_unwatch(relay->loop, &relay->sides[i].watch);
		relay_close_pipe(relay->flows[i].pipe);
	}
}

int relay_start(struct relay *relay, struct err *err)
{
	return relay_await(relay, err);
}
