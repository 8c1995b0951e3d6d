/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - what the operator says once, for every command and the daemon: a
 * JSON file. Options and the environment go before it.
 *
 *	{"data": DIR, "listen": "HOST:PORT", "origins": [URL],
 *	 "tls": {"cert": FILE, "key": FILE},
 *	 "preview": {"host": NAME}, "runtime": NAME, "production": BOOL,
 *	 "bakes": {"parallel": N, "timeoutMs": MS},
 *	 "gc": {"keepVersions": N, "unusedMs": MS, "maxBytes": N, "minFreeBytes": N},
 *	 "registry": {"anonymous": [GLOB], "insecure": [HOST], "mirrors": {HOST: [URL]}},
 *	 "mirror": {"upstreams": {HOST: {"url": URL, "tagTtlMs": MS, "maxBytes": N,
 *	                                 "listen": "HOST:PORT", "ca": FILE}},
 *	            "default": HOST},
 *	 "egress": {"hosts": {NAME: "ADDR[:PORT]"}},
 *	 "secrets": {ID: {"src": FILE} | {"env": NAME}},
 *	 "events": {"keepMs": MS, "keep": N}}
 *
 * An unknown key is ERR_INVALID that names its path and the nearest known one;
 * what a value must be is said the same way. All keys may be left out.
 *
 * Ownership: a config owns its document, and every text lies in it. CONFIG_INIT
 * is the configuration of a host without a file.
 */
#pragma once

#include "bake/gc.h"
#include "layers/base/json.h"
#include "sandbox/network.h"

#define CONFIG_MAX ((size_t)1024 * 1024)
#define CONFIG_LIST_MAX ((size_t)256) /* of anything that is a list, or has names */

struct config_texts {
	const char **at; /* owned; what it points to is not */
	size_t count;
};

/* Where images of a registry are looked for first, in the file's order. */
struct config_mirror {
	const char *host; /* "docker.io" */
	struct str place; /* "127.0.0.1:5000/cache": without scheme, and without a / at its end */
	bool plain_http;
};

/* What the daemon's own mirror stands before. */
struct config_upstream {
	const char *host;
	struct str place; /* of its url, as a mirror's */
	bool plain_http;
	int64_t tag_ttl_ms; /* -1 where it is not said */
	uint64_t max_bytes; /* 0 where it is not said */
	const char *listen; /* an address of its own, by which it need not be named */
	const char *ca; /* an absolute path: whose certificates it may have, beside the system's */
};

/* One that a daemon's bakes may ask for: of file and env one is set. */
struct config_secret {
	const char *id;
	const char *file;
	const char *env;
};

struct config {
	json_t *document; /* owned */
	const char *data; /* an absolute path; NULL where it is not said, here and below */
	const char *listen;
	const char *tls_cert; /* both or none */
	const char *tls_key;
	const char *preview_host;
	const char *runtime;
	bool production;
	int64_t bakes_parallel;
	int64_t bakes_timeout_ms;    /* of a bake, all of its steps */
	struct config_texts origins; /* of pages that may ask (cors.h) */
	struct gc_policy gc;         /* the four limits that the file may give, else none */
	struct config_texts anonymous;
	struct config_texts insecure;
	struct config_mirror *mirrors; /* owned */
	size_t mirror_count;
	struct config_upstream *upstreams; /* owned */
	size_t upstream_count;
	const char *default_upstream; /* one of these hosts */
	struct network_host *hosts;   /* owned */
	size_t host_count;
	struct config_secret *secrets; /* owned */
	size_t secret_count;
	int64_t events_keep_ms;
	int64_t events_keep;
};

#define CONFIG_INIT ((struct config){.gc = GC_POLICY_INIT})

int config_parse(struct str text, struct config *out, struct err *err) MUST_CHECK;

/* Read a file. ERR_NOT_FOUND where there is none. */
int config_read(const char *path, const struct cancel *cancel, struct config *out, struct err *err)
	MUST_CHECK;
void config_done(struct config *config);

/* Whether anybody may pull from it: one of `registry.anonymous`. */
bool config_is_open(const struct config *config, struct str repository);

/* Whether the operator wants plain HTTP spoken to this host. */
bool config_is_insecure(const struct config *config, struct str host);

static inline void auto_config_release(struct config *slot)
{
	config_done(slot);
}
#define auto_config AUTO(config)
