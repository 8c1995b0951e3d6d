/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/challenge_priv.h"

#include <ctype.h>
#include <strings.h>

/* RFC 9110, 5.6.2: tchar */
static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip_blanks(struct str *text)
{
	while (text->len > 0 && isblank((unsigned char)text->ptr[0]))
		*text = str_skip(*text, 1);
}

static void skip_separators(struct str *text)
{
	while (text->len > 0 && (isblank((unsigned char)text->ptr[0]) || text->ptr[0] == ','))
		*text = str_skip(*text, 1);
}

static struct str take_token(struct str *text)
{
	struct str token = {text->ptr, 0};

	while (token.len < text->len && is_token(text->ptr[token.len]))
		token.len++;
	*text = str_skip(*text, token.len);
	return token;
}

static bool same_word(struct str word, const char *other)
{
	return word.len == strlen(other) && strncasecmp(word.ptr, other, word.len) == 0;
}

/* Room for the unquoted values of a challenge. */
struct challenge_room {
	char *at;
	size_t left;
};

/* A quoted value; one that never ends reaches to the end. */
static struct str take_quoted(struct str *text, struct challenge_room *room)
{
	struct str value = {room->at, 0};

	*text = str_skip(*text, 1);
	while (text->len > 0 && text->ptr[0] != '"') {
		if (text->ptr[0] == '\\' && text->len > 1)
			*text = str_skip(*text, 1);
		if (room->left > 0) {
			*room->at++ = text->ptr[0];
			room->left--;
			value.len++;
		}
		*text = str_skip(*text, 1);
	}
	if (text->len > 0)
		*text = str_skip(*text, 1);
	return value;
}

/* A bare value ends at a comma or a blank: registries write realm=/token. */
static struct str take_bare(struct str *text, struct challenge_room *room)
{
	struct str value = {room->at, 0};

	while (text->len > 0 && text->ptr[0] != ',' && !isblank((unsigned char)text->ptr[0])) {
		if (room->left > 0) {
			*room->at++ = text->ptr[0];
			room->left--;
			value.len++;
		}
		*text = str_skip(*text, 1);
	}
	return value;
}

static void challenge_set(struct challenge *challenge, struct str name, struct str value)
{
	if (same_word(name, "realm"))
		challenge->realm = value;
	else if (same_word(name, "service"))
		challenge->service = value;
	else if (same_word(name, "scope"))
		challenge->scope = value;
	else if (same_word(name, "error"))
		challenge->error = value;
}

/*
 * One NAME=VALUE. False, and nothing taken, where the next word is not followed
 * by an equals sign: it is the scheme of the next challenge.
 */
static bool take_parameter(struct str *text, struct challenge *challenge,
			   struct challenge_room *room)
{
	struct str rest = *text;
	struct str name;
	struct str value;

	skip_separators(&rest);
	name = take_token(&rest);
	skip_blanks(&rest);
	if (name.len == 0 || rest.len == 0 || rest.ptr[0] != '=')
		return false;
	rest = str_skip(rest, 1);
	skip_blanks(&rest);
	value = rest.len > 0 && rest.ptr[0] == '"' ? take_quoted(&rest, room)
						   : take_bare(&rest, room);
	challenge_set(challenge, name, value);
	*text = rest;
	return true;
}

/* What is no parameter and no scheme (a token68, litter) up to the next comma. */
static void skip_litter(struct str *text)
{
	while (text->len > 0 && text->ptr[0] != ',')
		*text = str_skip(*text, 1);
}

bool challenge_next(struct str *field, struct challenge *out)
{
	struct challenge_room room = {out->storage, sizeof(out->storage)};
	struct str scheme;

	for (;;) {
		skip_separators(field);
		if (field->len == 0)
			return false;
		scheme = take_token(field);
		if (scheme.len > 0)
			break;
		skip_litter(field);
	}
	out->scheme = same_word(scheme, "basic")    ? CHALLENGE_BASIC
		      : same_word(scheme, "bearer") ? CHALLENGE_BEARER
						    : CHALLENGE_OTHER;
	out->realm = out->service = out->scope = out->error = STR("");
	skip_blanks(field);
	if (field->len > 0 && field->ptr[0] != ',' && !take_parameter(field, out, &room))
		skip_litter(field);
	while (take_parameter(field, out, &room))
		;
	return true;
}
