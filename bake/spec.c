/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.c - the tables of all keys, and what a bake takes from them.
 *
 *	{"agent": AGENT} | AGENT | IMAGE
 *	AGENT = {slug, model, system, sandbox: {…, image: IMAGE}, subagents, …}
 *	IMAGE = {base, steps, …}
 */
#include "bake/spec.h"

#include "bake/cron.h"
#include "layers/base/schema.h"

#include <ctype.h>
#include <stdio.h>

#define SPEC_SLUG_MAX ((size_t)63)
#define SPEC_CPU_MIN 0.001 /* one thousandth is what limits count */
#define SPEC_CPU_MAX 4096.0
#define SPEC_MEMORY_MAX_MB ((int64_t)1 << 30) /* a PiB: what fits in bytes without care */

static const char *const compressions[] = {"zstd", "gzip", NULL};
static const char *const scopes[] = {"tree", "session", NULL};

static const struct schema egress_keys[] = {
	{"mode", SCHEMA_STRING},
	{"allow", SCHEMA_STRINGS},
	{"deny", SCHEMA_STRINGS},
	{NULL},
};

static const struct schema network_keys[] = {
	{"egress", SCHEMA_OBJECT, .members = egress_keys},
	{NULL},
};

static const struct schema resource_keys[] = {
	{"cpu", SCHEMA_NUMBER},
	{"memoryMb", SCHEMA_AMOUNT},
	{"pids", SCHEMA_AMOUNT},
	{"diskMb", SCHEMA_AMOUNT},
	{NULL},
};

static const struct schema cache_keys[] = {
	{"from", SCHEMA_STRINGS},
	{"to", SCHEMA_STRINGS},
	{NULL},
};

static const struct schema rebake_keys[] = {
	{"cron", SCHEMA_STRING},
	{"jitterMs", SCHEMA_COUNT},
	{NULL},
};

static const struct schema secret_keys[] = {
	{"id", SCHEMA_STRING},
	{"required", SCHEMA_BOOL},
	{NULL},
};

static const struct schema image_keys[] = {
	{"base", SCHEMA_STRING},
	{"steps", SCHEMA_STRINGS},
	{"platform", SCHEMA_STRING},
	{"context", SCHEMA_STRING},
	{"compression", SCHEMA_STRING, .choices = compressions},
	{"reproducible", SCHEMA_BOOL},
	{"network", SCHEMA_OBJECT, .members = network_keys},
	{"resources", SCHEMA_OBJECT, .members = resource_keys},
	{"timeoutMs", SCHEMA_AMOUNT},
	{"secrets", SCHEMA_OBJECTS, .members = secret_keys},
	{"push", SCHEMA_STRINGS},
	{"cache", SCHEMA_OBJECT, .members = cache_keys},
	{"rebake", SCHEMA_OBJECT, .members = rebake_keys},
	{NULL},
};

static const struct schema lifecycle_keys[] = {
	{"idleAfterMs", SCHEMA_COUNT},      {"onIdle", SCHEMA_STRING},
	{"snapshotEveryMs", SCHEMA_COUNT},  {"keepSnapshots", SCHEMA_COUNT},
	{"maxSnapshotAgeMs", SCHEMA_COUNT}, {NULL},
};

static const struct schema tool_keys[] = {
	{"preset", SCHEMA_STRING},
	{"allow", SCHEMA_STRINGS},
	{"deny", SCHEMA_STRINGS},
	{NULL},
};

static const struct schema sandbox_keys[] = {
	{"provider", SCHEMA_STRING},
	{"image", SCHEMA_OBJECT, .members = image_keys},
	{"resources", SCHEMA_OBJECT, .members = resource_keys},
	{"network", SCHEMA_OBJECT, .members = network_keys},
	{"lifecycle", SCHEMA_OBJECT, .members = lifecycle_keys},
	{"scope", SCHEMA_STRING, .choices = scopes},
	{"serializeTools", SCHEMA_BOOL},
	{"tools", SCHEMA_OBJECT, .members = tool_keys},
	{"runtime", SCHEMA_STRING},
	{NULL},
};

