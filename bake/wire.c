/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/wire.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

static void wire_header(enum wire_type type, size_t len, char header[static WIRE_HEADER])
{
	header[0] = (char)(len >> 24);
	header[1] = (char)(len >> 16);
	header[2] = (char)(len >> 8);
	header[3] = (char)len;
	header[4] = (char)type;
}

int wire_add(struct buf *out, enum wire_type type, struct str payload, struct err *err)
{
	char header[WIRE_HEADER];

	if (payload.len > WIRE_PAYLOAD_MAX)
		return err_set(err, ERR_LIMIT, "frame of %zu bytes", payload.len);
	wire_header(type, payload.len, header);
	if (buf_add(out, (struct str){header, sizeof(header)}, err) < 0)
		return -1;
	return buf_add(out, payload, err);
}

static int wire_send_bytes(int fd, struct str bytes, struct err *err)
{
	while (bytes.len > 0) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return err_set(err, ERR_UNAVAILABLE, "the other process is gone");
		if (n < 0)
			return err_os(err, errno, "send");
		bytes.ptr += n;
		bytes.len -= (size_t)n;
	}
	return 0;
}

int wire_send(int fd, enum wire_type type, struct str payload, struct err *err)
{
	auto_buf struct buf frame = BUF_WIPED(WIRE_PAYLOAD_MAX + WIRE_HEADER);

	if (wire_add(&frame, type, payload, err) < 0)
		return -1;
	return wire_send_bytes(fd, buf_str(&frame), err);
}

int wire_flush(int fd, struct buf *frames, struct err *err)
{
	int result = wire_send_bytes(fd, buf_str(frames), err);

	buf_clear(frames);
	return result;
}

int wire_send_json(int fd, enum wire_type type, const json_t *value, struct err *err)
{
	auto_buf struct buf text = BUF_WIPED(WIRE_PAYLOAD_MAX);

	if (json_format(value, &text, err) < 0)
		return -1;
	return wire_send(fd, type, buf_str(&text), err);
}

/* Wait until there is something to read, or somebody cancels. */
static int wire_wait(int fd, const struct cancel *cancel, struct err *err)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = cancel_fd(cancel), .events = POLLIN}};

	for (;;) {
		int n = poll(fds, 2, -1);

		if (n < 0 && errno != EINTR)
			return err_os(err, errno, "wait for a frame");
		if (cancel_check(cancel, err) < 0)
			return -1;
		if (n > 0 && fds[0].revents)
			return 0;
	}
}

/* 1 all of it, 0 the end before the first byte, -1. */
static int wire_read(int fd, const struct cancel *cancel, char *at, size_t len, struct err *err)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n;

		if (wire_wait(fd, cancel, err) < 0)
			return -1;
		n = recv(fd, at + got, len - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ECONNRESET)
			return err_os(err, errno, "receive");
		if (n <= 0 && got == 0)
			return 0;
		if (n <= 0)
			return err_set(err, ERR_UNAVAILABLE, "the other process is gone");
		got += (size_t)n;
	}
	return 1;
}

static int wire_read_payload(int fd, const struct cancel *cancel, size_t left, struct buf *payload,
			     struct err *err)
{
	char piece[16 * 1024];
	int result = 1;

	while (left > 0 && result == 1) {
		size_t n = left < sizeof(piece) ? left : sizeof(piece);

		result = wire_read(fd, cancel, piece, n, err);
		if (result == 0)
			result = err_set(err, ERR_UNAVAILABLE, "the other process is gone");
		if (result == 1 && buf_add(payload, (struct str){piece, n}, err) < 0)
			result = -1;
		left -= n;
	}
	if (payload->wiped)
		explicit_bzero(piece, sizeof(piece));
	return result;
}

int wire_receive(int fd, const struct cancel *cancel, enum wire_type *out, struct buf *payload,
		 struct err *err)
{
	unsigned char header[WIRE_HEADER];
	size_t left;
	int result = wire_read(fd, cancel, (char *)header, sizeof(header), err);

	if (result != 1)
		return result;
	left = (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 |
	       header[3];
	if (left > WIRE_PAYLOAD_MAX)
		return err_set(err, ERR_CORRUPT, "frame of %zu bytes", left);
	buf_clear(payload);
	if (wire_read_payload(fd, cancel, left, payload, err) < 0)
		return -1;
	*out = (enum wire_type)header[4];
	return 1;
}

json_t *wire_error(const struct err *why, int exit_code)
{
	json_t *value = json_object();

	json_set_int(value, "kind", why->kind);
	json_set_int(value, "os", why->os);
	json_set_text(value, "text", why->text);
	json_set_int(value, "exitCode", exit_code);
	return value;
}

int wire_error_read(const json_t *value, int *out_exit_code, struct err *err)
{
	struct str text;
	int64_t kind;
	int64_t os = 0;
	int64_t exit_code = 0;

	if (json_need_int(value, "", "kind", &kind, err) < 0 ||
	    json_need_string(value, "", "text", &text, err) < 0 ||
	    json_get_int(value, "", "os", &os, err) < 0 ||
	    json_get_int(value, "", "exitCode", &exit_code, err) < 0)
		return err_ctx(err, "answer of a worker");
	if (kind <= ERR_NONE || kind > ERR_CANCELLED)
		return err_set(err, ERR_CORRUPT, "answer of a worker: kind %d", (int)kind);
	*out_exit_code = (int)exit_code;
	(void)err_set(err, (enum err_kind)kind, STR_FMT, STR_ARG(text));
	err->os = (int)os;
	return -1;
}

int wire_error_parse(struct str payload, int *out_exit_code, struct err *err)
{
	AUTO(json) json_t *value = NULL;

	if (json_parse(payload, WIRE_PAYLOAD_MAX, &value, err) < 0)
		return err_ctx(err, "answer of a worker");
	return wire_error_read(value, out_exit_code, err);
}
