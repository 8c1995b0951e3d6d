/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - three tables; v is 1.
 *
 *	table         key                      members
 *	agents        id                       slug, latest, digest (the latest version's),
 *	                                       createdMs, updatedMs
 *	agents.slugs  slug                     id
 *	versions      id, big-endian version   atMs, digest, spec
 */
#include "bake/agent.h"

#include "bake/agent_priv.h"
#include "layers/base/clock.h"
#include "layers/digest_json.h"

#include <endian.h>
#include <inttypes.h>

#define AGENTS "agents"
#define AGENT_SLUGS "agents.slugs"
#define VERSIONS "versions"

#define AGENT_PROVIDER_OURS "container"

struct agent_version_key {
	char bytes[ID_TEXT_MAX - 1 + sizeof(uint64_t)];
};

static struct str agent_version_key(const struct agent *agent, int64_t number,
				    struct agent_version_key *key)
{
	uint64_t big_endian = htobe64((uint64_t)number);

	memcpy(key->bytes, agent->id, ID_TEXT_MAX - 1);
	memcpy(key->bytes + ID_TEXT_MAX - 1, &big_endian, sizeof(big_endian));
	return (struct str){key->bytes, sizeof(key->bytes)};
}

static int agent_parse_version_key(struct str key, int64_t *out, struct err *err)
{
	uint64_t big_endian;

	if (key.len != sizeof(((struct agent_version_key *)0)->bytes))
		return err_set(err, ERR_CORRUPT, VERSIONS ": a key of %zu bytes", key.len);
	memcpy(&big_endian, key.ptr + ID_TEXT_MAX - 1, sizeof(big_endian));
	*out = (int64_t)be64toh(big_endian);
	return 0;
}

static int agent_get_digest(const json_t *record, struct digest *out, struct err *err)
{
	struct str text;

	if (json_need_string(record, "", "digest", &text, err) < 0)
		return -1;
	return digest_parse(text, out, err);
}

static int agent_corrupt(struct str key, struct err *err)
{
	err->kind = ERR_CORRUPT;
	return err_ctx(err, "record of agent " STR_FMT, STR_ARG(key));
}

static int agent_parse(struct str id, const json_t *record, struct agent *out, struct err *err)
{
	struct agent agent = {.latest = 0};
	struct str slug;

	if (json_need_string(record, "", "slug", &slug, err) < 0 ||
	    json_need_int(record, "", "latest", &agent.latest, err) < 0 ||
	    json_need_int(record, "", "createdMs", &agent.created_ms, err) < 0 ||
	    json_need_int(record, "", "updatedMs", &agent.updated_ms, err) < 0 ||
	    agent_get_digest(record, &agent.digest, err) < 0)
		return agent_corrupt(id, err);
	if (id.len != ID_TEXT_MAX - 1 || slug.len >= AGENT_SLUG_TEXT_MAX) {
		(void)err_set(err, ERR_CORRUPT, "its id or its slug is too long");
		return agent_corrupt(id, err);
	}
	memcpy(agent.id, id.ptr, id.len);
	memcpy(agent.slug, slug.ptr, slug.len);
	*out = agent;
	return 0;
}

/*
 * The id in a slug's record, which always stands at the same place: pollers ask
 * by slug, so nothing is parsed.
 */
static bool agent_slug_view(struct str record, char out[static ID_TEXT_MAX])
{
	const struct str head = STR("{\"id\":\"");
	struct str id = {record.ptr + head.len, ID_TEXT_MAX - 1};

	if (record.len <= head.len + id.len || !str_starts(record, head) ||
	    !ulid_is_id(STR(AGENT_PREFIX), id) || id.ptr[id.len] != '"')
		return false;
	memcpy(out, id.ptr, id.len);
	out[id.len] = '\0';
	return true;
}

static int agent_find_slug(struct meta *meta, struct str slug, char out[static ID_TEXT_MAX],
			   struct err *err)
{
	AUTO(json) json_t *record = NULL;
	struct str text;
	struct str id;
	int found;

	if (slug.len >= AGENT_SLUG_TEXT_MAX)
		return 0;
	found = meta_view(meta, AGENT_SLUGS, slug, &text, err);
	if (found != 1 || agent_slug_view(text, out))
		return found;
	/* A newer program may have added members: then it is parsed. */
	if (meta_get(meta, AGENT_SLUGS, slug, &record, err) < 0)
		return -1;
	if (json_need_string(record, "", "id", &id, err) < 0)
		return agent_corrupt(slug, err);
	if (id.len >= ID_TEXT_MAX)
		return err_set(err, ERR_CORRUPT, "the id of " STR_FMT " is too long",
			       STR_ARG(slug));
	memcpy(out, id.ptr, id.len);
	out[id.len] = '\0';
	return 1;
}

int agent_find_id(struct meta *meta, struct str name, char out[static ID_TEXT_MAX], struct err *err)
{
	if (!ulid_is_id(STR(AGENT_PREFIX), name))
		return agent_find_slug(meta, name, out, err);
	memcpy(out, name.ptr, name.len);
	out[name.len] = '\0';
	return 1;
}

int agent_find(struct meta *meta, struct str name, struct agent *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char id[ID_TEXT_MAX];
	int found = agent_find_id(meta, name, id, err);

	if (found == 1)
		found = meta_get(meta, AGENTS, str_of(id), &record, err);
	if (found == 1 && agent_parse(str_of(id), record, out, err) < 0)
		return -1;
	return found;
}

int agent_need(struct meta *meta, struct str name, struct agent *out, struct err *err)
{
	int found = agent_find(meta, name, out, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no agent \"%.*s\"",
			       (int)(name.len < 80 ? name.len : 80), name.ptr);
	return found < 0 ? -1 : 0;
}

int agent_need_version(struct meta *meta, const struct agent *agent, int64_t number,
		       struct agent_version *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	struct agent_version version = {.number = number ? number : agent->latest};
	struct agent_version_key key;
	int found = meta_get(meta, VERSIONS, agent_version_key(agent, version.number, &key),
			     &record, err);

	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "agent %s has no version %" PRId64 "; its latest is %" PRId64,
			       agent->slug, number, agent->latest);
	if (json_need_int(record, "", "atMs", &version.at_ms, err) < 0 ||
	    json_need_object(record, "", "spec", &version.spec, err) < 0 ||
	    agent_get_digest(record, &version.digest, err) < 0)
		return agent_corrupt(str_of(agent->id), err);
	(void)json_incref(version.spec);
	*out = version;
	return 0;
}

