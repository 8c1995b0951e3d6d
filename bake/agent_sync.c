/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_sync.c - a spec comes in, and a version is appended or not.
 */
#include "bake/agent_priv.h"
#include "bake/agent_spec_priv.h"
#include "bake/canonical.h"
#include "layers/journal.h"

#include <assert.h>

_Static_assert(AGENT_SLUG_TEXT_MAX == AGENT_SLUG_MAX + 1, "a slug fits");

/* A spec that was checked. */
struct agent_asked {
	const struct agent_sync *sync;
	json_t *spec; /* borrowed: the agent's own object */
	struct str slug;
	struct digest digest;
};

static int agent_sync_judge(json_t *document, const struct agent_sync *sync, json_t *warnings,
			    struct agent_asked *out, struct err *err)
{
	struct agent_spec_rules rules = {.host_files = sync->host_files};
	struct agent_spec_found found;

	if (agent_spec_find(document, warnings, &found, err) < 0)
		return -1;
	rules.path = found.path;
	if (agent_spec_check(found.agent, &rules, warnings, err) < 0 ||
	    json_need_string(found.agent, rules.path, "slug", &out->slug, err) < 0)
		return -1;
	agent_spec_warn_provider(found.agent, rules.path, warnings);
	out->sync = sync;
	out->spec = found.agent;
	return canonical_digest(found.agent, AGENT_SPEC_MAX, &out->digest, err);
}

/* The agent that the version would be of: 1, 0 a new one, -1. */
static int agent_sync_find(struct meta *meta, const struct agent_asked *asked, struct agent *out,
			   struct err *err)
{
	struct agent other;
	int found = agent_find(meta, asked->slug, &other, err);

	if (found < 0)
		return -1;
	if (asked->sync->id.len == 0) {
		if (found == 1)
			*out = other;
		return found;
	}
	if (agent_need(meta, asked->sync->id, out, err) < 0)
		return -1;
	if (found == 1 && strcmp(other.id, out->id) != 0)
		return err_set(err, ERR_CONFLICT, "the slug " STR_FMT " is another agent's",
			       STR_ARG(asked->slug));
	return 1;
}

static int agent_sync_tell(struct meta *meta, const struct agent *agent, const char *type,
			   int64_t version, json_t *data, struct err *err)
{
	AUTO(json) json_t *owned = data;
	struct event event = {
		.at_ms = agent->updated_ms,
		.type = str_of(type),
		.agent_id = str_of(agent->id),
		.version = version,
		.data = owned,
	};
	uint64_t id;

	if (!owned)
		abort();
	return journal_append(meta, &event, &id, err);
}

/* The agent as it is with one more version; its old slug goes. */
static int agent_sync_advance(struct meta *meta, const struct agent_asked *asked, bool is_new,
			      struct agent *agent, struct err *err)
{
	int64_t now_ms = asked->sync->now_ms;

	if (is_new) {
		*agent = (struct agent){.created_ms = now_ms};
		if (agent_new_id(meta, now_ms, agent->id, err) < 0)
			return -1;
	} else if (!str_equal(str_of(agent->slug), asked->slug) &&
		   agent_free_slug(meta, agent, err) < 0) {
		return -1;
	}
	assert(asked->slug.len < sizeof(agent->slug));
	memset(agent->slug, 0, sizeof(agent->slug));
	memcpy(agent->slug, asked->slug.ptr, asked->slug.len);
	agent->updated_ms = now_ms;
	agent->digest = asked->digest;
	agent->latest++;
	return 0;
}

static int agent_sync_append(struct meta *meta, const struct agent_asked *asked, bool is_new,
			     struct agent *agent, struct err *err)
{
	struct agent_version version = {
		.at_ms = asked->sync->now_ms, .digest = asked->digest, .spec = asked->spec};
	char digest[DIGEST_TEXT_MAX];

	if (agent_sync_advance(meta, asked, is_new, agent, err) < 0)
		return -1;
	version.number = agent->latest;
	if (agent_put(meta, agent, err) < 0 || agent_put_version(meta, agent, &version, err) < 0)
		return -1;
	if (is_new && agent_sync_tell(meta, agent, "agent.created", 0,
				      json_pack("{s:s}", "slug", agent->slug), err) < 0)
		return -1;
	if (agent_sync_tell(meta, agent, "version.appended", agent->latest,
			    json_pack("{s:s, s:s}", "slug", agent->slug, "digest",
				      digest_format(&asked->digest, digest)),
			    err) < 0)
		return -1;
	if (!asked->sync->appended)
		return 0;
	return asked->sync->appended(asked->sync->ctx, meta, agent, &version, err);
}

/* 1 the latest version says the same already, 0 it does not, -1. */
static int agent_sync_is_same(struct store *store, const struct agent_asked *asked,
			      struct agent *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = agent_sync_find(meta, asked, &agent, err);
	if (found != 1)
		return found;
	if (!digest_equal(&agent.digest, &asked->digest))
		return 0;
	*out = agent;
	return 1;
}

static int agent_sync_commit(struct store *store, const struct agent_asked *asked,
			     struct agent *out, bool *out_appended, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct agent agent = {.latest = 0};
	int found;

	if (meta_begin(store, META_SHARED, &meta, err) < 0)
		return -1;
	found = agent_sync_find(meta, asked, &agent, err);
	if (found < 0)
		return -1;
	*out_appended = found == 0 || !digest_equal(&agent.digest, &asked->digest);
	if (*out_appended && (agent_sync_append(meta, asked, found == 0, &agent, err) < 0 ||
			      meta_commit(steal_ptr(&meta), err) < 0))
		return -1;
	*out = agent;
	return 0;
}

int agent_sync(struct store *store, const struct agent_sync *sync, struct agent_synced *out,
	       struct err *err)
{
	auto_agent_synced struct agent_synced synced = {.warnings = json_array()};
	AUTO(json) json_t *document = NULL;
	struct agent_asked asked;
	int same;

	if (json_parse(sync->text, AGENT_SPEC_MAX, &document, err) < 0 ||
	    agent_sync_judge(document, sync, synced.warnings, &asked, err) < 0)
		return -1;
	same = agent_sync_is_same(store, &asked, &synced.agent, err);
	if (same < 0 || (same == 0 && agent_sync_commit(store, &asked, &synced.agent,
							&synced.appended, err) < 0))
		return -1;
	*out = synced;
	synced.warnings = NULL;
	return 0;
}

void agent_synced_done(struct agent_synced *synced)
{
	json_decref(synced->warnings);
	*synced = (struct agent_synced){.warnings = NULL};
}
