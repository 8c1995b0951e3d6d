/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - conversations with agents, and the trees that they form.
 *
 * A session without a parent is the root of a tree; its children carry its
 * agent, its version and its id, since they share its machine. A session is
 * open until it ends, once; those below it end with it. The caller checks, in
 * the same transaction, whether the version has an image.
 */
#pragma once

#include "layers/page.h"

#define SESSION_PREFIX "ses_"
#define SESSION_TREE_MAX 1000 /* open sessions of one tree */
#define SESSION_NAME_MAX ((size_t)63)

struct session {
	char id[ID_TEXT_MAX];
	char agent_id[ID_TEXT_MAX];
	int64_t version;
	char root_id[ID_TEXT_MAX];   /* its own id where it is a root */
	char parent_id[ID_TEXT_MAX]; /* "" for a root */
	char subagent[SESSION_NAME_MAX + 1];
	int64_t created_ms;
	int64_t ended_ms; /* 0 while it is open */
};

/* What a new session is to be; its id, root and time are filled in. */
struct session_request {
	struct str agent_id;
	int64_t version; /* 0 with a parent: the root's */
	struct str parent_id;
	struct str subagent;
	int64_t now_ms;
};

/*
 * Open one, in the caller's write transaction. Of its parent: ERR_NOT_FOUND,
 * ERR_GONE where it has ended, ERR_INVALID where it is of another agent or
 * version. ERR_LIMIT for a tree that is too large.
 */
int session_create(struct meta *meta, const struct session_request *request, struct session *out,
		   struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND where there is none. */
int session_need(struct meta *meta, struct str id, struct session *out, struct err *err) MUST_CHECK;

/* End it and all below it. 1 ended now, 0 it had ended before, -1. */
int session_end(struct meta *meta, struct str id, int64_t now_ms, struct session *out,
		struct err *err) MUST_CHECK;

/* The open sessions of a tree, in the order in which they were created. */
typedef int session_each_fn(void *ctx, const struct session *session, struct err *err);
int session_each_open(struct meta *meta, struct str root_id, session_each_fn *fn, void *ctx,
		      struct err *err) MUST_CHECK;

/* Newest first: all, or those of one agent. */
int session_list(struct meta *meta, struct str agent_id, const struct page *page, json_t **out,
		 struct err *err) MUST_CHECK;

/* {id, agentId, version, rootId, parentId, subagent, state: open|ended, createdAt, endedAt} */
json_t *session_format(const struct session *session);
