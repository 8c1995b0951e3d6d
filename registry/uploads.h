/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uploads.h - upload sessions: blobs on their way into repositories of ours.
 *
 * A session is a file, uploads/<ulid> in the data directory: a page that says
 * whose it is, and behind it what came so far. So it is there after a restart,
 * and the file's size is its offset. It belongs to one repository, and to one
 * request at a time, which holds it, by a flock once something came: bytes of two
 * are never mixed.
 *
 * Durability: none, nothing is synced. After a power cut a session may be gone,
 * or shorter, or hold other bytes, which its digest will show; then the client
 * begins anew. What is kept is a blob (intake.h).
 *
 * Limits: UPLOADS_MAX sessions of UPLOADS_BYTES_MAX bytes together. One that
 * nothing was added to for UPLOADS_IDLE_MS goes (uploads_expire()); sooner, where
 * there are too many.
 *
 * Threads: any may call; a session that was taken belongs to one at a time.
 */
#pragma once

#include "layers/base/sink.h"
#include "layers/base/ulid.h"
#include "registry/vacancy.h"

#define UPLOADS_MAX ((size_t)4096)
#define UPLOADS_BYTES_MAX ((uint64_t)1 << 40)
#define UPLOADS_BLOB_MAX ((uint64_t)256 << 30)         /* of one; a layer has 1 GiB */
#define UPLOADS_IDLE_MS ((int64_t)24 * 60 * 60 * 1000) /* a laptop sleeps over night */
#define UPLOADS_PRESSED_MS ((int64_t)10 * 60 * 1000)   /* of one, where there are too many */
#define UPLOADS_WRITERS_MAX ((size_t)12)               /* at one time, for their memory */
#define UPLOADS_WRITERS_SENT ((size_t)8)               /* of them: while a client sends */

struct uploads;

struct uploads_options {
	struct store *store;
	size_t sessions_max; /* these are 0 for the limits above */
	uint64_t bytes_max;
	vacancy_make_fn *make_room; /* where the store is full; or NULL */
	void *ctx;                  /* of make_room */
};

int uploads_open(const struct uploads_options *options, struct uploads **out, struct err *err)
	MUST_CHECK;
void uploads_close(struct uploads *uploads);

/* Room in the store, as far as uploads need it. Borrowed. */
struct vacancy *uploads_vacancy(struct uploads *uploads);

/* A new session with nothing in it; out_id is its name. ERR_BUSY above the limits. */
int uploads_begin(struct uploads *uploads, struct str repository, char out_id[static ULID_TEXT_MAX],
		  struct err *err) MUST_CHECK;

/*
 * How much came so far, whoever is adding to it: 1; 0 this repository has no such
 * session; -1.
 */
int uploads_find(struct uploads *uploads, struct str repository, struct str id, uint64_t *out,
		 struct err *err) MUST_CHECK;

/* Hold a session: 1, 0 or -1 as above; ERR_CONFLICT while another request does. */
struct uploads_session;
int uploads_take(struct uploads *uploads, struct str repository, struct str id,
		 struct uploads_session **out, struct err *err) MUST_CHECK;

/* A session that never gets a name, for one request: it ends with that. */
int uploads_take_new(struct uploads *uploads, struct uploads_session **out, struct err *err)
	MUST_CHECK;

/* Let go of it; it stays as it is. */
void uploads_release(struct uploads_session *session);

/* Its name, "" where it has none; and the bytes that came so far. */
const char *uploads_id(const struct uploads_session *session);
uint64_t uploads_size(const struct uploads_session *session);

/*
 * Add what can be read, at most `most` bytes: 0 that was all, 1 there is more, -1.
 * What was added before a failure stays. ERR_FULL where the store has no room
 * left; ERR_LIMIT and ERR_BUSY above the limits.
 */
int uploads_append(struct uploads_session *session, struct source *from, uint64_t most,
		   struct err *err) MUST_CHECK;

/* Forget all behind the first `size` bytes. */
int uploads_cut(struct uploads_session *session, uint64_t size, struct err *err) MUST_CHECK;

/* All that came, to a sink, a MiB at a time. */
int uploads_copy(struct uploads_session *session, struct sink *out, struct err *err) MUST_CHECK;

/* Remove it; it is still to be released. */
int uploads_remove(struct uploads_session *session, struct err *err) MUST_CHECK;

/* Remove those that nobody holds and nothing was added to for so long. How many, or -1. */
int uploads_expire(struct uploads *uploads, int64_t idle_ms, struct err *err) MUST_CHECK;

/*
 * Take a place among those who write a blob, each of which has a MiB in memory.
 * Without `patient`, for bytes that a client still sends, false where none is
 * free; some are for who has them all, and waits for one.
 */
bool uploads_enter(struct uploads *uploads, bool patient);
void uploads_leave(struct uploads *uploads);

struct uploads_load {
	size_t sessions;
	uint64_t bytes;
};
struct uploads_load uploads_load(struct uploads *uploads);

DEFINE_AUTO(uploads, struct uploads *, uploads_close);
DEFINE_AUTO(uploads_session, struct uploads_session *, uploads_release);