/* What an image asks for and a bake cannot do yet: refused, since ignoring it lies. */
static int spec_refuse_later(const json_t *image, const char *path, struct err *err)
{
	json_t *network = json_object_get(image, "network");
	json_t *egress = json_object_get(network, "egress");
	json_t *mode = json_object_get(egress, "mode");
	const struct {
		const char *key;
		bool asked;
	} later[] = {
		{"cache", json_object_size(json_object_get(image, "cache")) > 0},
		{"network.egress.mode other than open",
		 json_is_string(mode) && strcmp(json_string_value(mode), "open") != 0},
		{"network.egress.allow", json_array_size(json_object_get(egress, "allow")) > 0},
		{"network.egress.deny", json_array_size(json_object_get(egress, "deny")) > 0},
		{"resources.diskMb",
		 json_is_integer(json_object_get(json_object_get(image, "resources"), "diskMb"))},
	};

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (later[i].asked)
			return err_set(err, ERR_UNSUPPORTED, "%s%s%s: not supported yet", path,
				       *path ? "." : "", later[i].key);
	}
	return 0;
}

/* The strings of an array; they lie in the document. */
static int spec_read_list(const json_t *image, const char *path, const char *key, size_t max,
			  struct str **out, size_t *out_count, struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t i;

	if (json_get_array(image, path, key, &list, err) < 0)
		return -1;
	if (json_array_size(list) > max)
		return err_set(err, ERR_LIMIT, "%s%s%s: more than %zu", path, *path ? "." : "", key,
			       max);
	*out = calloc(json_array_size(list) + 1, sizeof(**out));
	if (!*out)
		abort();
	json_array_foreach(list, i, item)(*out)[i] = json_str(item);
	*out_count = json_array_size(list);
	return 0;
}

static int spec_read_resources(const json_t *image, const char *path, struct spec *out,
			       struct err *err)
{
	json_t *resources = json_object_get(image, "resources");
	int64_t memory = 0;
	int64_t pids = 0;
	const json_t *cpu = json_object_get(resources, "cpu");
	double cpus = json_number_value(cpu);

	if (json_get_int(resources, path, "memoryMb", &memory, err) < 0 ||
	    json_get_int(resources, path, "pids", &pids, err) < 0)
		return -1;
	if (memory > SPEC_MEMORY_MAX_MB)
		return err_set(err, ERR_INVALID, "%s%sresources.memoryMb: more than a pebibyte",
			       path, *path ? "." : "");
	if (cpu && !json_is_null(cpu) && !(cpus >= SPEC_CPU_MIN && cpus <= SPEC_CPU_MAX))
		return err_set(err, ERR_INVALID, "%s%sresources.cpu: expected %g to %g", path,
			       *path ? "." : "", SPEC_CPU_MIN, SPEC_CPU_MAX);
	out->resources.memory_mb = (uint64_t)memory;
	out->resources.pids = (uint64_t)pids;
	out->resources.cpu = cpus;
	return 0;
}

static int spec_read_secrets(const json_t *image, const char *path, struct spec *out,
			     struct err *err)
{
	json_t *list = NULL;
	const json_t *item;
	size_t i;

	if (json_get_array(image, path, "secrets", &list, err) < 0)
		return -1;
	out->secrets = calloc(json_array_size(list) + 1, sizeof(*out->secrets));
	if (!out->secrets)
		abort();
	json_array_foreach(list, i, item)
	{
		char at[64];
		struct spec_secret *secret = &out->secrets[i];

		(void)snprintf(at, sizeof(at), "%.32s%ssecrets[%zu]", path, *path ? "." : "", i);
		if (json_need_string(item, at, "id", &secret->id, err) < 0 ||
		    json_get_bool(item, at, "required", &secret->required, err) < 0)
			return -1;
	}
	out->secret_count = json_array_size(list);
	return 0;
}

static int spec_read_rebake(const json_t *image, const char *path, struct spec *out,
			    struct err *err)
{
	char at[64];
	json_t *rebake = NULL;
	struct cron cron;
	int found = json_get_object(image, path, "rebake", &rebake, err);

