/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_spec.c - the tables of the keys around an image.
 *
 *	AGENT    = {slug, model, system, sandbox: SANDBOX, subagents: [SUBAGENT], …}
 *	SANDBOX  = {provider, image: IMAGE (spec.c), resources, network, lifecycle,
 *	            scope, serializeTools, tools, runtime}
 *	SUBAGENT = {kind: "derived", name, extends, description,
 *	            overrides: {model, system, sandbox: {tools, scope, serializeTools}}, …}
 */
#include "bake/agent_spec_priv.h"

#include "bake/agent.h"
#include "bake/spec_priv.h"
#include "layers/base/ulid.h"
#include "registry/reference.h"
#include "sandbox/tool.h"

#include <ctype.h>
#include <stdio.h>

#define AGENT_NAME_MAX ((size_t)63) /* of a sub-agent or a runtime */
#define AGENT_SUBAGENTS_MAX 100
#define AGENT_SNAPSHOTS_MAX 1000

static const char *const providers[] = {"container", "docker", "local", "modal", NULL};
static const char *const scopes[] = {"tree", "session", NULL};
static const char *const idle_actions[] = {"snapshot", "release", NULL};
static const char *const kinds[] = {"derived", NULL};

static const struct schema lifecycle_keys[] = {
	{"idleAfterMs", SCHEMA_COUNT},
	{"onIdle", SCHEMA_STRING, .choices = idle_actions},
	{"snapshotEveryMs", SCHEMA_COUNT},
	{"keepSnapshots", SCHEMA_COUNT, .most = AGENT_SNAPSHOTS_MAX},
	{"maxSnapshotAgeMs", SCHEMA_COUNT},
	{NULL},
};

static const struct schema tool_keys[] = {
	{"preset", SCHEMA_STRING, .choices = tool_presets},
	{"allow", SCHEMA_STRINGS, .choices = tool_names},
	{"deny", SCHEMA_STRINGS, .choices = tool_names},
	{NULL},
};

static const struct schema sandbox_keys[] = {
	{"provider", SCHEMA_STRING, .choices = providers},
	{"image", SCHEMA_OBJECT, .members = spec_image_keys},
	{"resources", SCHEMA_OBJECT, .members = spec_resource_keys},
	{"network", SCHEMA_OBJECT, .members = spec_network_keys},
	{"lifecycle", SCHEMA_OBJECT, .members = lifecycle_keys},
	{"scope", SCHEMA_STRING, .choices = scopes},
	{"serializeTools", SCHEMA_BOOL},
	{"tools", SCHEMA_OBJECT, .members = tool_keys},
	{"runtime", SCHEMA_STRING},
	{NULL},
};

/* The machine is the root session's; a sub-agent only narrows what may be called, and how. */
static const struct schema narrowing_keys[] = {
	{"tools", SCHEMA_OBJECT, .members = tool_keys},
	{"scope", SCHEMA_STRING, .choices = scopes},
	{"serializeTools", SCHEMA_BOOL},
	{NULL},
};

static const struct schema override_keys[] = {
	{"model", SCHEMA_NAMED},
	{"system", SCHEMA_STRING},
	{"sandbox", SCHEMA_OBJECT, .members = narrowing_keys},
	{NULL},
};

static const struct schema subagent_keys[] = {
	{"kind", SCHEMA_STRING, .choices = kinds},
	{"name", SCHEMA_STRING},
	{"extends", SCHEMA_STRING},
	{"description", SCHEMA_STRING},
	{"overrides", SCHEMA_OBJECT},
	{NULL},
};

static const struct schema model_keys[] = {
	{"provider", SCHEMA_STRING},
	{"model", SCHEMA_STRING},
	{NULL},
};

static const struct schema agent_keys[] = {
	{"slug", SCHEMA_STRING},
	{"model", SCHEMA_NAMED},
	{"system", SCHEMA_STRING},
	{"sandbox", SCHEMA_OBJECT, .members = sandbox_keys},
	{"subagents", SCHEMA_OBJECTS, .most = AGENT_SUBAGENTS_MAX},
	{NULL},
};

int agent_spec_find(json_t *document, json_t *warnings, struct agent_spec_found *out,
		    struct err *err)
{
	static const struct schema keys[] = {{"agent", SCHEMA_OBJECT}, {NULL}};

