/* SPDX-License-Identifier: Apache-2.0 */
/* listing_priv.h - one name of a listing, written as a walk meets it. */
#pragma once

#include "bake/source_priv.h"
#include "layers/base/buf.h"

/*
 * Append an entry of a source, whose path in the context or image is given; a
 * file is known, and its attributes are read. Owners are told where they count.
 */
int listing_add(struct buf *list, const char *source, const struct source_entry *entry, bool owners,
		struct err *err) MUST_CHECK;
