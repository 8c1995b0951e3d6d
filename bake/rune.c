/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/rune_priv.h"

#include <ctype.h>
#include <locale.h>
#include <wctype.h>

/* How many bytes a character that begins with this one has; 0 for none. */
static size_t rune_size(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

static bool rune_is_valid(uint32_t rune, size_t size)
{
	if (size == 3)
		return rune >= 0x800 && (rune < 0xd800 || rune > 0xdfff);
	return size != 4 || (rune >= 0x10000 && rune <= 0x10ffff);
}

uint32_t rune_take(struct str *text)
{
	const unsigned char *at = (const unsigned char *)text->ptr;
	size_t size = rune_size(at[0]);
	uint32_t rune = size == 1 ? at[0] : at[0] & (0x7fU >> size);
	bool valid = size > 0 && size <= text->len;

	for (size_t i = 1; valid && i < size; i++) {
		valid = (at[i] & 0xc0) == 0x80;
		rune = rune << 6 | (at[i] & 0x3fU);
	}
	if (!valid || !rune_is_valid(rune, size)) {
		rune = RUNE_BYTE + at[0];
		size = 1;
	}
	*text = str_skip(*text, size);
	return rune;
}

int rune_put(uint32_t rune, struct buf *out, struct err *err)
{
	char bytes[4];
	size_t size = rune < 0x80 || rune >= RUNE_BYTE ? 1
		      : rune < 0x800                   ? 2
		      : rune < 0x10000                 ? 3
						       : 4;

	if (size == 1) {
		bytes[0] = (char)(rune & 0xff);
		return buf_add(out, (struct str){bytes, 1}, err);
	}
	for (size_t i = size - 1; i > 0; i--, rune >>= 6)
		bytes[i] = (char)(0x80 | (rune & 0x3f));
	bytes[0] = (char)((0xf00U >> size & 0xff) | rune);
	return buf_add(out, (struct str){bytes, size}, err);
}

bool rune_is_word(uint32_t rune)
{
	locale_t locale;
	bool is;

	if (rune < 0x80)
		return rune == '_' || isalnum((int)rune);
	if (rune >= RUNE_BYTE)
		return false;
	locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
	if (!locale)
		return false;
	is = iswalnum_l((wint_t)rune, locale) != 0;
	freelocale(locale);
	return is;
}
