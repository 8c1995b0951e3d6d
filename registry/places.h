/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - where a registry's images are had, by the operator's word: hosts
 * that are spoken to in plain HTTP, and mirrors that are asked before the
 * registry itself, in their order.
 *
 * Invariant: a mirror's place followed by a repository's path is a reference.
 * Credentials are a mirror's own; a registry's are never shown to its mirrors.
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

/* NULL is nobody's word: false. */
bool places_are_insecure(const struct places *places, struct str host);

/* The text of what a mirror calls a reference of its host. */
int places_format(const struct place_mirror *mirror, const struct reference *reference,
		  struct buf *out, struct err *err) MUST_CHECK;