	if (!json_is_object(document))
		return err_wrong(err, "an object", "expected an object, found %s",
				 json_type_name(json_typeof(document)));
	*out = (struct agent_spec_found){document, ""};
	if (!json_object_get(document, "agent"))
		return 0;
	if (json_need_object(document, "", "agent", &out->agent, err) < 0)
		return -1;
	out->path = "agent";
	return schema_check_open(document, keys, "", warnings, err);
}

bool agent_spec_is_slug(struct str slug)
{
	bool separator = true;

	for (size_t i = 0; i < slug.len; i++) {
		unsigned char c = (unsigned char)slug.ptr[i];
		bool plain = isdigit(c) || (c >= 'a' && c <= 'z');

		if (!plain && (separator || (c != '.' && c != '_' && c != '-')))
			return false;
		separator = !plain;
	}
	return slug.len > 0 && slug.len <= AGENT_SLUG_MAX && !separator &&
	       !ulid_is_id(STR("agt_"), slug);
}

/* Whether it can be the name of a sub-agent or a runtime: no path, and no option. */
static bool agent_spec_is_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (!isalnum(c) && (i == 0 || (c != '.' && c != '_' && c != '-')))
			return false;
	}
	return name.len > 0 && name.len <= AGENT_NAME_MAX;
}

static int agent_spec_refuse(const char *path, const char *key, const char *expected,
			     struct str found, struct err *err)
{
	(void)err_wrong(err, expected, "expected %s, found \"%.*s\"", expected,
			(int)(found.len < 60 ? found.len : 60), found.ptr);
	return err_at(err, path, key);
}

static int agent_spec_check_slug(const json_t *agent, const char *path, struct err *err)
{
	struct str slug;

	if (json_need_string(agent, path, "slug", &slug, err) < 0)
		return -1;
	if (agent_spec_is_slug(slug))
		return 0;
	return agent_spec_refuse(path, "slug",
				 "lower-case letters and digits, with single . _ or - between "
				 "them, at most 63, and no agent's id",
				 slug, err);
}

/* Sub-agents extend earlier ones only, so there is no circle. */
static int agent_spec_check_extends(const json_t *list, size_t i, const char *path, struct str name,
				    struct err *err)
{
	static const char expected[] = "\"parent\" or the name of an earlier sub-agent";
	struct str extends;
	bool found;

	if (json_need_string(json_array_get(list, i), path, "extends", &extends, err) < 0)
		return -1;
	found = str_equal(extends, STR("parent"));
	for (size_t k = 0; k < i; k++) {
		struct str earlier = json_str(json_object_get(json_array_get(list, k), "name"));

		if (str_equal(earlier, name))
			return agent_spec_refuse(path, "name", "a name that no other has", name,
						 err);
		found = found || str_equal(earlier, extends);
	}
	return found ? 0 : agent_spec_refuse(path, "extends", expected, extends, err);
}

static int agent_spec_check_overrides(json_t *subagent, const char *path, json_t *warnings,
				      struct err *err)
{
	struct schema_path at = schema_at_key(path, "overrides");
	struct schema_path model_at = schema_at_key(at.text, "model");
	json_t *overrides = json_object_get(subagent, "overrides");

	if (schema_check_open(overrides, override_keys, at.text, warnings, err) < 0)
		return -1;
	return schema_check_open(json_object_get(overrides, "model"), model_keys, model_at.text,
				 NULL, err);
}

static int agent_spec_check_subagent(const json_t *list, size_t i, const char *path,
				     json_t *warnings, struct err *err)
{
	struct schema_path at = schema_at_item(path, i);
	json_t *subagent = json_array_get(list, i);
	struct str kind;
	struct str name;

	if (schema_check_open(subagent, subagent_keys, at.text, warnings, err) < 0 ||
	    json_need_string(subagent, at.text, "kind", &kind, err) < 0 ||
	    json_need_string(subagent, at.text, "name", &name, err) < 0)
		return -1;
	if (!agent_spec_is_name(name) || str_equal(name, STR("parent")))
		return agent_spec_refuse(at.text, "name",
					 "letters, digits, . _ and -, at most 63, and not "
					 "\"parent\"",
					 name, err);
	if (agent_spec_check_extends(list, i, at.text, name, err) < 0)
		return -1;
	return agent_spec_check_overrides(subagent, at.text, warnings, err);
}

static int agent_spec_check_subagents(const json_t *agent, const char *path, json_t *warnings,
				      struct err *err)
{
	struct schema_path at = schema_at_key(path, "subagents");
	const json_t *list = json_object_get(agent, "subagents");

