/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_upstream_priv.h - an upstream, and how it fares.
 *
 * One that says so (429, Retry-After), that is silent, or that fails
 * several times is left alone for a while, which grows with each failure. When
 * that is over one request finds out whether it is well again. All of its
 * repositories share that, since they share what is wrong with it.
 *
 * Threads: all calls may race.
 */
#pragma once

#include "layers/base/lock.h"
#include "registry/http_priv.h"
#include "registry/mirror_upstream.h"
#include "registry/reference.h"
#include "registry/url_priv.h"

#include <stdatomic.h>

struct mirror_counts {
	atomic_uint_least64_t hits;    /* requests that no upstream was asked for */
	atomic_uint_least64_t misses;  /* and those that one was */
	atomic_uint_least64_t stale;   /* answered by what was here, since it could not be asked */
	atomic_uint_least64_t asked;   /* requests to it */
	atomic_uint_least64_t errors;  /* of these: no answer, or none that is any good */
	atomic_uint_least64_t fetched; /* bytes that came from it */
	atomic_uint_least64_t served;  /* and that were given away */
	/* at the last trim: */
	atomic_uint_least64_t held;
	atomic_uint_least64_t fetched_then;
};

struct mirror_upstream {
	char host[URL_HOST_MAX];                   /* "docker.io" */
	char place[URL_HOST_MAX];                  /* where it is: a host, and its port */
	char prefix[REFERENCE_REPOSITORY_MAX + 1]; /* "hub/", in front of its names there; or "" */
	bool plain_http;
	char *ca_file; /* owned, or NULL */
	bool is_hub;   /* a name of one part is short for library/NAME */
	int64_t tag_ttl_ms;
	int64_t back_off_ms;
	uint64_t max_bytes;
	struct mirror_counts counts;
	/* guarded by the mirror's lock: */
	size_t waiting; /* tasks that are queued */
	size_t running; /* and those that a thread has */
	size_t fills;   /* of these, blobs */
	struct lock lock;
	/* guarded by lock: */
	unsigned failures;        /* one after the other */
	int64_t until_ms;         /* it is left alone until then, on the monotonic clock */
	bool limited;             /* since it asked for that */
	char why[MIRROR_WHY_MAX]; /* its last failure, or "" */
	int64_t failed_ms;        /* when that was, since 1970; 0 for never, here and below */
	int64_t answered_ms;      /* its last good answer */
	int64_t limit;            /* of its quota, as it says; -1 where it does not */
	int64_t remaining;
};

int mirror_upstream_init(struct mirror_upstream *upstream, const struct mirror_upstream_spec *spec,
			 struct err *err) MUST_CHECK;
void mirror_upstream_done(struct mirror_upstream *upstream);

/*
 * Whether it may be asked now: ERR_BUSY or ERR_UNAVAILABLE where it is left
 * alone. *out_probe: it failed, and this is to find out whether it still does.
 */
int mirror_upstream_admit(struct mirror_upstream *upstream, bool *out_probe, struct err *err)
	MUST_CHECK;

/* Seconds after which a client may come again, at least 1. */
int64_t mirror_upstream_retry_s(struct mirror_upstream *upstream);

/* It answered; reply is NULL where it did not, and why says so, without its name. */
void mirror_upstream_heard(struct mirror_upstream *upstream, const struct http_reply *reply,
			   const struct err *why);

/* The name by which hosts are compared: lower case, of docker.io's names that one, no port 443. */
int mirror_host_name(struct str text, char out[static URL_HOST_MAX], struct err *err) MUST_CHECK;
