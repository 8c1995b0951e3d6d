/* SPDX-License-Identifier: Apache-2.0 */
#include "api/config_priv.h"

#include "api/cors.h"
#include "api/input.h"
#include "api/scopes.h"
#include "bake/queue.h"

#include <stdio.h>

static const struct schema tls_keys[] = {
	{"cert", SCHEMA_STRING},
	{"key", SCHEMA_STRING},
	{NULL},
};

static const struct schema preview_keys[] = {
	{"host", SCHEMA_STRING},
	{NULL},
};

static const struct schema bakes_keys[] = {
	{"parallel", SCHEMA_AMOUNT},
	{"timeoutMs", SCHEMA_AMOUNT},
	{NULL},
};

static const struct schema gc_keys[] = {
	{"keepVersions", SCHEMA_COUNT},
	{"unusedMs", SCHEMA_COUNT},
	{"maxBytes", SCHEMA_AMOUNT},
	{"minFreeBytes", SCHEMA_COUNT},
	{NULL},
};

static const struct schema registry_keys[] = {
	{"anonymous", SCHEMA_STRINGS},
	{"insecure", SCHEMA_STRINGS},
	{"mirrors", SCHEMA_OBJECT},
	{NULL},
};

static const struct schema mirror_keys[] = {
	{"upstreams", SCHEMA_OBJECT},
	{"default", SCHEMA_STRING},
	{NULL},
};

static const struct schema egress_keys[] = {
	{"hosts", SCHEMA_OBJECT},
	{NULL},
};

static const struct schema secret_keys[] = {
	{"src", SCHEMA_STRING},
	{"env", SCHEMA_STRING},
	{NULL},
};

static const struct schema events_keys[] = {
	{"keepMs", SCHEMA_AMOUNT},
	{"keep", SCHEMA_AMOUNT},
	{NULL},
};

static const struct schema config_keys[] = {
	{"data", SCHEMA_STRING},
	{"listen", SCHEMA_STRING},
	{"origins", SCHEMA_STRINGS},
	{"tls", SCHEMA_OBJECT, .members = tls_keys},
	{"preview", SCHEMA_OBJECT, .members = preview_keys},
	{"bakes", SCHEMA_OBJECT, .members = bakes_keys},
	{"gc", SCHEMA_OBJECT, .members = gc_keys},
	{"registry", SCHEMA_OBJECT, .members = registry_keys},
	{"mirror", SCHEMA_OBJECT, .members = mirror_keys},
	{"egress", SCHEMA_OBJECT, .members = egress_keys},
	{"secrets", SCHEMA_OBJECT},
	{"runtime", SCHEMA_STRING},
	{"production", SCHEMA_BOOL},
	{"events", SCHEMA_OBJECT, .members = events_keys},
	{NULL},
};

static int config_read_top(const json_t *document, struct config *out, struct err *err)
{
	if (config_text(document, "", "data", &out->data, err) < 0 ||
	    config_text(document, "", "listen", &out->listen, err) < 0 ||
	    config_text(document, "", "runtime", &out->runtime, err) < 0)
		return -1;
	out->production = json_is_true(json_object_get(document, "production"));
	if (out->data && out->data[0] != '/')
		return err_set(err, ERR_INVALID, "data: expected an absolute path, found %s",
			       out->data);
	return 0;
}

static int config_read_origins(const json_t *document, struct config *out, struct err *err)
{
	if (config_texts(json_object_get(document, "origins"), "origins", &out->origins, err) < 0)
		return -1;
	for (size_t i = 0; i < out->origins.count; i++) {
		if (!cors_is_origin(str_of(out->origins.at[i])))
			return err_set(err, ERR_INVALID,
				       "origins[%zu]: expected https://HOST[:PORT] in lower case, "
				       "found %s",
				       i, out->origins.at[i]);
	}
	return 0;
}

static int config_read_door(const json_t *document, struct config *out, struct err *err)
{
	const json_t *tls = json_object_get(document, "tls");

	if (config_read_origins(document, out, err) < 0 ||
	    config_text(tls, "tls", "cert", &out->tls_cert, err) < 0 ||
	    config_text(tls, "tls", "key", &out->tls_key, err) < 0 ||
	    config_text(json_object_get(document, "preview"), "preview", "host", &out->preview_host,
			err) < 0)
		return -1;
	if (!out->tls_cert != !out->tls_key)
		return err_set(err, ERR_INVALID, "tls: cert and key go together");
	return config_check_listen(out->listen, err);
}

