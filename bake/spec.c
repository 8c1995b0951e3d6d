/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.c - the tables of an image's keys, and what a bake takes from them.
 *
 *	{"agent": AGENT} | AGENT | IMAGE
 *	AGENT = {slug, sandbox: {…, image: IMAGE}, …}      (agent_spec.c)
 *	IMAGE = {base, steps, …}
 */
#include "bake/spec.h"

#include "bake/agent_spec_priv.h"
#include "bake/cron.h"
#include "bake/spec_priv.h"

#include <stdio.h>

#define SPEC_CPU_MIN 0.001 /* one thousandth is what limits count */
#define SPEC_CPU_MAX 4096.0
#define SPEC_SIZE_MAX_MB ((int64_t)1 << 30) /* a PiB, which cannot overflow as bytes */
#define SPEC_PIDS_MAX 4194304               /* the kernel's own ceiling */
#define SPEC_EGRESS_MAX 1000                /* names in a list */
#define SPEC_SECRETS_MAX 1000

static const char *const compressions[] = {"zstd", "gzip", NULL};
static const char *const egress_modes[] = {"open", "allow", "deny", NULL};

static const struct schema egress_keys[] = {
	{"mode", SCHEMA_STRING, .choices = egress_modes},
	{"allow", SCHEMA_STRINGS, .most = SPEC_EGRESS_MAX},
	{"deny", SCHEMA_STRINGS, .most = SPEC_EGRESS_MAX},
	{NULL},
};

const struct schema spec_network_keys[] = {
	{"egress", SCHEMA_OBJECT, .members = egress_keys},
	{NULL},
};

const struct schema spec_resource_keys[] = {
	{"cpu", SCHEMA_NUMBER, .least = SPEC_CPU_MIN, .most = SPEC_CPU_MAX},
	{"memoryMb", SCHEMA_AMOUNT, .most = SPEC_SIZE_MAX_MB},
	{"pids", SCHEMA_AMOUNT, .most = SPEC_PIDS_MAX},
	{"diskMb", SCHEMA_AMOUNT, .most = SPEC_SIZE_MAX_MB},
	{NULL},
};

static const struct schema cache_keys[] = {
	{"from", SCHEMA_STRINGS},
	{"to", SCHEMA_STRINGS},
	{NULL},
};

static const struct schema rebake_keys[] = {
	{"cron", SCHEMA_STRING},
	{"jitterMs", SCHEMA_COUNT, .most = SPEC_JITTER_MAX_MS},
	{NULL},
};

static const struct schema secret_keys[] = {
	{"id", SCHEMA_STRING},
	{"required", SCHEMA_BOOL},
	{NULL},
};

const struct schema spec_image_keys[] = {
	{"base", SCHEMA_STRING},
	{"steps", SCHEMA_STRINGS, .most = SPEC_STEPS_MAX},
	{"platform", SCHEMA_STRING},
	{"context", SCHEMA_STRING},
	{"compression", SCHEMA_STRING, .choices = compressions},
	{"reproducible", SCHEMA_BOOL},
	{"network", SCHEMA_OBJECT, .members = spec_network_keys},
	{"resources", SCHEMA_OBJECT, .members = spec_resource_keys},
	{"timeoutMs", SCHEMA_AMOUNT},
	{"secrets", SCHEMA_OBJECTS, .members = secret_keys, .most = SPEC_SECRETS_MAX},
	{"push", SCHEMA_STRINGS, .most = SPEC_PUSH_MAX},
	{"cache", SCHEMA_OBJECT, .members = cache_keys},
	{"rebake", SCHEMA_OBJECT, .members = rebake_keys},
	{NULL},
};

/* Refuse what a bake cannot do yet: to ignore it would be a lie. */
static int spec_refuse_later(const json_t *image, const char *path, struct err *err)
{
	json_t *network = json_object_get(image, "network");
	json_t *egress = json_object_get(network, "egress");
	json_t *mode = json_object_get(egress, "mode");
	const char *none = "RUN --network=none keeps a step from the network";
	const struct {
		const char *key;
		const char *instead;
		bool asked;
	} later[] = {
		{"cache", "steps are cached in the data directory alone",
		 json_object_size(json_object_get(image, "cache")) > 0},
		{"network.egress.mode other than open", none,
		 json_is_string(mode) && strcmp(json_string_value(mode), "open") != 0},
		{"network.egress.allow", none,
		 json_array_size(json_object_get(egress, "allow")) > 0},
		{"network.egress.deny", none, json_array_size(json_object_get(egress, "deny")) > 0},
	};

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (later[i].asked)
			return err_set(err, ERR_UNSUPPORTED,
				       "%s%s%s: not supported yet, leave it out; %s", path,
				       *path ? "." : "", later[i].key, later[i].instead);
	}
	return 0;
}

