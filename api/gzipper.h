/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzipper.h - makes the gzip variants of images (registry/gzip_tag.h) that
 * clients of the registry ask for: one after the other, each by a process of
 * hearth-worker's, which uses all cores. Whoever asks for the same waits for the
 * same.
 *
 * A failure is told to all who wait, and stands for GZIPPER_FAILED_MS, so that
 * who asks again does not make the host try all the time.
 *
 * Threads: gzipper_make() and gzipper_count() may be called by any; neither blocks.
 * Limits: GZIPPER_JOBS_MAX images that are waited for; more are ERR_BUSY.
 */
#pragma once

#include "api/cli.h"
#include "layers/base/http.h"
#include "layers/digest.h"

#define GZIPPER_JOBS_MAX ((size_t)64)
#define GZIPPER_FAILED_MS ((int64_t)10000)

struct gzipper;

struct gzipper_options {
	struct store *store;
	const char *worker_path;
	void (*wake)(void *ctx, uint64_t topic);
	void *wake_ctx;
};

/* Borrows what the options point to. */
int gzipper_start(const struct gzipper_options *options, struct gzipper **out, struct err *err)
	MUST_CHECK;

/* What is being made is given up. */
void gzipper_stop(struct gzipper *gzipper);

/* A v2's make_gzip; ctx is the gzipper. */
int gzipper_make(void *ctx, struct str repository, struct str tag, const struct digest *target,
		 uint64_t *topic, struct err *err) MUST_CHECK;

/* Variants that were made, by this process. */
uint64_t gzipper_count(struct gzipper *gzipper);
