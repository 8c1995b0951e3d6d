/* SPDX-License-Identifier: Apache-2.0 */
/*
 * referrers.h - the manifests of the store that are about an image, or about
 * one of them, by what its repositories say (repository.h); and the tag that
 * stands in for the referrers API.
 *
 * Format: OCI distribution-spec 1.1, "Referrers Tag Schema".
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

#define REFERRERS_MAX 1000 /* of one image, with what is about them */
#define REFERRERS_TAG_MAX ((size_t)32 + 1 + 64 + 1)

/*
 * In an order in which nothing comes before what it is about; of an index also
 * what is about its manifests. The caller frees *out. ERR_LIMIT.
 */
int referrers_find(struct store *store, const struct digest *image, struct digest **out,
		   size_t *out_count, struct err *err) MUST_CHECK;

/* "sha256-e3b0...": at most 32 letters of the algorithm and 64 of the rest. */
const char *referrers_tag(const struct digest *subject, char out[static REFERRERS_TAG_MAX]);
