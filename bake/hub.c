/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.c - one thread between a step's pipe, its spool file and its askers.
 *
 * An asker that leaves is not closed at once when it is the last: the end of
 * its stream tells it that everything is cleaned up.
 */
#include "bake/hub.h"

#include "bake/hub_member_priv.h"
#include "bake/mask.h"
#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "layers/base/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct hub {
	int listener;
	struct spool spool; /* the thread's, until log_ended */
	struct mask *mask;  /* lent, or NULL; see hub_hide() */
	int log_read;
	int log_write;
	int wake; /* an eventfd: something below changed */
	struct cancel *cancel;
	pthread_t thread;
	struct hub_member members[HUB_ASKERS_MAX];
	size_t count;
	struct err spool_err;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	bool log_ended;
	bool ended;       /* an answer is there */
	int64_t deadline; /* of the linger time */
	struct buf answer;
};

static void hub_drop(struct hub *hub, size_t i)
{
	hub_member_done(&hub->members[i]);
	hub->members[i] = hub->members[--hub->count];
}

static void hub_add(struct hub *hub, int fd)
{
	if (hub->count == HUB_ASKERS_MAX)
		(void)close(fd);
	else
		hub_member_init(&hub->members[hub->count++], fd);
}

static size_t hub_staying(const struct hub *hub)
{
	size_t n = 0;

	for (size_t i = 0; i < hub->count; i++)
		n += !hub->members[i].leaving;
	return n;
}

/* Nobody may join a step that is being ended: they are refused and ask anew. */
static void hub_end_step(struct hub *hub)
{
	auto_close_release(&hub->listener);
	hub->listener = -1;
	cancel_raise(hub->cancel);
}

/* The last one to leave ends the step, and is kept to be told of the end. */
static void hub_note_leavers(struct hub *hub)
{
	if (hub_staying(hub) == 0) {
		hub_end_step(hub);
		return;
	}
	for (size_t i = hub->count; i-- > 0;) {
		struct hub_member *member = &hub->members[i];

		if (member->leaving && !member->dismissed && hub_member_dismiss(member) < 0)
			hub_drop(hub, i);
	}
}

/* Whoever reads, however slowly, is waited for. */
static void hub_put_off(struct hub *hub)
{
	lock_take(&hub->lock);
	hub->deadline = clock_monotonic_ms() + HUB_LINGER_MS;
	lock_drop(&hub->lock);
}

static struct hub_member_feed hub_feed(const struct hub *hub, bool ended)
{
	return (struct hub_member_feed){&hub->spool, ended ? &hub->answer : NULL};
}

static void hub_send(struct hub *hub, size_t i, bool ended)
{
	const struct hub_member_feed feed = hub_feed(hub, ended);
	struct err err = {0};
	int sent = hub_member_send(&hub->members[i], &feed, &err);

	if (sent == 1)
		hub_put_off(hub);
	if (sent >= 0)
		return;
	if (err.kind != ERR_NONE) {
		if (hub->spool_err.kind == ERR_NONE)
			hub->spool_err = err;
		hub_end_step(hub);
	}
	hub_drop(hub, i);
}

static void hub_hear(struct hub *hub, size_t i)
{
	if (hub_member_hear(&hub->members[i]) < 0)
		hub_drop(hub, i);
}

static void hub_close_log(struct hub *hub)
{
	auto_close_release(&hub->log_read);
	hub->log_read = -1;
	lock_take(&hub->lock);
	hub->log_ended = true;
	pthread_cond_broadcast(&hub->changed);
	lock_drop(&hub->lock);
}

/* Bytes of the log, or none at its end. */
static void hub_take_log(struct hub *hub, struct str bytes)
{
	struct sink *spool = &hub->spool.sink;
	struct mask *mask;
	int result;

	lock_take(&hub->lock);
	mask = hub->mask;
	lock_drop(&hub->lock);
	if (!mask)
		result = spool->write(spool, bytes, &hub->spool_err);
	else if (bytes.len > 0)
		result = mask_write(mask, bytes, spool, &hub->spool_err);
	else
		result = mask_finish(mask, spool, &hub->spool_err);
	if (result < 0)
		hub_end_step(hub);
}

static void hub_read_log(struct hub *hub)
{
	char piece[HUB_FRAME_MAX];
	ssize_t n = read(hub->log_read, piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (hub->spool_err.kind ==
	    ERR_NONE) /* else only keep the pipe flowing: the step is being ended */
		hub_take_log(hub, (struct str){piece, n > 0 ? (size_t)n : 0});
	if (n <= 0)
		hub_close_log(hub);
}

static void hub_accept(struct hub *hub)
{
	int fd = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		hub_add(hub, fd);
}

/* Whether an answer is there, and what is left of the linger time. */
static bool hub_ended(struct hub *hub, int *out_timeout)
{
	int64_t left;
	bool ended;

	lock_take(&hub->lock);
	ended = hub->ended;
	left = hub->deadline - clock_monotonic_ms();
	lock_drop(&hub->lock);
	*out_timeout = ended ? (left < 0 ? 0 : (int)left) : -1;
	return ended;
}

static bool hub_all_told(const struct hub *hub)
{
	const struct hub_member_feed feed = hub_feed(hub, true);

	for (size_t i = 0; i < hub->count; i++) {
		if (hub_member_has_more(&hub->members[i], &feed))
			return false;
	}
	return hub->log_read < 0;
}

/* The order of the descriptors: wake, listener, log, then the askers. */
#define HUB_FIXED_FDS 3

static size_t hub_list_fds(const struct hub *hub, bool ended, struct pollfd *fds)
{
	const struct hub_member_feed feed = hub_feed(hub, ended);

	fds[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = hub->listener, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = hub->log_read, .events = POLLIN};
	for (size_t i = 0; i < hub->count; i++) {
		const struct hub_member *member = &hub->members[i];
		short events = hub_member_has_more(member, &feed) ? POLLIN | POLLOUT : POLLIN;

		fds[HUB_FIXED_FDS + i] = (struct pollfd){
			.fd = member->leaving && !member->dismissed ? -1 : member->fd,
			.events = events};
	}
	return HUB_FIXED_FDS + hub->count;
}

static void hub_serve_askers(struct hub *hub, const struct pollfd *fds, size_t count, bool ended)
{
	/* From the last to the first: dropping one moves only those behind it. */
	for (size_t i = count; i-- > HUB_FIXED_FDS;) {
		size_t at = i - HUB_FIXED_FDS;

		if (fds[i].revents & POLLOUT)
			hub_send(hub, at, ended);
		if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) && at < hub->count &&
		    hub->members[at].fd == fds[i].fd)
			hub_hear(hub, at);
	}
	if (!ended)
		hub_note_leavers(hub);
}

