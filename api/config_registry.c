/* SPDX-License-Identifier: Apache-2.0 */
/* config_registry.c - `registry` and `mirror`: which registries, and how they are reached. */
#include "api/config_priv.h"

#include "layers/base/array.h"
#include "registry/reference.h"

#include <stdio.h>

#define CONFIG_PLACE_MAX REFERENCE_REPOSITORY_MAX

static const struct schema upstream_keys[] = {
	{"url", SCHEMA_STRING}, /* needed */
	{"tagTtlMs", SCHEMA_COUNT},
	{"maxBytes", SCHEMA_AMOUNT},
	{"listen", SCHEMA_STRING},
	{"ca", SCHEMA_STRING},
	{NULL},
};

/* HOST[:PORT][/PATH] behind the scheme: what stands before a repository's path. */
static int config_read_place(const char *url, struct str *out, bool *out_plain, struct err *err)
{
	auto_buf struct buf probe = BUF_INIT(CONFIG_PLACE_MAX);
	struct str rest = str_of(url);
	struct str host;
	struct reference reference;

	*out_plain = str_starts(rest, STR("http://"));
	if (!*out_plain && !str_starts(rest, STR("https://")))
		return err_set(err, ERR_INVALID, "expected http:// or https://, found %s", url);
	rest = str_skip(rest, *out_plain ? strlen("http://") : strlen("https://"));
	while (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	*out = rest;
	(void)str_cut(&rest, '/', &host);
	if (buf_addf(&probe, err, STR_FMT "/x", STR_ARG(*out)) < 0 ||
	    reference_parse(buf_str(&probe), &reference, err) < 0)
		return err_ctx(err, "%s", url);
	if (reference.kind != REFERENCE_REGISTRY || !str_equal(reference.host, host))
		return err_set(err, ERR_INVALID, "%s: expected a host with a dot or a port", url);
	return 0;
}

static int config_add_mirror(struct config *out, const char *host, const json_t *url,
			     struct err *err)
{
	struct config_mirror mirror = {.host = host};

	if (out->mirror_count == CONFIG_LIST_MAX)
		return err_set(err, ERR_INVALID, "expected at most %zu of all hosts",
			       CONFIG_LIST_MAX);
	if (!json_is_string(url))
		return err_set(err, ERR_INVALID, "expected a string, found %s",
			       json_type_name(json_typeof(url)));
	if (config_read_place(json_string_value(url), &mirror.place, &mirror.plain_http, err) < 0)
		return -1;
	out->mirrors = array_grow(out->mirrors, out->mirror_count, sizeof(*out->mirrors));
	out->mirrors[out->mirror_count++] = mirror;
	return 0;
}

static int config_read_mirrors(json_t *mirrors, struct config *out, struct err *err)
{
	const char *host;
	json_t *urls;
	const json_t *url;
	size_t i;

	json_object_foreach(mirrors, host, urls)
	{
		if (!json_is_array(urls))
			return err_set(err, ERR_INVALID,
				       "registry.mirrors.%s: expected an array of URLs, found %s",
				       host, json_type_name(json_typeof(urls)));
		json_array_foreach(urls, i, url)
		{
			if (config_add_mirror(out, host, url, err) < 0)
				return err_ctx(err, "registry.mirrors.%s[%zu]", host, i);
		}
	}
	return 0;
}

int config_read_registry(const json_t *document, struct config *out, struct err *err)
{
	const json_t *registry = json_object_get(document, "registry");

	if (config_texts(json_object_get(registry, "anonymous"), "registry.anonymous",
			 &out->anonymous, err) < 0 ||
	    config_texts(json_object_get(registry, "insecure"), "registry.insecure", &out->insecure,
			 err) < 0)
		return -1;
	return config_read_mirrors(json_object_get(registry, "mirrors"), out, err);
}

static int config_read_upstream(const char *host, json_t *value, struct config_upstream *out,
				struct err *err)
{
	char path[SCHEMA_PATH_MAX];
	const char *url = NULL;

	(void)snprintf(path, sizeof(path), "mirror.upstreams.%s", host);
	out->host = host;
	out->tag_ttl_ms = -1;
	if (config_check_member(value, upstream_keys, path, err) < 0 ||
	    config_text(value, path, "url", &url, err) < 0 ||
	    config_text(value, path, "listen", &out->listen, err) < 0 ||
	    config_text(value, path, "ca", &out->ca, err) < 0 ||
	    config_number(value, path, "tagTtlMs", CONFIG_MS_MAX, &out->tag_ttl_ms, err) < 0)
		return -1;
	if (config_check_listen(out->listen, err) < 0)
		return err_ctx(err, "%s", path);
	config_size(value, "maxBytes", &out->max_bytes);
	if (out->ca && out->ca[0] != '/')
		return err_set(err, ERR_INVALID, "%s.ca: expected an absolute path, found %s", path,
			       out->ca);
	if (!url)
		return err_set(err, ERR_INVALID, "%s: it needs a url", path);
	if (config_read_place(url, &out->place, &out->plain_http, err) < 0)
		return err_ctx(err, "%s.url", path);
	if (out->ca && out->plain_http)
		return err_set(err, ERR_INVALID, "%s.ca: it goes with an https:// url", path);
	return 0;
}

int config_read_upstreams(const json_t *document, struct config *out, struct err *err)
{
	const json_t *mirror = json_object_get(document, "mirror");
	json_t *upstreams = json_object_get(mirror, "upstreams");
	const char *host;
	json_t *value;

	if (config_room(upstreams, "mirror.upstreams", sizeof(*out->upstreams), &out->upstreams,
			err) < 0 ||
	    config_text(mirror, "mirror", "default", &out->default_upstream, err) < 0)
		return -1;
	json_object_foreach(upstreams, host, value)
	{
		if (config_read_upstream(host, value, &out->upstreams[out->upstream_count++], err) <
		    0)
			return -1;
	}
	if (out->default_upstream && !json_object_get(upstreams, out->default_upstream))
		return err_set(err, ERR_INVALID, "mirror.default: %s is none of mirror.upstreams",
			       out->default_upstream);
	return 0;
}
