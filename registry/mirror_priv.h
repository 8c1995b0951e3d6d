/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_priv.h - the parts of the mirror: upstreams, and the tasks that ask
 * them.
 *
 * A task is one thing that is wanted of an upstream, by any number of askers:
 *
 *	state     made by                     who has it
 *	QUEUED    mirror_start()              the list of open tasks, and those who ask
 *	RUNNING   a thread of the mirror      the same, and that thread
 *	DONE      the same                    those who ask: its result is final
 *
 * Each change wakes its topic. Whoever wants the same before it is done joins it.
 */
#pragma once

#include "registry/manifest.h"
#include "registry/mirror.h"
#include "registry/mirror_record_priv.h"
#include "registry/mirror_upstream_priv.h"
#include "registry/remote_priv.h"
#include "registry/repository.h"

#include <stdatomic.h>

#define MIRROR_THREADS_MAX ((size_t)16)
#define MIRROR_FILLS_MAX ((size_t)12) /* of these, for blobs: a manifest finds a thread */
#define MIRROR_WAITING_MAX ((size_t)1024)
/* Of these for one upstream, where there are others: one that hangs does not keep them. */
#define MIRROR_THREADS_SHARE ((size_t)12)
#define MIRROR_FILLS_SHARE ((size_t)8)
#define MIRROR_WAITING_SHARE ((size_t)512)
#define MIRROR_REMOTES_MAX ((size_t)64) /* repositories whose tokens are remembered */
#define MIRROR_BLOB_MAX ((uint64_t)256 << 30)
#define MIRROR_SIZE_UNKNOWN UINT64_MAX
#define MIRROR_TRIES 4

/* mirror_route.c: a repository by its name there, which the hub's short ones are not. Returns 1. */
int mirror_place_make(struct mirror_upstream *upstream, struct str name, struct mirror_place *out,
		      struct err *err) MUST_CHECK;

/* The place's name without its host. */
static inline struct str mirror_place_path(const struct mirror_place *place)
{
	return str_of(place->key + place->host_len + 1);
}

/* The upstream that has this name, or one of its others; or NULL. */
struct mirror_upstream *mirror_find_upstream(struct mirror *mirror, struct str text);

/* mirror_remote.c: clients of upstreams' repositories, with their tokens. */

struct mirror_remote;
struct remote *mirror_remote_get(const struct mirror_remote *remote);

/* The place's client; may block in a helper for credentials. */
int mirror_remote_take(struct mirror *mirror, const struct mirror_place *place,
		       struct mirror_remote **out, struct err *err) MUST_CHECK;

/* spent: its credentials are refused, and are looked up anew the next time. */
void mirror_remote_release(struct mirror *mirror, struct mirror_remote *remote, bool spent);
void mirror_remotes_free(struct mirror *mirror);

/* mirror.c: tasks. */

enum mirror_kind {
	MIRROR_TAG,       /* what a tag stands for, and its manifest */
	MIRROR_MANIFEST,  /* by digest */
	MIRROR_CHECK,     /* whether the upstream gives us a blob */
	MIRROR_FILL,      /* a blob */
	MIRROR_TAGS,      /* all tags of a repository */
	MIRROR_REFERRERS, /* what refers to a digest */
	MIRROR_KINDS,
};

struct mirror_wish {
	enum mirror_kind kind;
	const struct mirror_place *place;
	struct str name;             /* a tag, or the digest's text */
	const struct digest *digest; /* NULL for a tag */
};

enum mirror_state { MIRROR_QUEUED, MIRROR_RUNNING, MIRROR_DONE };

struct mirror_task {
	struct mirror *mirror;
	enum mirror_kind kind;
	struct mirror_place place;
	char name[DIGEST_TEXT_MAX];
	bool probe;
	uint64_t topic;
	atomic_int state;
	/* guarded by the mirror's lock: */
	unsigned refs;
	struct mirror_task *next; /* of all that are open */
	struct mirror_task *next_queued;
	/* once it is DONE: */
	int result;
	struct err err;
	/* what is asked for; of a tag: once it is DONE, what it stands for */
	struct digest digest;
	/* of a blob; the file is read by all, up to mirror_fill_ready() */
	int fd;
	atomic_uint_least64_t size; /* MIRROR_SIZE_UNKNOWN until the upstream says */
	atomic_uint_least64_t arrived;
	atomic_bool endless; /* it comes, and nobody says how long it is */
	atomic_bool whole;   /* checked and durable */
};

/* A thread of the mirror, and what it works with at present. */
struct mirror_hand {
	struct mirror *mirror;
	struct http *http;            /* owned; NULL before its first task */
	struct mirror_remote *remote; /* of the task */
	struct mirror_task *task;
	struct err silence; /* why its last request had no answer, or none */
};