static void *hub_main(void *ctx)
{
	struct hub *hub = ctx;
	struct pollfd fds[HUB_FIXED_FDS + HUB_ASKERS_MAX];
	uint64_t ignored;

	for (;;) {
		int timeout;
		bool ended = hub_ended(hub, &timeout);
		size_t count = hub_list_fds(hub, ended, fds);

		if (ended && (hub_all_told(hub) || timeout == 0))
			break;
		if (poll(fds, count, timeout) <= 0)
			continue;
		if (fds[0].revents && read(hub->wake, &ignored, sizeof(ignored)) < 0)
			break;
		if (fds[1].revents)
			hub_accept(hub);
		if (fds[2].revents)
			hub_read_log(hub);
		hub_serve_askers(hub, fds, count, ended);
	}
	return NULL;
}

static int hub_open_fds(struct hub *hub, struct err *err)
{
	int ends[2];

	hub->wake = eventfd(0, EFD_CLOEXEC);
	if (hub->wake < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_os(err, errno, "open the log's pipe");
	hub->log_read = ends[0];
	hub->log_write = ends[1];
	return 0;
}

static void hub_free(struct hub *hub)
{
	while (hub->count > 0)
		hub_drop(hub, hub->count - 1);
	auto_close_release(&hub->listener);
	auto_close_release(&hub->log_read);
	auto_close_release(&hub->log_write);
	auto_close_release(&hub->wake);
	buf_done(&hub->answer);
	pthread_cond_destroy(&hub->changed);
	free(hub);
}

/* Nothing was started: give the caller's descriptors back. */
static void hub_give_back(struct hub *hub)
{
	hub->members[0].fd = -1;
	hub->listener = -1;
	hub_free(hub);
}

int hub_start(int control, int listener, int spoolfd, uint64_t log_max, struct cancel *cancel,
	      struct hub **out, struct err *err)
{
	struct hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		abort();
	*hub = (struct hub){
		.listener = listener,
		.log_read = -1,
		.log_write = -1,
		.wake = -1,
		.cancel = cancel,
		.lock = LOCK_INIT,
		.changed = PTHREAD_COND_INITIALIZER,
		.answer = BUF_INIT(WIRE_PAYLOAD_MAX + WIRE_HEADER),
	};
	spool_init(&hub->spool, spoolfd, log_max);
	hub_add(hub, control);
	if (hub_open_fds(hub, err) < 0 || thread_start(&hub->thread, hub_main, hub, err) < 0) {
		hub_give_back(hub);
		return -1;
	}
	*out = hub;
	return 0;
}

void hub_hide(struct hub *hub, struct mask *mask)
{
	lock_take(&hub->lock);
	hub->mask = mask;
	lock_drop(&hub->lock);
}

int hub_log_fd(const struct hub *hub)
{
	return hub->log_write;
}

int hub_end_log(struct hub *hub, const struct spool **out, struct err *err)
{
	auto_close_release(&hub->log_write);
	hub->log_write = -1;
	lock_take(&hub->lock);
	while (!hub->log_ended)
		pthread_cond_wait(&hub->changed, &hub->lock.os);
	lock_drop(&hub->lock);
	if (hub->spool_err.kind != ERR_NONE) {
		*err = hub->spool_err;
		return err_ctx(err, "keep the log");
	}
	*out = &hub->spool;
	return 0;
}

void hub_finish(struct hub *hub, enum wire_type type, const json_t *answer)
{
	static const uint64_t one = 1;
	auto_buf struct buf text = BUF_INIT(WIRE_PAYLOAD_MAX);
	struct err err;

	auto_close_release(&hub->log_write);
	hub->log_write = -1;
	lock_take(&hub->lock);
	if (json_format(answer, &text, &err) < 0 ||
	    wire_add(&hub->answer, type, buf_str(&text), &err) < 0)
		buf_clear(&hub->answer); /* the end without an answer says enough */
	hub->deadline = clock_monotonic_ms() + HUB_LINGER_MS;
	hub->ended = true;
	lock_drop(&hub->lock);
	if (write(hub->wake, &one, sizeof(one)) < 0)
		abort();
	(void)pthread_join(hub->thread, NULL);
	hub_free(hub);
}
