/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_priv.h - one push, as its parts see it.
 */
#pragma once

#include "layers/base/lock.h"
#include "registry/closure.h"
#include "registry/lanes_priv.h"
#include "registry/push.h"
#include "registry/upload_priv.h"

#define PUSH_DEPTH_MAX 4     /* of indexes in indexes */
#define PUSH_SOURCES_MAX 100 /* images of the registry that are looked through */
#define PUSH_SOURCE_BLOBS_MAX ((size_t)10000)

/*
 * Which repository of the same registry each blob came from, by the tags that
 * were pulled. Read when the first blob is missing there.
 */
struct push_source {
	struct digest blob;
	char *path; /* owned */
};

struct push_sources {
	struct lock lock;
	/* guarded by lock: */
	bool read;
	struct push_source *at; /* owned */
	size_t count;
};

struct push {
	struct store *store;
	const struct push_spec *spec;
	struct remote *remote;
	struct http *lanes[LANES]; /* made when first used, by who uses them */
	struct push_sources sources;
	struct cancel stop;     /* raised when a blob fails, for the others */
	struct lock event_lock; /* one event at a time */
};

void push_tell(struct push *push, enum push_event_kind kind, const struct digest *digest,
	       uint64_t done, uint64_t size);

/* The lane's connection, lent. */
int push_lane(struct push *push, size_t lane, struct http **out, struct err *err) MUST_CHECK;

/* Every blob that a document names into the repository. */
int push_blobs(struct push *push, const struct closure *closure, struct err *err) MUST_CHECK;

/* 1 and the path of a repository that has the blob, lent; 0 none is known; -1. */
int push_find_source(struct push *push, const struct digest *blob, struct str *out, struct err *err)
	MUST_CHECK;
void push_sources_done(struct push_sources *sources);
