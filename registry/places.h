/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - the operator's word on where images come from: hosts that are
 * spoken to in plain HTTP, and mirrors that are asked, in their order, before a
 * registry itself.
 *
 * Invariant: a mirror's place followed by a repository's path is a reference.
 * Credentials are a mirror's own; a registry's are never shown to its mirrors.
 * Each request to a mirror names the registry that it stands in for (ns=HOST).
 */
#pragma once

#include "layers/base/secret.h"
#include "registry/reference.h"

struct place_mirror {
	struct str host;  /* whose images: "docker.io" */
	struct str place; /* "10.0.0.1:5000", "mirror.example/hub" */
	bool plain_http;
	struct str user; /* credentials, or empty */
	const struct secret *password;
};

struct places {
	const struct place_mirror *mirrors;
	size_t mirror_count;
	const struct str *insecure;
	size_t insecure_count;
};

/* Whether plain HTTP is spoken to a host. places may be NULL. */
bool places_are_insecure(const struct places *places, struct str host);

/* The text of a reference of the mirror's host as the mirror has it. */
int places_format(const struct place_mirror *mirror, const struct reference *reference,
		  struct buf *out, struct err *err) MUST_CHECK;
