/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_stream.h - what a bake wrote, as the body of an answer.
 *
 * A followed log ends with its bake. The log of one step is what stands between
 * that step's line and the next one's, in every attempt; output that looks like
 * such a line is taken for one.
 */
#pragma once

#include "bake/bakes.h"
#include "layers/base/http.h"

struct log_stream_options {
	struct store *store;
	const struct bakes_record *record;
	size_t step; /* from 1; 0 for all of it */
	bool follow;
};

/* The response's to close. */
struct http_stream *log_stream_new(const struct log_stream_options *options);
