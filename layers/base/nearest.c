/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/nearest.h"

#include <ctype.h>
#include <stdio.h>

static size_t nearest_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool nearest_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Rows of the usual table: two above (for swaps), one above, this one. */
static size_t nearest_distance(struct str a, struct str b)
{
	size_t rows[3][NEAREST_MAX + 1];

	for (size_t j = 0; j <= b.len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		const size_t *higher = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t changed = nearest_same(a.ptr[i - 1], b.ptr[j - 1]) ? 0 : 1;

			row[j] = nearest_min(above[j] + 1, row[j - 1] + 1);
			row[j] = nearest_min(row[j], above[j - 1] + changed);
			if (i > 1 && j > 1 && nearest_same(a.ptr[i - 1], b.ptr[j - 2]) &&
			    nearest_same(a.ptr[i - 2], b.ptr[j - 1]))
				row[j] = nearest_min(row[j], higher[j - 2] + 1);
		}
	}
	return rows[a.len % 3][b.len];
}

void nearest_init(struct nearest *nearest, struct str wanted)
{
	*nearest = (struct nearest){.wanted = wanted, .distance = wanted.len / 3 + 1};
	if (wanted.len >= 3)
		return;
	nearest->distance = wanted.len > 0 ? 2 : 0;
}

void nearest_offer(struct nearest *nearest, struct str candidate)
{
	size_t distance;

	if (nearest->wanted.len > NEAREST_MAX || candidate.len > NEAREST_MAX || !candidate.len)
		return;
	distance = nearest_distance(nearest->wanted, candidate);
	if (distance >= nearest->distance || distance >= candidate.len)
		return;
	nearest->distance = distance;
	memcpy(nearest->name, candidate.ptr, candidate.len);
	nearest->name[candidate.len] = '\0';
}

const char *nearest_hint(struct str wanted, const char *const *names, size_t count,
			 char text[static NEAREST_HINT_MAX])
{
	struct nearest nearest;

	nearest_init(&nearest, wanted);
	for (size_t i = 0; i < count; i++)
		nearest_offer(&nearest, str_of(names[i]));
	text[0] = '\0';
	if (nearest.name[0] != '\0')
		(void)snprintf(text, NEAREST_HINT_MAX, "; did you mean %s?", nearest.name);
	return text;
}
