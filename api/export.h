/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - an image of the store as a layout or an archive, and how that is
 * shown.
 */
#pragma once

#include "api/cli.h"
#include "api/progress.h"
#include "layers/base/json.h"

struct export_spec {
	const char *to;      /* oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:REF] */
	struct digest image; /* of a manifest or, for the first two, an index */
	const json_t *names; /* what it is called here: canonical; may be empty */
};

/*
 * Check a destination before long work. The FILE `-` is standard output, if
 * that is free. ERR_INVALID.
 */
int export_check(const char *to, bool stdout_is_free, struct err *err) MUST_CHECK;

/* Whether the destination is standard output. */
bool export_is_stream(const char *to);

/* Whole and durable when it returns 0; what was there stays otherwise. */
int export_image(const struct cli *cli, struct store *store, struct progress *progress,
		 const struct export_spec *spec, struct err *err) MUST_CHECK;