static int config_read_limits(const json_t *document, struct config *out, struct err *err)
{
	const json_t *bakes = json_object_get(document, "bakes");
	const json_t *gc = json_object_get(document, "gc");
	const json_t *events = json_object_get(document, "events");

	if (config_number(bakes, "bakes", "parallel", QUEUE_PARALLEL_MAX, &out->bakes_parallel,
			  err) < 0 ||
	    config_number(bakes, "bakes", "timeoutMs", CONFIG_MS_MAX, &out->bakes_timeout_ms, err) <
		    0 ||
	    config_number(gc, "gc", "keepVersions", INT32_MAX, &out->gc.keep, err) < 0 ||
	    config_number(gc, "gc", "unusedMs", CONFIG_MS_MAX, &out->gc.unused_ms, err) < 0 ||
	    config_number(events, "events", "keepMs", CONFIG_MS_MAX, &out->events_keep_ms, err) <
		    0 ||
	    config_number(events, "events", "keep", INT64_MAX, &out->events_keep, err) < 0)
		return -1;
	config_size(gc, "maxBytes", &out->gc.max_bytes);
	config_size(gc, "minFreeBytes", &out->gc.min_free_bytes);
	return 0;
}

static int config_read_host(const char *name, const json_t *value, struct network_host *out,
			    struct err *err)
{
	auto_buf struct buf text = BUF_INIT((size_t)2 * NETWORK_NAME_MAX);

	if (!json_is_string(value))
		return err_set(err, ERR_INVALID, "expected a string, found %s",
			       json_type_name(json_typeof(value)));
	if (buf_addf(&text, err, "%s=%s", name, json_string_value(value)) < 0)
		return -1;
	return network_host_parse(buf_str(&text), out, err);
}

static int config_read_hosts(const json_t *document, struct config *out, struct err *err)
{
	json_t *hosts = json_object_get(json_object_get(document, "egress"), "hosts");
	const char *name;
	json_t *value;

	if (config_room(hosts, "egress.hosts", sizeof(*out->hosts), &out->hosts, err) < 0)
		return -1;
	json_object_foreach(hosts, name, value)
	{
		if (config_read_host(name, value, &out->hosts[out->host_count++], err) < 0)
			return err_ctx(err, "egress.hosts.%s", name);
	}
	return 0;
}

static int config_read_secret(const char *id, json_t *value, struct config_secret *out,
			      struct err *err)
{
	char path[SCHEMA_PATH_MAX];

	(void)snprintf(path, sizeof(path), "secrets.%s", id);
	out->id = id;
	if (config_check_member(value, secret_keys, path, err) < 0 ||
	    config_text(value, path, "src", &out->file, err) < 0 ||
	    config_text(value, path, "env", &out->env, err) < 0)
		return -1;
	if (!out->file == !out->env)
		return err_set(err, ERR_INVALID, "%s: expected src or env, and one of them", path);
	return 0;
}

static int config_read_secrets(const json_t *document, struct config *out, struct err *err)
{
	json_t *secrets = json_object_get(document, "secrets");
	const char *id;
	json_t *value;

	if (config_room(secrets, "secrets", sizeof(*out->secrets), &out->secrets, err) < 0)
		return -1;
	json_object_foreach(secrets, id, value)
	{
		if (config_read_secret(id, value, &out->secrets[out->secret_count++], err) < 0)
			return -1;
	}
	return 0;
}

static int config_take(json_t *document, struct config *out, struct err *err)
{
	if (!json_is_object(document))
		return err_set(err, ERR_INVALID, "expected an object, found %s",
			       json_type_name(json_typeof(document)));
	if (schema_check(document, config_keys, "", err) < 0 ||
	    config_read_top(document, out, err) < 0 || config_read_door(document, out, err) < 0 ||
	    config_read_limits(document, out, err) < 0 ||
	    config_read_registry(document, out, err) < 0 ||
	    config_read_upstreams(document, out, err) < 0)
		return -1;
	if (config_read_hosts(document, out, err) < 0)
		return -1;
	return config_read_secrets(document, out, err);
}

int config_parse(struct str text, struct config *out, struct err *err)
{
	auto_config struct config config = CONFIG_INIT;

	if (json_parse(text, CONFIG_MAX, &config.document, err) < 0 ||
	    config_take(config.document, &config, err) < 0)
		return -1;
	*out = config;
	config = (struct config){0};
	return 0;
}

int config_read(const char *path, const struct cancel *cancel, struct config *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(CONFIG_MAX);

	if (input_read("configuration", path, cancel, &text, err) < 0)
		return -1;
	if (config_parse(buf_str(&text), out, err) < 0)
		return err_ctx(err, "configuration %s", path);
	return 0;
}

void config_done(struct config *config)
{
	free(config->origins.at);
	free(config->anonymous.at);
	free(config->insecure.at);
	free(config->mirrors);
	free(config->upstreams);
	free(config->hosts);
	free(config->secrets);
	json_decref(config->document);
	*config = (struct config){0};
}

bool config_is_open(const struct config *config, struct str repository)
{
	for (size_t i = 0; i < config->anonymous.count; i++) {
		if (scopes_match(str_of(config->anonymous.at[i]), repository))
			return true;
	}
	return false;
}

bool config_is_insecure(const struct config *config, struct str host)
{
	for (size_t i = 0; i < config->insecure.count; i++) {
		if (str_equal(host, str_of(config->insecure.at[i])))
			return true;
	}
	return false;
}
