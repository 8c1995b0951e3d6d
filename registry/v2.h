/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2.h - the OCI distribution API over the store: what a request under /v2/ asks
 * for (v2_path.h), and its answer. Errors are v2_refuse.h's.
 *
 * Whoever calls has found out who asks, and that he may do path.action to
 * path.repository; nothing here knows of tokens. A blob is given only as part of
 * a repository, so that one which happens to be in the store is nobody's.
 *
 * What leaves is byte for byte what came: never encoded, its type without
 * parameters, and its digest as it was asked for. Locations are paths without a
 * host, since a proxy may have another one.
 *
 * Threads: calls may race; those for one request never overlap. What v2_terms()
 * does not let block is called in a thread that serves connections.
 */
#pragma once

#include "registry/mirror.h"
#include "registry/uploads.h"
#include "registry/v2_path.h"
#include "registry/v2_recall.h"
#include "registry/v2_refuse.h"

/* What all calls share. The daemon makes it once. */
struct v2 {
	struct store *store;
	struct uploads *uploads;
	struct mirror *mirror;    /* borrowed; NULL where it is a mirror of nobody */
	struct v2_recall *recall; /* NULL: nothing is remembered */
	/*
	 * Have the gzip variant of what a tag stands for made (gzip_tag.h): 0 and
	 * *topic is woken when it is there, or cannot be; -1. NULL where nobody can.
	 */
	int (*make_gzip)(void *ctx, struct str repository, struct str tag,
			 const struct digest *target, uint64_t *topic, struct err *err);
	void *make_gzip_ctx;
};

/* Whose repository it is that a call is about. */
enum v2_owner { V2_NOT_KNOWN, V2_OURS, V2_UPSTREAMS, V2_NOBODYS };

struct v2_call {
	struct v2 *v2;
	struct v2_path path;
	enum v2_owner owner;
	struct mirror_place place; /* V2_UPSTREAMS; its key is the name in any case but V2_OURS */
	const struct http_request *request;
	struct http_response *response;
	/* Whether who asks may do this to another repository, too, or to one that is listed. */
	bool (*may)(void *ctx, struct str repository, enum v2_action action);
	void *may_ctx;
	/* Of whoever answers, between the tries of a call that waits. */
	void *state;
	void (*state_free)(void *state);
};

/*
 * The name that permissions are about: a mirrored repository's has its host in
 * front, however it was asked for. Found once for a call.
 */
struct str v2_name(struct v2_call *call);

/* How the body is taken, and whether the answer may take its time. */
void v2_terms(const struct v2_call *call, struct http_terms *out);

/* By which clients know this API: in each answer, also where nobody knows who asks. */
void v2_add_version(struct http_response *out);

/* Make the answer, or leave what it waits for. */
void v2_answer(struct v2_call *call);

/* The same for what is here, whosever it is: a mirror calls it, which knows that it is. */
void v2_answer_held(struct v2_call *call);

/* The last call: what it remembered goes. */
void v2_done(struct v2_call *call);
