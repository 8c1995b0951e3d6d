/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - frames between an asker (a bake) and a worker (a role process).
 *
 * 	4 bytes   length of the payload, big-endian, at most WIRE_PAYLOAD_MAX
 * 	1 byte    enum wire_type
 * 	...       payload
 *
 * A request for a step may be followed by its secrets (task_send_secrets()). A
 * worker answers one request: any number of WIRE_LOG and WIRE_PROGRESS, then
 * one WIRE_RESULT or WIRE_ERROR, then the end of the stream. An end without
 * either means that the worker died. An asker leaves by WIRE_LEAVE or by
 * closing; the worker then ends what has to end, and closes.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/json.h"

#define WIRE_PAYLOAD_MAX ((size_t)8 * 1024 * 1024) /* a task names 500 layers */
#define WIRE_HEADER ((size_t)5)

enum wire_type {
	WIRE_REQUEST = 'Q',
	WIRE_SECRET = 'S',
	WIRE_LEAVE = 'X',
	WIRE_LOG = 'L',
	WIRE_PROGRESS = 'P',
	WIRE_RESULT = 'R',
	WIRE_ERROR = 'E',
};

/* Append a frame to out, for those who send without blocking. */
int wire_add(struct buf *out, enum wire_type type, struct str payload, struct err *err) MUST_CHECK;

/* Send what wire_add() put together, and forget it; as wire_send(). */
int wire_flush(int fd, struct buf *frames, struct err *err) MUST_CHECK;

/* Send a whole frame; blocks. ERR_UNAVAILABLE when the other side is gone. */
int wire_send(int fd, enum wire_type type, struct str payload, struct err *err) MUST_CHECK;
int wire_send_json(int fd, enum wire_type type, const json_t *value, struct err *err) MUST_CHECK;

/* 1 and a frame (payload is replaced), 0 at the end of the stream, -1. */
int wire_receive(int fd, const struct cancel *cancel, enum wire_type *out, struct buf *payload,
		 struct err *err) MUST_CHECK;

/* A failure as a payload. exit_code is the command's, for ERR_STEP. */
json_t *wire_error(const struct err *why, int exit_code);

/* And back, into *err. Always -1: an error that cannot be read is one, too. */
int wire_error_read(const json_t *value, int *out_exit_code, struct err *err);
int wire_error_parse(struct str payload, int *out_exit_code, struct err *err);
