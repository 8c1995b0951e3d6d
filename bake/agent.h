/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - agents and their versions.
 *
 * An agent is what has a slug; a version is one whole spec of it, numbered from
 * 1. A sync of a spec whose canonical content is that of the latest version
 * changes nothing; any other appends a version, and none is ever changed.
 *
 * An agent is found by its id or its slug, by one look-up; no slug reads like
 * an id. A version, its events and what the caller adds (a bake in the queue)
 * are written in one transaction.
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"
#include "layers/page.h"

#define AGENT_SPEC_MAX ((size_t)2 * 1024 * 1024) /* of its text, and of its canonical content */
#define AGENT_SLUG_TEXT_MAX ((size_t)64)         /* 63 characters and the NUL */

struct agent {
	char id[ID_TEXT_MAX]; /* "agt_" and a ULID */
	char slug[AGENT_SLUG_TEXT_MAX];
	int64_t latest;       /* version */
	struct digest digest; /* of the latest version's canonical content */
	int64_t created_ms;
	int64_t updated_ms; /* when the latest version was appended */
};

struct agent_version {
	int64_t number;
	int64_t at_ms;
	struct digest digest; /* of its canonical content */
	json_t *spec;         /* owned: the agent's object as it was synced */
};

/* By id or slug: 1, 0 or -1. */
int agent_find(struct meta *meta, struct str name, struct agent *out, struct err *err) MUST_CHECK;

/*
 * The id of the agent with that id or slug, by one look-up at most: 1, 0 no
 * agent has the slug, -1. An id is not looked up, and may be nobody's.
 */
int agent_find_id(struct meta *meta, struct str name, char out[static ID_TEXT_MAX], struct err *err)
	MUST_CHECK;

/* As agent_find(); ERR_NOT_FOUND where there is none. */
int agent_need(struct meta *meta, struct str name, struct agent *out, struct err *err) MUST_CHECK;

/* Version 0 is the latest. ERR_NOT_FOUND where there is none. */
int agent_need_version(struct meta *meta, const struct agent *agent, int64_t number,
		       struct agent_version *out, struct err *err) MUST_CHECK;

/* Whether the version's spec has a sub-agent of that name. */
bool agent_version_has_subagent(const struct agent_version *version, struct str name);

/* Who makes the version's machines; NULL where its spec has no sandbox. Borrowed. */
const char *agent_version_provider(const struct agent_version *version);

/* Whether this host makes machines of that provider. */
bool agent_provider_is_here(const char *provider);

/* Newest first: {items: [{id, slug, version, createdAt, updatedAt}], next}. */
int agent_list(struct meta *meta, const struct page *page, json_t **out, struct err *err)
	MUST_CHECK;

/* An agent's versions, newest first: {items: [{version, appendedAt, digest}], next}. */
int agent_list_versions(struct meta *meta, const struct agent *agent, const struct page *page,
			json_t **out, struct err *err) MUST_CHECK;

/* Every context that a version names by digest, until fn returns non-zero, which is returned. */
struct agent_context {
	char agent_id[ID_TEXT_MAX];
	int64_t version;
	struct digest digest;
};

typedef int agent_context_fn(void *ctx, const struct agent_context *context, struct err *err);
int agent_each_context(struct meta *meta, agent_context_fn *fn, void *ctx, struct err *err)
	MUST_CHECK;

/* {id, slug, version, latest, createdAt, appendedAt, digest, spec}. */
json_t *agent_format(const struct agent *agent, const struct agent_version *version);

/*
 * Called in the transaction that appends a version, after its records and
 * events were written; where it fails, nothing is appended.
 */
typedef int agent_appended_fn(void *ctx, struct meta *meta, const struct agent *agent,
			      const struct agent_version *version, struct err *err);

struct agent_sync {
	struct str text; /* AGENT or {"agent": AGENT} */
	struct str id; /* "": the agent with the spec's slug; else this one, which may be renamed */
	bool host_files; /* the spec may name files of this host: never what came by HTTP */
	int64_t now_ms;
	agent_appended_fn *appended; /* or NULL */
	void *ctx;
};

struct agent_synced {
	struct agent agent;
	bool appended;
	json_t *warnings; /* owned: array of strings */
};

/*
 * ERR_INVALID with path and expectation (err.h) for what is wrong with the
 * spec; ERR_LIMIT for one that is too large; ERR_CONFLICT for a slug that
 * another agent has; ERR_NOT_FOUND for an unknown id.
 */
int agent_sync(struct store *store, const struct agent_sync *sync, struct agent_synced *out,
	       struct err *err) MUST_CHECK;

void agent_version_done(struct agent_version *version);
static inline void auto_agent_version_release(struct agent_version *slot)
{
	agent_version_done(slot);
}
#define auto_agent_version AUTO(agent_version)

void agent_synced_done(struct agent_synced *synced);
static inline void auto_agent_synced_release(struct agent_synced *slot)
{
	agent_synced_done(slot);
}
#define auto_agent_synced AUTO(agent_synced)
