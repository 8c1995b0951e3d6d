/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_priv.h - where a list goes on: the Link header of RFC 8288.
 *
 *	</v2/acme/app/tags/list?last=b&n=2>; rel="next"
 */
#pragma once

#include "layers/base/buf.h"

/* The target of the first link with this relation, as it was written; "" for none. */
struct str link_find(struct str field, struct str relation);
