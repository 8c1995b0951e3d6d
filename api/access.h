/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - how this command reaches a registry: the options and credentials. */
#pragma once

#include "api/cli.h"
#include "bake/proxies.h"
#include "registry/credentials.h"
#include "registry/reference.h"

#define ACCESS_OPTIONS_REGISTRY                                                               \
	{"plain-http", NULL, "speak HTTP to the registry, as to loopback by default", false}, \
	{                                                                                     \
		"ca-file", "FILE", "trust these certificates for the registry, too", false    \
	}
#define ACCESS_OPTIONS                                                                 \
	ACCESS_OPTIONS_REGISTRY,                                                       \
	{                                                                              \
		"max-layer-bytes", "SIZE",                                             \
			"refuse a layer that inflates to more; 64Gi by default", false \
	}
#define ACCESS_OPTIONS_LOGIN                                                               \
	{"username", "NAME",                                                               \
	 "log in as NAME, with --password-stdin, and not by Docker's config.json", false}, \
	{                                                                                  \
		"password-stdin", NULL, "read the password from standard input", false     \
	}

/*
 * Credentials for the repository that a reference (text) names, from Docker's
 * config.json and its helpers, else from the file that podman login writes;
 * empty where there are none or the reference is no registry's.
 */
int access_for(struct str text, const struct cancel *cancel, struct credentials *out,
	       struct err *err) MUST_CHECK;

/* The same, where --username and --password-stdin go first. */
int access_login(const struct cli *cli, struct str text, struct credentials *out, struct err *err)
	MUST_CHECK;

/* What Docker's config.json tells steps of proxies. */
int access_proxies(struct proxies *out, struct err *err) MUST_CHECK;

/* --max-layer-bytes; 0 for the default. */
int access_layer_limit(const struct cli *cli, uint64_t *out, struct err *err) MUST_CHECK;
