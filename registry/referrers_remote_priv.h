/* SPDX-License-Identifier: Apache-2.0 */
/*
 * referrers_remote_priv.h - which manifests of a remote repository are about
 * another: signatures, bills of materials, attestations.
 *
 * A registry with the referrers API is asked by it. One without has an index
 * under a tag that is made of the subject's digest, which clients keep: whoever
 * pushes a manifest with a subject there adds it.
 *
 * Format: OCI distribution-spec 1.1, "Listing Referrers", "Referrers Tag Schema"
 * and "Pushing Manifests with Subject".
 */
#pragma once

#include "registry/outline.h"
#include "registry/remote_priv.h"

#define REFERRERS_PAGES_MAX 100 /* of one list */

/* Each one's digest; one that is listed twice is told twice. */
typedef int referrers_remote_fn(void *ctx, const struct digest *digest, struct err *err);
int referrers_remote_each(struct remote *remote, struct http *http, const struct digest *subject,
			  referrers_remote_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Note under the tag that this manifest, which was pushed there, is about its subject. */
int referrers_remote_note(struct remote *remote, struct http *http, const struct outline *outline,
			  struct str text, struct err *err) MUST_CHECK;