	if (found <= 0)
		return found;
	(void)snprintf(at, sizeof(at), "%.48s%srebake", path, *path ? "." : "");
	if (json_need_string(rebake, at, "cron", &out->rebake.cron, err) < 0 ||
	    json_get_int(rebake, at, "jitterMs", &out->rebake.jitter_ms, err) < 0)
		return -1;
	if (cron_parse(out->rebake.cron, &cron, err) < 0)
		return err_ctx(err, "%s.cron", at);
	if (out->rebake.jitter_ms > SPEC_JITTER_MAX_MS)
		return err_set(err, ERR_INVALID, "%s.jitterMs: expected at most a day", at);
	return 0;
}

static int spec_read_base(const json_t *image, const char *path, struct spec *out, struct err *err)
{
	struct reference reference;

	if (json_need_string(image, path, "base", &out->base, err) < 0)
		return -1;
	if (reference_parse(out->base, &reference, err) < 0)
		return err_ctx(err, "%s%sbase", path, *path ? "." : "");
	return 0;
}

static int spec_read_platform(const json_t *image, const char *path, struct spec *out,
			      struct err *err)
{
	struct str text;
	int found = json_get_string(image, path, "platform", &text, err);

	platform_host(&out->platform);
	if (found <= 0)
		return found;
	if (platform_parse(text, &out->platform, err) < 0)
		return err_ctx(err, "%s%splatform", path, *path ? "." : "");
	return 0;
}

static int spec_read_compression(const json_t *image, const char *path, struct spec *out,
				 struct err *err)
{
	struct str name;
	int found = json_get_string(image, path, "compression", &name, err);

	return found == 1 ? layer_codec_parse(name, &out->compression, err) : found;
}

static int spec_read_image(const json_t *image, const char *path, struct spec *out, struct err *err)
{
	out->timeout_ms = SPEC_TIMEOUT_DEFAULT_MS;
	out->source_date_epoch = SPEC_EPOCH_OF_BASE;
	if (spec_read_base(image, path, out, err) < 0 ||
	    spec_read_list(image, path, "steps", SPEC_STEPS_MAX, &out->steps, &out->step_count,
			   err) < 0 ||
	    spec_read_list(image, path, "push", SPEC_PUSH_MAX, &out->push, &out->push_count, err) <
		    0 ||
	    spec_read_platform(image, path, out, err) < 0 ||
	    spec_read_compression(image, path, out, err) < 0 ||
	    spec_read_resources(image, path, out, err) < 0 ||
	    spec_read_secrets(image, path, out, err) < 0 ||
	    spec_read_rebake(image, path, out, err) < 0 ||
	    json_get_string(image, path, "context", &out->context, err) < 0 ||
	    json_get_int(image, path, "timeoutMs", &out->timeout_ms, err) < 0 ||
	    json_get_bool(image, path, "reproducible", &out->reproducible, err) < 0)
		return -1;
	return spec_refuse_later(image, path, err);
}

/* [a-z0-9]+([._-][a-z0-9]+)* */
static bool spec_is_slug(struct str slug)
{
	bool separator = true;

	for (size_t i = 0; i < slug.len; i++) {
		unsigned char c = (unsigned char)slug.ptr[i];
		bool plain = isdigit(c) || (c >= 'a' && c <= 'z');

		if (!plain && (separator || (c != '.' && c != '_' && c != '-')))
			return false;
		separator = !plain;
	}
	return slug.len > 0 && slug.len <= SPEC_SLUG_MAX && !separator;
}

static void spec_warn(struct spec *out, const char *path, const char *key)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s%s%.60s: unknown key, kept and not used", path,
		       *path ? "." : "", key);
	json_array_append_new(out->warnings, json_from_str(str_of(text)));
}

static void spec_warn_unknown(json_t *object, const char *const *known, const char *path,
			      struct spec *out)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i])
			spec_warn(out, path, key);
	}
}

