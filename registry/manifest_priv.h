/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_priv.h - the parts of a manifest's reading that closure.c and outline.c
 * share.
 *
 * These fail with ERR_INVALID, as for a user's input; manifest_refuse() turns
 * that into the error of a foreign document.
 */
#pragma once

#include "registry/manifest.h"

/* Parse a manifest or an index, and tell which; schema 1 is refused. The caller owns *out. */
int manifest_load(struct str text, json_t **out, bool *out_index, struct err *err) MUST_CHECK;

/*
 * path is the value's, for messages. An algorithm that nobody here knows is
 * ERR_UNSUPPORTED.
 */
int manifest_read_descriptor(const json_t *value, const char *path, struct descriptor *out,
			     struct err *err) MUST_CHECK;

/* Whether a layer of that media type is not distributed with its image. */
bool manifest_is_foreign(struct str media_type);

/* Whether it is the type of an image's config, which a missing one is, too. */
bool manifest_is_config(struct str media_type);

/* 1 and the platform of an index's entry, 0 for one that names none, -1. */
int manifest_entry_platform(const json_t *entry, struct platform *out, struct err *err) MUST_CHECK;

/* The innermost reason, as the error of a document and not of a user's input. */
int manifest_refuse(const char *what, const struct err *why, struct err *err);
