/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - what a bake starts from: the base reference becomes a state.
 *
 * A tag is asked upstream only when no digest is held for it, or when told to.
 * A layout is read each time (one small file); its image is imported only when
 * the store does not hold it.
 */
#pragma once

#include "bake/asker.h"
#include "bake/bake.h"
#include "bake/state.h"

/* *out_cached: nothing was asked or fetched. Progress goes to the asker's callback. */
int base_resolve(const struct spec *spec, const struct bake_options *options,
		 const struct asker *asker, struct state *out, struct digest *out_digest,
		 bool *out_cached, struct err *err) MUST_CHECK;

/* ERR_INVALID for what names a file of this host. */
int base_check_remote(struct str text, struct err *err) MUST_CHECK;

/* What `hearth pull` asks for, too: an image into the store. */
struct base_request {
	struct str reference;
	struct str name;    /* to be tagged instead of the reference; may be "" */
	bool unnamed;       /* no name at all */
	bool name_as_there; /* use the names that the image has at its origin */
	bool stream;        /* the asker's is what the file `-` reads */
	bool bare;          /* blobs alone, for a copy or an export: no trees, and no name */
	bool all_platforms; /* of a bare pull the whole index */
	bool referrers;     /* of a bare pull also what is about the image */
	bool any_archive;   /* find out which kind of archive it is */
	struct platform platform;
	bool plain_http;
	const char *ca_file;      /* or NULL */
	uint64_t max_layer_bytes; /* inflated; 0 for UNPACK_BYTES_MAX */
	struct str user;          /* credentials, or empty */
	const struct secret *password;
	const struct places *places; /* or NULL */
};

json_t *base_request_format(struct store *store, const struct base_request *request);

/*
 * A pull's or push's progress as an event; false where there is nothing to
 * report. digest is storage for the event's.
 */
bool base_read_progress(const json_t *progress, struct digest *digest, struct bake_event *out);
