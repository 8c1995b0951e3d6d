/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h - the digests that an index, a manifest or a config names.
 *
 * It is for collection, which has to follow ten thousand documents in a second
 * and must not miss one: whatever looks like a digest is one, wherever it
 * stands. So children of an index, a manifest's subject, layers and diff ids
 * are all found, and of what another version of the format adds, nothing is lost.
 */
#pragma once

#include "layers/reach.h"

/* A reach_names_fn. A text that is no JSON names what stands in it. */
int document_names(struct str text, reach_add_fn *add, void *ctx, struct err *err) MUST_CHECK;
