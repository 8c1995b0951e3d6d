/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h - which known name somebody probably meant.
 *
 * Distance counts letters put in, left out, changed or swapped; case does not
 * count. A name is near when at most a third of the wanted one's letters differ;
 * one letter always may.
 */
#pragma once

#include "layers/base/buf.h"

#define NEAREST_MAX ((size_t)64) /* longer names are never near */

/* The best of what was offered so far; name is "" while nothing is near. */
struct nearest {
	struct str wanted;
	size_t distance;
	char name[NEAREST_MAX + 1];
};

void nearest_init(struct nearest *nearest, struct str wanted);
void nearest_offer(struct nearest *nearest, struct str candidate);

/*
 * Offer what is in a table, and write "; did you mean NAME?" or "" to text,
 * ready to end a message. Returns text.
 */
#define NEAREST_HINT_MAX (NEAREST_MAX + sizeof("; did you mean ?"))
const char *nearest_hint(struct str wanted, const char *const *names, size_t count,
			 char text[static NEAREST_HINT_MAX]);
