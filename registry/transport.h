/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h - where an image is kept outside of a registry: a prefix, a place
 * behind it, and which of the images there.
 *
 * 	oci:DIR[:TAG]              an OCI layout
 * 	oci-archive:FILE[:TAG]     a tar of one
 * 	docker-archive:FILE[:REF]  what `docker save` writes
 *
 * A TAG follows the last colon that no slash follows; a REF, which may hold
 * colons itself, the first. The FILE `-` is a stream. A TAG is spelt as grammar.h
 * says; a REF is a registry's reference (reference.h).
 */
#pragma once

#include "registry/reference.h"

struct transport {
	enum reference_kind kind;
	struct str prefix;
};

/* The transport whose prefix the text has, or NULL. */
const struct transport *transport_find(struct str text);

/* Of a kind; NULL for registries and scratch. */
const struct transport *transport_of(enum reference_kind kind);

/*
 * The place and the name in it, as views into the text, which has the
 * transport's prefix; name.ptr is NULL where there is none. ERR_INVALID where
 * the place is missing or the tag is malformed.
 */
int transport_split(const struct transport *transport, struct str text, struct str *out_place,
		    struct str *out_name, struct err *err) MUST_CHECK;

/* ERR_UNSUPPORTED for places that other tools know and hearth does not. */
int transport_check_known(struct str text, struct err *err) MUST_CHECK;

static inline bool transport_is_archive(enum reference_kind kind)
{
	return kind == REFERENCE_OCI_ARCHIVE || kind == REFERENCE_DOCKER_ARCHIVE;
}
