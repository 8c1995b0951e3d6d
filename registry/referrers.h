/* SPDX-License-Identifier: Apache-2.0 */
/*
 * referrers.h - the manifests of the store that are about an image, or about
 * one of them, by what its repositories say (repository.h).
 */
#pragma once

#include "layers/digest.h"
#include "layers/store.h"

#define REFERRERS_MAX 1000 /* of one image, with what is about them */

/*
 * In an order in which nothing comes before what it is about; of an index also
 * what is about its manifests. The caller frees *out. ERR_LIMIT.
 */
int referrers_find(struct store *store, const struct digest *image, struct digest **out,
		   size_t *out_count, struct err *err) MUST_CHECK;
