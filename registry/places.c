/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/places.h"

bool places_are_insecure(const struct places *places, struct str host)
{
	for (size_t i = 0; places && i < places->insecure_count; i++) {
		if (str_equal(places->insecure[i], host))
			return true;
	}
	return false;
}

int places_format(const struct place_mirror *mirror, const struct reference *reference,
		  struct buf *out, struct err *err)
{
	const struct reference there = {
		.kind = REFERENCE_REGISTRY,
		.host = mirror->place,
		.path = reference->path,
		.tag = reference->tag,
		.has_digest = reference->has_digest,
		.digest = reference->digest,
	};

	return reference_format(&there, out, err);
}
