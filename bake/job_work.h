/* SPDX-License-Identifier: Apache-2.0 */
/* job_work.h - the other end of job.h: the role `bake` of the program hearth. */
#pragma once

#include "layers/base/cancel.h"
#include "registry/credentials.h"

/* Credentials for the registry of a reference; empty where there are none. */
typedef int job_login_fn(struct str reference, const struct cancel *cancel, struct credentials *out,
			 struct err *err);

/* What the host has for a job. Borrowed. */
struct job_host {
	const char *worker_path; /* of hearth-worker */
	const char *puller_path; /* of hearth-puller */
	const char *agent_path;  /* of hearth-agent */
	job_login_fn *login;
};

/* Serve the request that comes on WORK_FD_ASKER. The exit code. */
int job_work(const struct job_host *host);