/* The strings of an array; they lie in the document. */
static int spec_read_list(const json_t *image, const char *path, const char *key, struct str **out,
			  size_t *out_count, struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t i;

	if (json_get_array(image, path, key, &list, err) < 0)
		return -1;
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
	struct schema_path at = schema_at_key(path, "resources");
	json_t *resources = json_object_get(image, "resources");
	int64_t memory = 0;
	int64_t pids = 0;
	int64_t disk = 0;

	if (json_get_int(resources, at.text, "memoryMb", &memory, err) < 0 ||
	    json_get_int(resources, at.text, "pids", &pids, err) < 0 ||
	    json_get_int(resources, at.text, "diskMb", &disk, err) < 0)
		return -1;
	out->resources.memory_mb = (uint64_t)memory;
	out->resources.pids = (uint64_t)pids;
	out->resources.disk_mb = (uint64_t)disk;
	out->resources.cpu = json_number_value(json_object_get(resources, "cpu"));
	return 0;
}

static int spec_read_secrets(const json_t *image, const char *path, struct spec *out,
			     struct err *err)
{
	struct schema_path list_at = schema_at_key(path, "secrets");
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
		struct schema_path at = schema_at_item(list_at.text, i);
		struct spec_secret *secret = &out->secrets[i];

		if (json_need_string(item, at.text, "id", &secret->id, err) < 0 ||
		    json_get_bool(item, at.text, "required", &secret->required, err) < 0)
			return -1;
	}
	out->secret_count = json_array_size(list);
	return 0;
}

static int spec_read_rebake(const json_t *image, const char *path, struct spec *out,
			    struct err *err)
{
	struct schema_path at = schema_at_key(path, "rebake");
	json_t *rebake = NULL;
	struct cron cron;
	int found = json_get_object(image, path, "rebake", &rebake, err);

	if (found <= 0)
		return found;
	if (json_need_string(rebake, at.text, "cron", &out->rebake.cron, err) < 0 ||
	    json_get_int(rebake, at.text, "jitterMs", &out->rebake.jitter_ms, err) < 0)
		return -1;
	if (cron_parse(out->rebake.cron, &cron, err) < 0)
		return err_at(err, at.text, "cron");
	return 0;
}

static int spec_read_base(const json_t *image, const char *path, struct spec *out, struct err *err)
{
	struct reference reference;

	if (json_need_string(image, path, "base", &out->base, err) < 0)
		return -1;
	if (reference_parse(out->base, &reference, err) < 0)
		return err_at(err, path, "base");
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
		return err_at(err, path, "platform");
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
	    spec_read_list(image, path, "steps", &out->steps, &out->step_count, err) < 0 ||
	    spec_read_list(image, path, "push", &out->push, &out->push_count, err) < 0 ||
	    spec_read_platform(image, path, out, err) < 0 ||
	    spec_read_compression(image, path, out, err) < 0 ||
	    spec_read_resources(image, path, out, err) < 0 ||
	    spec_read_secrets(image, path, out, err) < 0 ||
	    spec_read_rebake(image, path, out, err) < 0 ||
	    json_get_string(image, path, "context", &out->context, err) < 0 ||
	    json_get_int(image, path, "timeoutMs", &out->timeout_ms, err) < 0 ||
	    json_get_bool(image, path, "reproducible", &out->reproducible, err) < 0)
		return -1;
	return 0;
}

int spec_check_image(const json_t *image, const char *path, struct err *err)
{
	auto_spec struct spec ignored = {0};

	return spec_read_image(image, path, &ignored, err);
}

/*
 * Warn of keys that are for an agent's machine and not for the bake, since
 * their author may expect otherwise.
 */
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

static int spec_read_agent(json_t *agent, const char *path, struct spec *out, struct err *err)
{
	const struct agent_spec_rules rules = {.path = path, .host_files = true};
	struct schema_path at = schema_at_key(path, "sandbox");
	struct schema_path image_at = schema_at_key(at.text, "image");
	json_t *sandbox;
	json_t *image;

	if (agent_spec_check(agent, &rules, out->warnings, err) < 0 ||
	    json_need_string(agent, path, "slug", &out->slug, err) < 0 ||
	    json_need_object(agent, path, "sandbox", &sandbox, err) < 0 ||
	    json_need_object(sandbox, at.text, "image", &image, err) < 0)
		return -1;
	spec_warn_unused(sandbox, at.text, out);
	if (spec_read_image(image, image_at.text, out, err) < 0)
		return -1;
	return spec_refuse_later(image, image_at.text, err);
}

static int spec_read(struct spec *out, struct err *err)
{
	json_t *document = out->document;
	struct agent_spec_found agent;

	if (!json_is_object(document))
		return err_wrong(err, "an object", "expected an object, found %s",
				 json_type_name(json_typeof(document)));
	if (json_object_get(document, "agent") || json_object_get(document, "sandbox") ||
	    json_object_get(document, "slug")) {
		if (agent_spec_find(document, out->warnings, &agent, err) < 0)
			return -1;
		return spec_read_agent(agent.agent, agent.path, out, err);
	}
	if (json_object_get(document, "image"))
		return err_set(err, ERR_INVALID,
			       "image: give the agent around the sandbox, or just "
			       "the image's own object");
	if (schema_check(document, spec_image_keys, "", err) < 0 ||
	    spec_read_image(document, "", out, err) < 0)
		return -1;
	return spec_refuse_later(document, "", err);
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