struct mirror_queue {
	struct mirror_task *first;
	struct mirror_task **last;
};

struct mirror {
	struct mirror_options options;
	struct mirror_upstream *upstreams;
	size_t upstream_count;
	struct mirror_upstream *fallback; /* the default one, or NULL */
	struct cancel cancel;
	pthread_cond_t work; /* something is queued, or it closes */
	pthread_cond_t done; /* a task is */
	struct lock lock;
	/* guarded by lock: */
	struct mirror_task *open;
	struct mirror_queue queues[2]; /* of documents, and of blobs */
	size_t waiting;                /* in both */
	size_t fills;                  /* that run */
	size_t idle;                   /* threads without a task */
	size_t threads;
	pthread_t thread[MIRROR_THREADS_MAX];
	struct mirror_remote *remotes; /* the last used first */
	struct mirror_pin *pins;
};

/*
 * The task that fetches this: one that is open already, or a new one. The caller
 * releases it. ERR_BUSY and ERR_UNAVAILABLE where the upstream is left alone, or
 * too much waits.
 */
int mirror_start(struct mirror *mirror, const struct mirror_wish *wish, struct mirror_task **out,
		 struct err *err) MUST_CHECK;

/* mirror_task.c: one that is open already, or NULL. */
struct mirror_task *mirror_task_join(struct mirror *mirror, const struct mirror_wish *wish);
void mirror_task_release(struct mirror_task *task);

static inline bool mirror_task_is_done(const struct mirror_task *task)
{
	return atomic_load(&task->state) == MIRROR_DONE;
}

/* Wake who waits for the task. */
void mirror_task_tell(const struct mirror_task *task);

/* The same as mirror_task_join(). */
struct mirror_task *mirror_task_join_locked(struct mirror *mirror, const struct mirror_wish *wish)
	REQUIRES(mirror->lock);

/* With a reference for the caller, and one for the list of open tasks, which it is put into. */
struct mirror_task *mirror_task_new(struct mirror *mirror, const struct mirror_wish *wish);
void mirror_task_enqueue_locked(struct mirror *mirror, struct mirror_task *task)
	REQUIRES(mirror->lock);

/* The next one, documents first; NULL where nothing waits that may run. */
struct mirror_task *mirror_task_dequeue_locked(struct mirror *mirror) REQUIRES(mirror->lock);

/* Its result is final, and it is open no more. */
void mirror_task_finish_locked(struct mirror *mirror, struct mirror_task *task)
	REQUIRES(mirror->lock);

/*
 * mirror_hold.c: whether a place holds this, bytes and leave. 1, 0 or -1. A task
 * looks once more before it asks: it may have come since its asker looked.
 */
int mirror_holds(const struct mirror *mirror, const struct mirror_place *place,
		 enum repository_kind kind, const struct digest *digest,
		 struct repository_item *out, struct err *err) MUST_CHECK;

/* The size of a blob, as a manifest of the place says it. 1, 0 or -1. */
int mirror_hold_size(const struct mirror *mirror, const struct mirror_place *place,
		     const struct digest *blob, uint64_t *out, struct err *err) MUST_CHECK;

/* Whether what was said then holds still: 1 it is within the upstream's tag_ttl_ms. */
bool mirror_is_fresh(const struct mirror_place *place, int64_t checked_ms);

/* mirror_ask.c: a request to the upstream of this hand's task. 0 for a 2xx alone. */
int mirror_ask(struct mirror_hand *hand, const struct remote_request *request,
	       struct http_reply *reply, struct err *err) MUST_CHECK;

/* What each kind of task does, in a thread of the mirror. */
typedef int mirror_run_fn(struct mirror_hand *hand, struct mirror_task *task, struct err *err);
mirror_run_fn mirror_fetch_tag, mirror_fetch_manifest, mirror_check_blob, mirror_fill_blob,
	mirror_fetch_tags, mirror_fetch_referrers;

/* How many of a blob's first bytes may be given away: all but a tail, before it is whole. */
uint64_t mirror_fill_ready(const struct mirror_task *task);

/* Copy some of them, which there are. How many, or -1. */
ssize_t mirror_fill_read(const struct mirror_task *task, uint64_t at, char *out, size_t max);

/* The same without waiting for a disk: 0 where one would be waited for. */
ssize_t mirror_fill_read_near(const struct mirror_task *task, uint64_t at, char *out, size_t max);

/* mirror_pin.c: what is being read, and is not removed. */

/* The answer's body is read: blob stays until that has ended. */
void mirror_pin_stream(struct mirror *mirror, const struct digest *blob,
		       struct http_response *response);
bool mirror_is_pinned(struct mirror *mirror, const struct digest *blob);

DEFINE_AUTO(mirror_task, struct mirror_task *, mirror_task_release);