/* A machine's keys are no bake's; whoever wrote them may think otherwise. */
static void spec_warn_unused(json_t *sandbox, const char *path, struct spec *out)
{
	char text[256];
	size_t len = 0;
	const char *key;
	json_t *value;

	json_object_foreach(sandbox, key, value)
	{
		if (strcmp(key, "image") != 0 && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						len ? ", " : "", key);
	}
	if (len > 0)
		json_array_append_new(
			out->warnings,
			json_sprintf("%s: a bake uses image alone, not %s", path, text));
}

static int spec_check_subagents(const json_t *agent, const char *path, struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t i;

	if (json_get_array(agent, path, "subagents", &list, err) < 0)
		return -1;
	json_array_foreach(list, i, item)
	{
		if (!json_is_object(item))
			return err_set(err, ERR_INVALID,
				       "%s%ssubagents[%zu]: expected an object, "
				       "found %s",
				       path, *path ? "." : "", i,
				       json_type_name(json_typeof(item)));
	}
	return 0;
}

static int spec_read_agent(json_t *agent, const char *path, struct spec *out, struct err *err)
{
	static const char *const known[] = {"slug",    "model",     "system",
					    "sandbox", "subagents", NULL};
	char at[64];
	char image_at[64];
	struct str system;
	json_t *sandbox;
	json_t *image;

	if (json_need_string(agent, path, "slug", &out->slug, err) < 0 ||
	    json_get_string(agent, path, "system", &system, err) < 0 ||
	    json_need_object(agent, path, "sandbox", &sandbox, err) < 0 ||
	    spec_check_subagents(agent, path, err) < 0)
		return -1;
	if (!spec_is_slug(out->slug))
		return err_set(err, ERR_INVALID,
			       "%s%sslug: expected lower-case letters and digits, with single . _ "
			       "or - between them, at most %zu",
			       path, *path ? "." : "", SPEC_SLUG_MAX);
	(void)snprintf(at, sizeof(at), "%s%ssandbox", path, *path ? "." : "");
	(void)snprintf(image_at, sizeof(image_at), "%.50s.image", at);
	if (schema_check(sandbox, sandbox_keys, at, err) < 0 ||
	    json_need_object(sandbox, at, "image", &image, err) < 0)
		return -1;
	spec_warn_unknown(agent, known, path, out);
	spec_warn_unused(sandbox, at, out);
	return spec_read_image(image, image_at, out, err);
}

static int spec_read(struct spec *out, struct err *err)
{
	static const char *const known[] = {"agent", NULL};
	json_t *document = out->document;
	json_t *agent;

	if (!json_is_object(document))
		return err_set(err, ERR_INVALID, "expected an object, found %s",
			       json_type_name(json_typeof(document)));
	if (json_object_get(document, "agent")) {
		if (json_need_object(document, "", "agent", &agent, err) < 0)
			return -1;
		spec_warn_unknown(document, known, "", out);
		return spec_read_agent(agent, "agent", out, err);
	}
	if (json_object_get(document, "sandbox") || json_object_get(document, "slug"))
		return spec_read_agent(document, "", out, err);
	if (json_object_get(document, "image"))
		return err_set(err, ERR_INVALID,
			       "image: give the agent around the sandbox, or just "
			       "the image's own object");
	if (schema_check(document, image_keys, "", err) < 0)
		return -1;
	return spec_read_image(document, "", out, err);
}

int spec_parse(struct str text, struct spec *out, struct err *err)
{
	auto_spec struct spec spec = {
		.slug = STR(""), .context = STR(""), .rebake = {.cron = STR("")}};

	if (json_parse(text, SPEC_MAX, &spec.document, err) < 0)
		return -1;
	spec.warnings = json_array();
	if (spec_read(&spec, err) < 0)
		return -1;
	*out = spec;
	spec = (struct spec){0};
	return 0;
}

void spec_done(struct spec *spec)
{
	json_decref(spec->document);
	json_decref(spec->warnings);
	free(spec->steps);
	free(spec->secrets);
	free(spec->push);
	*spec = (struct spec){0};
}
