/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - one bake of the daemon, in a process of its own.
 *
 * A job is the program `hearth` in its role `bake`: a crash of it harms no
 * other. When its parent closes its end of the socket, or dies, it ends with
 * all its steps and leaves nothing. Nothing in its spec names a file of the
 * host: bases come from registries, tags of the store or scratch, contexts are
 * digests, secrets are names.
 *
 * 	request, JSON; a frame for each secret   ->
 * 	                                         <-  WIRE_PROGRESS and WIRE_LOG
 * 	                                         <-  one WIRE_RESULT or WIRE_ERROR
 *
 * A job does everything but publish. When its result comes all that it made is
 * durable, and is kept until job_end(); job_publish() gives the image its
 * record and its names, in a transaction of the caller's. If either process
 * dies before that, the job finds its steps made when it is started again under
 * the same id.
 *
 * Threads: a job belongs to one at a time. job_start() and job_end() wait for
 * a process, job_read() for nothing.
 * Memory: what the largest frame takes, while the job lives.
 */
#pragma once

#include "bake/instruction.h"
#include "bake/secrets.h"
#include "layers/base/json.h"
#include "layers/digest.h"
#include "layers/meta.h"
#include "registry/platform.h"
#include "sandbox/network.h"

#define JOB_TEXT_MAX ((size_t)256)      /* of a step that is told about */
#define JOB_TAIL_MAX ((size_t)4 * 1024) /* of a failed step's log, in its error */
#define JOB_LINGER_MS 20000             /* to clean up, before it is killed */

struct job_request {
	const char *program; /* the path of hearth */
	const char *config;  /* the path of its configuration; NULL for the usual one */
	struct store *store;
	const char *bake_id;           /* the same when the job is started again */
	struct str spec;               /* JSON: an agent or its image */
	const struct digest *base;     /* what the base stood for in the version before; or NULL */
	const struct digest *previous; /* the image that is served now, or NULL */
	bool rebake;                   /* see bake.h */
	size_t from_step;              /* of a rebake: steps before it may be found; 0 for none */
	const struct network_host *hosts;
	size_t host_count;
	const struct secrets *secrets; /* or NULL */
	const char *runtime;           /* or NULL: as the configuration has it */
};

enum job_phase { JOB_PULLING, JOB_RUNNING, JOB_EXPORTING };

/* As imageStatus has it: "pulling", "running", "exporting". */
const char *job_phase_name(enum job_phase phase);

struct job_progress {
	enum job_phase phase;
	size_t step; /* from 1; 0 while there is none */
	size_t of;
	struct str text; /* of the step; cut */
	bool done;       /* the step is done: found, or made in duration_ms */
	bool cached;
	int64_t duration_ms;
	uint64_t bytes; /* of a base's layer that is pulled, so far and in all */
	uint64_t size;
};

struct job_result {
	struct digest image; /* its manifest's */
	struct digest base;  /* the base's manifest's; all zero for scratch */
	const char *bake_id; /* in document */
	uint64_t size;       /* bytes: layers, config and manifest */
	size_t steps;
	size_t cached_steps;
	struct instruction_counts counts;
	bool unchanged; /* it is the previous image */
	const json_t
		*pushes;  /* array of references that the spec wants it pushed to; in document */
	json_t *document; /* owned: all that job_publish() needs */
};

struct job_error {
	struct err why;
	bool terminal; /* the same bake would fail again, and is not retried */
	size_t step;   /* from 1; 0 where no step failed */
	size_t line;   /* of its text, from 1; 0 where it was not refused */
	int exit_code; /* of that step's command */
	struct str log_tail;
};

enum job_event_kind {
	JOB_PROGRESS,
	JOB_LOG, /* of the step that was told about last */
	JOB_RESULT,
	JOB_ERROR, /* ERR_CANCELLED after job_cancel(); ERR_UNAVAILABLE where the job died */
};

/* What it lends is valid until the next call with the job. */
struct job_event {
	enum job_event_kind kind;
	struct job_progress progress;
	struct str log;
	const struct job_result *result;
	const struct job_error *error;
};

struct job;
int job_start(const struct job_request *request, struct job **out, struct err *err) MUST_CHECK;

/* Readable when there may be something for job_read(). Borrowed. */
int job_fd(const struct job *job);

/* 1 and what came next; 0 nothing yet, or nothing more: a result or an error is the last. */
int job_read(struct job *job, struct job_event *out) MUST_CHECK;

/* Ask it to stop. It cleans up, and sends its last event. */
void job_cancel(struct job *job);

/* Wait until it is gone; one that has not sent its last event is cancelled. */
void job_end(struct job *job);

/* What a published image is called. */
struct job_names {
	struct str slug;
	uint64_t version;
	bool latest;     /* no later version has an image */
	struct str kept; /* what its steps made before is kept under (kept.h); "" for not at all */
};

/* `<slug>:<version>` as the store's tags have it (agent_tag.h). */
int job_format_name(struct str slug, uint64_t version, struct buf *out, struct err *err) MUST_CHECK;

/*
 * Publish the image: write its record, those of a rebake's steps,
 * `<slug>:<version>` and `<slug>:latest`, and what is to be pushed (pushes.h).
 * A second time changes nothing.
 */
int job_publish(struct meta *meta, const struct job_result *result, const struct job_names *names,
		struct err *err) MUST_CHECK;

/* Write the names alone, for an image that has a record: after a rollback. */
int job_name_image(struct meta *meta, const struct digest *image, const struct platform *platform,
		   const struct job_names *names, struct err *err) MUST_CHECK;

/* And its steps' records, as far as they were kept. */
int job_restore_steps(struct meta *meta, const struct digest *image, struct str kept,
		      struct err *err) MUST_CHECK;

void job_result_done(struct job_result *result);

DEFINE_AUTO(job, struct job *, job_end);
