/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_names.h - what the store calls the parts of an image.
 *
 * A manifest may name its config and its layers by sha512, and the store finds
 * them so; but records, leases and trees know a thing by its sha256 alone. Who
 * builds on an image, instead of handing it on as it is, takes these names.
 */
#pragma once

#include "layers/store.h"
#include "registry/manifest.h"

/*
 * Rename config and layers; the document stays as it is. Nothing is looked up
 * where all are named by sha256. ERR_NOT_FOUND for what is not here.
 */
int local_names_take(struct store *store, struct manifest *manifest, struct err *err) MUST_CHECK;
