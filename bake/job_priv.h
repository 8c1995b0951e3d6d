/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_priv.h - the messages between a job and its parent, for both sides.
 *
 * A request's secrets follow it: for each of its names a WIRE_SECRET frame.
 */
#pragma once

#include "bake/job.h"
#include "bake/spec.h"

/* A request as it arrives. */
struct job_order {
	json_t *document; /* owned; what is borrowed below lies in it */
	struct spec spec; /* owned */
	struct str store_path;
	uint64_t map_bytes;
	struct digest previous; /* all zero where there is none */
	struct digest base;     /* the same */
	const char *bake_id;
	bool rebake;
	size_t from_step;
	struct network_host *hosts; /* owned */
	size_t host_count;
	struct secrets secrets; /* owned */
	const char *runtime;    /* or NULL */
};

json_t *job_request_format(const struct job_request *request);

/* The spec is parsed on its own: what is wrong with it is the user's error. */
int job_order_parse(struct str text, struct job_order *out, struct err *err) MUST_CHECK;
void job_order_done(struct job_order *order);

int job_send_secrets(const struct secrets *secrets, int fd, struct err *err) MUST_CHECK;
int job_receive_secrets(struct job_order *order, int fd, struct err *err) MUST_CHECK;

json_t *job_progress_format(const struct job_progress *progress);
int job_progress_parse(const json_t *value, struct job_progress *out, struct err *err) MUST_CHECK;

json_t *job_error_format(const struct job_error *error);

/* log_tail lies in the value. Never fails: an error that cannot be read is an error, too. */
void job_error_parse(const json_t *value, struct job_error *out);

/* Takes the document over. */
int job_result_parse(json_t *document, struct job_result *out, struct err *err) MUST_CHECK;