bool agent_version_has_subagent(const struct agent_version *version, struct str name)
{
	const json_t *list = json_object_get(version->spec, "subagents");
	const json_t *subagent;
	size_t i;

	json_array_foreach(list, i, subagent)
	{
		const json_t *its = json_object_get(subagent, "name");

		if (json_is_string(its) && str_equal(json_str(its), name))
			return true;
	}
	return false;
}

const char *agent_version_provider(const struct agent_version *version)
{
	const json_t *sandbox = json_object_get(version->spec, "sandbox");
	const char *provider = json_string_value(json_object_get(sandbox, "provider"));

	if (!sandbox)
		return NULL;
	return provider ? provider : AGENT_PROVIDER_OURS;
}

bool agent_provider_is_here(const char *provider)
{
	return strcmp(provider, AGENT_PROVIDER_OURS) == 0;
}

static void agent_set_instant(json_t *record, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];

	json_set_text(record, name, clock_format(ms, text));
}

int agent_put(struct meta *meta, const struct agent *agent, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	AUTO(json) json_t *slug = json_pack("{s:i, s:s}", "v", 1, "id", agent->id);
	int found = meta_get(meta, AGENTS, str_of(agent->id), &record, err);

	if (found < 0)
		return -1;
	if (found == 0)
		record = json_pack("{s:i}", "v", 1);
	json_set_text(record, "slug", agent->slug);
	json_set_int(record, "latest", agent->latest);
	json_set_int(record, "createdMs", agent->created_ms);
	json_set_int(record, "updatedMs", agent->updated_ms);
	digest_json_set(record, "digest", &agent->digest);
	if (meta_put(meta, AGENTS, str_of(agent->id), record, err) < 0)
		return -1;
	return meta_put(meta, AGENT_SLUGS, str_of(agent->slug), slug, err);
}

int agent_new_id(struct meta *meta, int64_t now_ms, char out[static ID_TEXT_MAX], struct err *err)
{
	return meta_new_id(meta, AGENTS, STR(AGENT_PREFIX), now_ms, out, err);
}

