/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror.h - images of other registries: fetched once, kept, and served while
 * they arrive.
 *
 * Only what is configured as an upstream is asked. What comes is kept in a
 * repository of the upstream's name, "docker.io/library/alpine", whose records
 * are MIRRORED (repository.h); a tag stands for what it stood for within
 * tag_ttl_ms, and a digest for ever.
 *
 * However many ask for a thing, the upstream is asked once: by a thread of the
 * mirror, which no client holds up. A blob streams to all of them out of one
 * staged file while it arrives, also where nobody says how long it is; its end
 * waits until size and digest are right and the blob is durable. What is wrong is
 * never kept, and who was given a part of it has his connection cut.
 *
 * An upstream that fails, or asks to be left alone, is left alone for a while,
 * by everybody: meanwhile what is here is served, and nothing is said to be
 * absent that the upstream did not say so of. Nothing is asked at the start.
 *
 * Threads: all calls may race; v2_mirror_answer() never blocks.
 * Limits: MIRROR_THREADS_MAX requests to upstreams at one time, and
 * MIRROR_WAITING_MAX that wait for their turn; of both an upstream has its share
 * alone, where there are several.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/json.h"
#include "layers/store.h"
#include "registry/credentials.h"
#include "registry/mirror_upstream.h"
#include "registry/reference.h"
#include "registry/vacancy.h"

#include <stdbool.h>
#include <stdint.h>

#define MIRROR_UPSTREAMS_MAX ((size_t)256)

struct mirror;
struct v2_call;
struct v2_path;

/* Credentials for a repository; called by threads of the mirror, and may block. */
typedef int mirror_login_fn(void *ctx, struct str reference, const struct cancel *cancel,
			    struct credentials *out, struct err *err);

struct mirror_options {
	struct store *store;
	const struct mirror_upstream_spec *upstreams;
	size_t upstream_count;
	struct str default_host; /* for names that are not ours; or "" */
	mirror_login_fn *login;  /* NULL asks everybody anonymously */
	void *login_ctx;
	void (*wake)(void *ctx, uint64_t topic); /* who waits for it (layers/base/http.h) */
	void *wake_ctx;
	struct vacancy *vacancy; /* is asked for room; or NULL */
	int idle_ms;             /* these are 0 for the defaults */
	int stall_ms;
	int retry_base_ms;
	int back_off_ms;
};

/* What options point to is copied, but for the store. ERR_INVALID for a host that is given twice.
 */
int mirror_open(const struct mirror_options *options, struct mirror **out, struct err *err)
	MUST_CHECK;

/* What it fetches is cut off. Nobody calls it any more. NULL is ignored. */
void mirror_close(struct mirror *mirror);

/* A repository of an upstream. */
struct mirror_place {
	struct mirror_upstream *upstream;       /* borrowed from the mirror */
	char key[REFERENCE_REPOSITORY_MAX + 1]; /* "docker.io/library/alpine": what it is here */
	size_t host_len;                        /* of that, the upstream's name */
	bool by_default;                        /* nobody named the upstream */
	bool is_new;                            /* so it is, and nothing of it is here */
};

/*
 * 1 and the place that a path means, which an upstream answers for; 0 it is ours;
 * -1 it is nobody's: ERR_DENIED for an ns that is no upstream, ERR_INVALID.
 */
int mirror_route(struct mirror *mirror, const struct v2_path *path, struct mirror_place *out,
		 struct err *err) MUST_CHECK;

/* How an upstream fares. */
enum mirror_health {
	MIRROR_UNASKED,
	MIRROR_HEALTHY,
	MIRROR_LIMITED, /* it asked to be left alone for a while */
	MIRROR_FAILING,
};

struct mirror_report {
	const char *host;
	const char *place;  /* where it is */
	const char *prefix; /* of its names there; or "" */
	bool is_default;
	enum mirror_health health;
	int64_t retry_ms;    /* for so long it is left alone; or 0 */
	int64_t answered_ms; /* when it last did, since 1970; 0 for never, here and below */
	int64_t failed_ms;
	char why[MIRROR_WHY_MAX]; /* its last failure, while it fails */
	int64_t limit;            /* its quota, as it says; -1 where it does not, here and below */
	int64_t remaining;
	/* since the start, but for what is held: */
	uint64_t hits;   /* requests that it was not asked for */
	uint64_t misses; /* and those that it was */
	uint64_t stale;  /* answered by what was here, since it could not be asked */
	uint64_t requests;
	uint64_t errors; /* of these requests */
	uint64_t fetched_bytes;
	uint64_t served_bytes;
	uint64_t held_bytes; /* in the store, at the last trim */
	uint64_t max_bytes;  /* that may be; 0 for any */
};

/* Of upstream number `at`; what it points to lives as long as the mirror. False behind the last. */
bool mirror_report(struct mirror *mirror, size_t at, struct mirror_report *out);

/* Blobs that arrive at present. */
size_t mirror_fills(struct mirror *mirror);

/*
 * All of that as JSON, {"upstreams": [{"host", "health", ...}], "fills"}, which
 * the caller owns. A mirror that is NULL has no upstreams.
 */
json_t *mirror_status(struct mirror *mirror);

struct mirror_warm_spec {
	bool all_platforms;
	struct platform platform; /* else only what is for this one */
	const struct cancel *cancel;
};

struct mirror_warmed {
	struct digest digest; /* what the reference stands for */
	uint64_t manifests;
	uint64_t blobs;
	uint64_t fetched; /* of the blobs: that were not here */
	uint64_t fetched_bytes;
};

/*
 * Fetch an image of an upstream whole, by its reference; it blocks until all is
 * here. ERR_INVALID where it is none of an upstream, else as that answers.
 */
int mirror_warm(struct mirror *mirror, struct str text, const struct mirror_warm_spec *spec,
		struct mirror_warmed *out, struct err *err) MUST_CHECK;

/*
 * Remove records of what was used longest ago, of each upstream that holds more
 * than its max_bytes. *out_bytes: what a collection can give back.
 */
int mirror_trim(struct mirror *mirror, const struct cancel *cancel, uint64_t *out_bytes,
		struct err *err) MUST_CHECK;

/* Whether that might find something; costs nothing. */
bool mirror_may_be_over(const struct mirror *mirror);

/* Answer a call for an upstream's repository, or leave what it waits for. */
void v2_mirror_answer(struct v2_call *call, const struct mirror_place *place);

DEFINE_AUTO(mirror, struct mirror *, mirror_close);
