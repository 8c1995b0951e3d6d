/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - what a user writes to name an image.
 *
 * 	[HOST[:PORT]/]PATH[:TAG][@DIGEST]     a registry; "debian" is
 * 	                                      docker.io/library/debian:latest
 * 	oci: oci-archive: docker-archive:     a place on this host (transport.h)
 * 	scratch                               nothing
 *
 * Grammar: grammar.h, and the familiar names of Docker. A first part with a dot,
 * a colon or "localhost" is a host.
 *
 * Invariant: a parsed reference is well formed; its texts lie in `storage`, so
 * it is handed around by pointer and never copied.
 */
#pragma once

#include "layers/digest.h"
#include "registry/platform.h"

#include <stdbool.h>

#define REFERENCE_TEXT_MAX ((size_t)4096)
#define REFERENCE_REPOSITORY_MAX ((size_t)255) /* host and path; the most that clients agree on */

enum reference_kind {
	REFERENCE_REGISTRY,
	REFERENCE_LAYOUT,
	REFERENCE_OCI_ARCHIVE,
	REFERENCE_DOCKER_ARCHIVE,
	REFERENCE_SCRATCH,
};

struct reference {
	enum reference_kind kind;
	struct str host; /* "docker.io", "127.0.0.1:5000" */
	struct str path; /* "library/debian"; of a transport: the directory or file */
	struct str tag;  /* "" where none was given; of docker-archive: a canonical name */
	bool has_digest;
	struct digest digest;
	char storage[REFERENCE_TEXT_MAX];
};

int reference_parse(struct str text, struct reference *out, struct err *err) MUST_CHECK;

/* NAME[:TAG] of a registry, as images are called here; its canonical text. */
int reference_parse_name(struct str text, struct buf *out, struct err *err) MUST_CHECK;

/* The whole canonical text, host, tag and digest included. */
int reference_format(const struct reference *reference, struct buf *out, struct err *err)
	MUST_CHECK;
