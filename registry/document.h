/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - the digests that an index, a manifest or a config names.
 *
 * It is for collection, which follows ten thousand documents in a second and
 * must not miss a reference: whatever looks like a digest is one, wherever it
 * stands. So children of an index, a manifest's subject, layers and diff ids
 * are all found, and what a later version of the format adds is, too.
 */
#pragma once

#include "layers/reach.h"

/* A reach_names_fn. The text need not be JSON. */
int document_names(struct str text, reach_add_fn *add, void *ctx, struct err *err) MUST_CHECK;
