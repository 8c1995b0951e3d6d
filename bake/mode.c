/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mode_priv.h"

#define MODE_ALL ((mode_t)07777)
#define MODE_SET_ID ((mode_t)06000)

static bool mode_is_octal(struct str text)
{
	return text.len > 0 && text.ptr[0] >= '0' && text.ptr[0] <= '9';
}

/* An octal mode; above MODE_ALL where the text is none. */
static mode_t mode_octal(struct str text)
{
	mode_t mode = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '7' || mode > 0777)
			return MODE_ALL + 1;
		mode = mode << 3 | (mode_t)(text.ptr[i] - '0');
	}
	return mode;
}

/* The next character of *text if it is one of these, else 0. */
static char mode_take(struct str *text, const char *wanted)
{
	char c = '\0';

	if (text->len > 0)
		c = text->ptr[0];

	if (c == '\0' || !strchr(wanted, c))
		return '\0';
	*text = str_skip(*text, 1);
	return c;
}

/* The bits that belong to u, g, o and a. */
static mode_t mode_affected(struct str *text)
{
	mode_t bits = 0;
	char who;

	while ((who = mode_take(text, "ugoa")) != '\0')
		bits |= who == 'u' ? 04700 : who == 'g' ? 02070 : who == 'o' ? 01007 : MODE_ALL;
	return bits ? bits : MODE_ALL;
}

/* One class's three bits, for all of them. */
static mode_t mode_spread(mode_t three)
{
	return three | three << 3 | three << 6;
}

static mode_t mode_letter(char letter, mode_t old, bool directory)
{
	switch (letter) {
	case 'r':
		return 0444;
	case 'w':
		return 0222;
	case 'x':
		return 0111;
	case 'X':
		return directory || (old & 0111) ? 0111 : 0;
	case 's':
		return MODE_SET_ID;
	default:
		return 01000;
	}
}

static mode_t mode_permissions(struct str *text, mode_t old, bool directory)
{
	char class = mode_take(text, "ugo");
	mode_t bits = 0;
	char letter;

	if (class != '\0')
		return mode_spread(old >> (class == 'u' ? 6 : class == 'g' ? 3 : 0) & 7);
	while ((letter = mode_take(text, "rwxXst")) != '\0')
		bits |= mode_letter(letter, old, directory);
	return bits;
}

static mode_t mode_act(char sign, mode_t affected, mode_t bits, mode_t old, bool directory)
{
	mode_t kept = directory && !(bits & MODE_SET_ID) ? MODE_SET_ID : 0;

	bits &= affected;
	if (sign == '+')
		return old | bits;
	if (sign == '-')
		return old & ~bits;
	return (old & (~affected | kept)) | bits;
}

/* False where the text is no list of changes. */
static bool mode_change(struct str text, mode_t *mode, bool directory)
{
	do {
		mode_t affected = mode_affected(&text);
		char sign = mode_take(&text, "+-=");

		if (sign == '\0')
			return false;
		for (; sign != '\0'; sign = mode_take(&text, "+-="))
			*mode = mode_act(sign, affected, mode_permissions(&text, *mode, directory),
					 *mode, directory);
	} while (mode_take(&text, ",") != '\0');
	return text.len == 0;
}

int mode_check(struct str text, struct err *err)
{
	mode_t mode = 0;

	if (mode_is_octal(text) ? mode_octal(text) <= MODE_ALL : mode_change(text, &mode, false))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "--chmod=" STR_FMT
		       ": expected octal, 0 to 07777, or changes like u=rwX,go=rX",
		       STR_ARG(text));
}

mode_t mode_apply(struct str text, mode_t old, bool directory)
{
	mode_t mode = old & MODE_ALL;

	if (mode_is_octal(text))
		return mode_octal(text);
	(void)mode_change(text, &mode, directory);
	return mode & MODE_ALL;
}

mode_t mode_copied(const char *chmod, const struct stat *st)
{
	mode_t mode = st->st_mode & MODE_ALL;

	return chmod ? mode_apply(str_of(chmod), mode, S_ISDIR(st->st_mode)) : mode;
}
