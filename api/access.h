/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - how this command reaches a registry: the options and credentials. */
#pragma once

#include "api/cli.h"
#include "registry/credentials.h"
#include "registry/reference.h"

#define ACCESS_OPTIONS                                                                         \
	{"plain-http", NULL, "speak HTTP to the registry; loopback needs no asking", false},   \
		{"ca-file", "FILE", "trust these certificates for the registry, too", false},  \
	{                                                                                      \
		"max-layer-bytes", "N", "refuse a layer that inflates to more (64 GiB)", false \
	}

/*
 * Credentials for the registry that a reference (text) names, from Docker's
 * config.json; empty where there are none or the reference is no registry's.
 */
int access_for(struct str text, struct credentials *out, struct err *err) MUST_CHECK;

/* --max-layer-bytes; 0 for the default. */
int access_layer_limit(const struct cli *cli, uint64_t *out, struct err *err) MUST_CHECK;
