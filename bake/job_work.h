/* SPDX-License-Identifier: Apache-2.0 */
/* job_work.h - the other end of job.h: the role `bake` of the program hearth. */
#pragma once

#include "bake/gc.h"
#include "layers/base/secret.h"
#include "registry/places.h"

/* How the registry of a reference is reached, and what steps are told. All of it is lent. */
struct job_access {
	struct str user; /* credentials, or empty */
	const struct secret *password;
	const struct places *places;
	const struct proxies *proxies; /* or NULL */
};

typedef int job_access_fn(void *ctx, struct str reference, const struct cancel *cancel,
			  struct job_access *out, struct err *err);

/* What this host provides for a job. Borrowed. */
struct job_host {
	const char *worker_path;    /* of hearth-worker */
	const char *puller_path;    /* of hearth-puller */
	const char *agent_path;     /* of hearth-agent */
	const char *runtime;        /* or NULL */
	const struct gc_policy *gc; /* for collecting where space is short; or NULL */
	job_access_fn *access;      /* called once */
	void *ctx;
};

/* Serve the request that comes on WORK_FD_ASKER. The exit code. */
int job_work(const struct job_host *host);
