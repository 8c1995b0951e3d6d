/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/hub_member_priv.h"

#include "bake/hub.h"

#include <fcntl.h>
#include <sys/socket.h>

void hub_member_init(struct hub_member *member, int fd)
{
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	*member = (struct hub_member){.fd = fd, .out = BUF_INIT(WIRE_PAYLOAD_MAX + WIRE_HEADER)};
}

void hub_member_done(struct hub_member *member)
{
	auto_close_release(&member->fd);
	buf_done(&member->out);
}

bool hub_member_has_more(const struct hub_member *member, const struct hub_member_feed *feed)
{
	if (member->leaving)
		return member->dismissed;
	return member->out_at < member->out.len || member->sent < feed->spool->written ||
	       (feed->answer && !member->answered);
}

/* A frame of the log: 1, 0 there is no more, -1. */
static int hub_member_next_log(struct hub_member *member, const struct spool *spool,
			       struct err *err)
{
	char piece[SPOOL_NOTE_MAX + HUB_FRAME_MAX];
	char note[SPOOL_NOTE_MAX];
	struct str said = {piece, 0};
	struct err ignored;
	uint64_t lost;
	ssize_t n =
		spool_read(spool, &member->sent, piece + SPOOL_NOTE_MAX, HUB_FRAME_MAX, &lost, err);

	if (n <= 0)
		return (int)n;
	if (lost > 0)
		said = spool_note(lost, note);
	said.ptr = memcpy(piece + SPOOL_NOTE_MAX - said.len, said.ptr, said.len);
	said.len += (size_t)n;
	return wire_add(&member->out, WIRE_LOG, said, &ignored) < 0 ? -1 : 1;
}

/* Fill an empty frame from the spool, or with the answer: 1, 0 nothing to send, -1. */
static int hub_member_next_frame(struct hub_member *member, const struct hub_member_feed *feed,
				 struct err *err)
{
	struct err ignored;
	int more;

	buf_clear(&member->out);
	member->out_at = 0;
	more = hub_member_next_log(member, feed->spool, err);
	if (more != 0)
		return more;
	if (!feed->answer || member->answered)
		return 0;
	member->answered = true;
	return buf_add(&member->out, buf_str(feed->answer), &ignored) < 0 ? -1 : 1;
}

/* What is left of a frame, or else the next: 1 goes on, 0 waits, -1 is over. */
static int hub_member_send_some(struct hub_member *member, const struct hub_member_feed *feed,
				struct err *err)
{
	ssize_t n;

	if (member->out_at == member->out.len) {
		int next = member->dismissed ? -1 : hub_member_next_frame(member, feed, err);

		if (next <= 0)
			return next;
	}
	n = send(member->fd, member->out.ptr + member->out_at, member->out.len - member->out_at,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -1;
	member->out_at += (size_t)n;
	return 1;
}

int hub_member_send(struct hub_member *member, const struct hub_member_feed *feed, struct err *err)
{
	bool sent = false;
	int more = 1;

	while (more > 0 && (!member->leaving || member->dismissed)) {
		more = hub_member_send_some(member, feed, err);
		sent = sent || more > 0;
	}
	return more < 0 ? -1 : sent;
}

int hub_member_hear(struct hub_member *member)
{
	char bytes[64];
	ssize_t n = recv(member->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	member->leaving = true;
	return 0;
}

int hub_member_dismiss(struct hub_member *member)
{
	struct err ignored;

	if (wire_add(&member->out, WIRE_LEAVE, STR(""), &ignored) < 0)
		return -1;
	member->dismissed = true;
	return 0;
}
