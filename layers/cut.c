/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/cut_priv.h"

#include "layers/layer.h"

#define CUT_SEED UINT64_C(0x6865617274682031) /* "hearth 1" */
/* Normalisation by two bits around the 16 that 64 KiB stand for. */
#define CUT_MASK_BEFORE (~UINT64_C(0) << (64 - 18))
#define CUT_MASK_AFTER (~UINT64_C(0) << (64 - 14))

/* SplitMix64 (Steele and others, 2014): well mixed, and two lines long. */
static uint64_t cut_mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void cutter_init(struct cutter *cutter)
{
	uint64_t state = CUT_SEED;

	for (size_t i = 0; i < sizeof(cutter->gear) / sizeof(cutter->gear[0]); i++)
		cutter->gear[i] = cut_mix(&state);
}

/* Skip bytes without a cut, four at once: each hash is computed without the one before. */
static size_t cut_skip(const struct cutter *cutter, const unsigned char *bytes, size_t at,
		       size_t end, uint64_t mask, uint64_t *hash)
{
	const uint64_t *gear = cutter->gear;
	uint64_t h = *hash;

	for (; at + 4 <= end; at += 4) {
		uint64_t a = gear[bytes[at]];
		uint64_t b = (a << 1) + gear[bytes[at + 1]];
		uint64_t c = (b << 1) + gear[bytes[at + 2]];
		uint64_t d = (c << 1) + gear[bytes[at + 3]];
		uint64_t next = (h << 4) + d;

		if ((((h << 1) + a) & mask) == 0 || (((h << 2) + b) & mask) == 0 ||
		    (((h << 3) + c) & mask) == 0 || (next & mask) == 0)
			break;
		h = next;
	}
	*hash = h;
	return at;
}

/* The end of the chunk in (at, end], or 0. The high bits of the hash roll over 64 bytes. */
static size_t cut_scan(const struct cutter *cutter, const unsigned char *bytes, size_t at,
		       size_t end, uint64_t mask, uint64_t *hash)
{
	uint64_t h = *hash;

	at = cut_skip(cutter, bytes, at, end, mask, &h);
	for (; at < end; at++) {
		h = (h << 1) + cutter->gear[bytes[at]];
		if ((h & mask) == 0) {
			*hash = h;
			return at + 1;
		}
	}
	*hash = h;
	return 0;
}

size_t cutter_find(const struct cutter *cutter, struct str bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.ptr;
	size_t end = bytes.len < LAYER_CUT_MAX ? bytes.len : LAYER_CUT_MAX;
	size_t normal = end < LAYER_CUT_NORMAL ? end : LAYER_CUT_NORMAL;
	uint64_t hash = 0;
	size_t found;

	if (end <= LAYER_CUT_MIN)
		return end;
	found = cut_scan(cutter, at, LAYER_CUT_MIN, normal, CUT_MASK_BEFORE, &hash);
	if (found == 0)
		found = cut_scan(cutter, at, normal, end, CUT_MASK_AFTER, &hash);
	return found ? found : end;
}