int agent_free_slug(struct meta *meta, const struct agent *agent, struct err *err)
{
	return meta_del(meta, AGENT_SLUGS, str_of(agent->slug), err) < 0 ? -1 : 0;
}

int agent_put_version(struct meta *meta, const struct agent *agent,
		      const struct agent_version *version, struct err *err)
{
	AUTO(json)
	json_t *record =
		json_pack("{s:i, s:I, s:O}", "v", 1, "atMs", version->at_ms, "spec", version->spec);
	struct agent_version_key key;

	if (!record)
		abort();
	digest_json_set(record, "digest", &version->digest);
	return meta_put(meta, VERSIONS, agent_version_key(agent, version->number, &key), record,
			err);
}

json_t *agent_format(const struct agent *agent, const struct agent_version *version)
{
	json_t *out = json_object();

	json_set_text(out, "id", agent->id);
	json_set_text(out, "slug", agent->slug);
	json_set_int(out, "version", version->number);
	json_set_int(out, "latest", agent->latest);
	agent_set_instant(out, "createdAt", agent->created_ms);
	agent_set_instant(out, "appendedAt", version->at_ms);
	digest_json_set(out, "digest", &version->digest);
	json_set(out, "spec", json_incref(version->spec));
	return out;
}

static int agent_list_item(void *ctx, struct str key, const json_t *record, json_t **out,
			   struct err *err)
{
	struct agent agent;

	(void)ctx;
	if (agent_parse(key, record, &agent, err) < 0)
		return -1;
	*out = json_object();
	json_set_text(*out, "id", agent.id);
	json_set_text(*out, "slug", agent.slug);
	json_set_int(*out, "version", agent.latest);
	agent_set_instant(*out, "createdAt", agent.created_ms);
	agent_set_instant(*out, "updatedAt", agent.updated_ms);
	return 0;
}

int agent_list(struct meta *meta, const struct page *page, json_t **out, struct err *err)
{
	const struct page_source source = {
		.table = AGENTS, .prefix = STR(""), .item = agent_list_item};

	return page_read(meta, &source, page, out, err);
}

static int agent_list_version(void *ctx, struct str key, const json_t *record, json_t **out,
			      struct err *err)
{
	int64_t number;
	int64_t at_ms;
	struct digest digest;

	(void)ctx;
	if (agent_parse_version_key(key, &number, err) < 0 ||
	    json_need_int(record, "", "atMs", &at_ms, err) < 0 ||
	    agent_get_digest(record, &digest, err) < 0)
		return agent_corrupt((struct str){key.ptr, ID_TEXT_MAX - 1}, err);
	*out = json_object();
	json_set_int(*out, "version", number);
	agent_set_instant(*out, "appendedAt", at_ms);
	digest_json_set(*out, "digest", &digest);
	return 0;
}

int agent_list_versions(struct meta *meta, const struct agent *agent, const struct page *page,
			json_t **out, struct err *err)
{
	const struct page_source source = {
		.table = VERSIONS, .prefix = str_of(agent->id), .item = agent_list_version};

	return page_read(meta, &source, page, out, err);
}

struct agent_walk {
	agent_context_fn *fn;
	void *ctx;
};

static int agent_visit_context(void *ctx, struct str key, const json_t *record, struct err *err)
{
	const struct agent_walk *walk = ctx;
	const json_t *sandbox = json_object_get(json_object_get(record, "spec"), "sandbox");
	const json_t *text = json_object_get(json_object_get(sandbox, "image"), "context");
	struct agent_context context = {.version = 0};
	struct err ignored;

	if (!json_is_string(text) || digest_parse(json_str(text), &context.digest, &ignored) < 0)
		return 0; /* none, or a directory of this host */
	if (agent_parse_version_key(key, &context.version, err) < 0)
		return -1;
	memcpy(context.agent_id, key.ptr, ID_TEXT_MAX - 1);
	return walk->fn(walk->ctx, &context, err);
}

int agent_each_context(struct meta *meta, agent_context_fn *fn, void *ctx, struct err *err)
{
	struct agent_walk walk = {fn, ctx};

	return meta_each(meta, VERSIONS, STR(""), agent_visit_context, &walk, err);
}

void agent_version_done(struct agent_version *version)
{
	json_decref(version->spec);
	*version = (struct agent_version){0};
}