	for (size_t i = 0; i < json_array_size(list); i++) {
		if (agent_spec_check_subagent(list, i, at.text, warnings, err) < 0)
			return -1;
	}
	return 0;
}

static bool agent_spec_is_remote(struct str text, bool or_nothing)
{
	struct reference reference;
	struct err ignored;

	return reference_parse(text, &reference, &ignored) == 0 &&
	       (reference.kind == REFERENCE_REGISTRY ||
		(or_nothing && reference.kind == REFERENCE_SCRATCH));
}

static int agent_spec_check_remote_list(const json_t *object, const char *path, const char *key,
					struct err *err)
{
	const json_t *list = json_object_get(object, key);
	struct schema_path at = schema_at_key(path, key);
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (!agent_spec_is_remote(json_str(item), false))
			return agent_spec_refuse(schema_at_item(at.text, i).text, NULL,
						 "a registry reference", json_str(item), err);
	}
	return 0;
}

/* A spec by HTTP must not name a directory or an archive of this host. */
static int agent_spec_check_remote(const json_t *image, const char *path, struct err *err)
{
	const json_t *cache = json_object_get(image, "cache");
	struct schema_path cache_at = schema_at_key(path, "cache");
	struct str base = STR("");
	struct str context;
	struct digest digest;
	struct err ignored;
	int has_context = json_get_string(image, path, "context", &context, err);

	if (has_context < 0 || json_get_string(image, path, "base", &base, err) < 0)
		return -1;
	if (has_context == 1 && digest_parse(context, &digest, &ignored) < 0)
		return agent_spec_refuse(path, "context", "the digest that contexts.put answered",
					 context, err);
	if (!agent_spec_is_remote(base, true))
		return agent_spec_refuse(path, "base",
					 "a registry reference, a tag of this store or scratch",
					 base, err);
	if (agent_spec_check_remote_list(image, path, "push", err) < 0 ||
	    agent_spec_check_remote_list(cache, cache_at.text, "from", err) < 0 ||
	    agent_spec_check_remote_list(cache, cache_at.text, "to", err) < 0)
		return -1;
	return 0;
}

static int agent_spec_check_image(const json_t *sandbox, const char *path, bool host_files,
				  struct err *err)
{
	struct schema_path at = schema_at_key(path, "image");
	json_t *image = NULL;
	int found = json_get_object(sandbox, path, "image", &image, err);

	if (found <= 0)
		return found;
	if (spec_check_image(image, at.text, err) < 0)
		return -1;
	return host_files ? 0 : agent_spec_check_remote(image, at.text, err);
}

static int agent_spec_check_sandbox(const json_t *agent, const struct agent_spec_rules *rules,
				    struct err *err)
{
	struct schema_path at = schema_at_key(rules->path, "sandbox");
	const json_t *sandbox = json_object_get(agent, "sandbox");
	struct str runtime;
	int found = json_get_string(sandbox, at.text, "runtime", &runtime, err);

	if (found < 0)
		return -1;
	if (found == 1 && !agent_spec_is_name(runtime))
		return agent_spec_refuse(at.text, "runtime", "a runtime's name, such as crun",
					 runtime, err);
	return agent_spec_check_image(sandbox, at.text, rules->host_files, err);
}

int agent_spec_check(json_t *agent, const struct agent_spec_rules *rules, json_t *warnings,
		     struct err *err)
{
	struct schema_path model_at = schema_at_key(rules->path, "model");

	if (schema_check_open(agent, agent_keys, rules->path, warnings, err) < 0 ||
	    agent_spec_check_slug(agent, rules->path, err) < 0 ||
	    schema_check_open(json_object_get(agent, "model"), model_keys, model_at.text, NULL,
			      err) < 0 ||
	    agent_spec_check_sandbox(agent, rules, err) < 0)
		return -1;
	return agent_spec_check_subagents(agent, rules->path, warnings, err);
}

void agent_spec_warn_provider(const json_t *agent, const char *path, json_t *warnings)
{
	struct schema_path sandbox_at = schema_at_key(path, "sandbox");
	struct schema_path at = schema_at_key(sandbox_at.text, "provider");
	const json_t *sandbox = json_object_get(agent, "sandbox");
	const char *provider = json_string_value(json_object_get(sandbox, "provider"));

	if (provider && !agent_provider_is_here(provider))
		json_array_append_new(
			warnings,
			json_sprintf("%s: this host has no machines of %s; the first tool call "
				     "fails with ProviderUnavailable",
				     at.text, provider));
}
