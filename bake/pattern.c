/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - a pattern as a list of parts, and all places in it where one can
 * be at once while a path is read: no way is tried twice.
 *
 * A place is a part that is still to come. Of PART_DIRS there are two, before
 * it and inside it, since only a slash leads out; place = 2 * part + inside.
 */
#include "bake/pattern_priv.h"

#include "bake/rune_priv.h"

enum part_kind {
	PART_RUNE,  /* this character */
	PART_ANY,   /* ?  */
	PART_STAR,  /* *  */
	PART_CLASS, /* [] */
	PART_DIRS,  /* double star and slash: (anything and a slash), or nothing */
	PART_ALL,   /* anything, slashes included */
};

struct pattern_part {
	enum part_kind kind;
	uint32_t rune;
	bool negated;
	size_t first; /* of its ranges */
	size_t count;
};

struct pattern_range {
	uint32_t low;
	uint32_t high;
};

bool pattern_has_wildcard(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '\\')
			i++;
		else if (strchr("*?[", text.ptr[i]) && text.ptr[i] != '\0')
			return true;
	}
	return false;
}

static int pattern_wrong(const struct pattern *pattern, struct err *err)
{
	return err_set(err, ERR_REFUSED, "%s is no pattern: a [ or a \\ in it has no end",
		       pattern->text);
}

static struct pattern_part *pattern_add(struct pattern *pattern, enum part_kind kind)
{
	struct pattern_part *part = &pattern->parts[pattern->count++];

	*part = (struct pattern_part){.kind = kind, .first = pattern->range_count};
	return part;
}

static int pattern_take_bound(struct pattern *pattern, struct str *rest, uint32_t *out,
			      struct err *err)
{
	if (rest->len == 0 || rest->ptr[0] == '-' || rest->ptr[0] == ']')
		return pattern_wrong(pattern, err);
	if (rest->ptr[0] == '\\')
		*rest = str_skip(*rest, 1);
	if (rest->len == 0)
		return pattern_wrong(pattern, err);
	*out = rune_take(rest);
	return 0;
}

static int pattern_take_class(struct pattern *pattern, struct str *rest, struct err *err)
{
	struct pattern_part *part = pattern_add(pattern, PART_CLASS);

	part->negated = str_starts(*rest, STR("^"));
	if (part->negated)
		*rest = str_skip(*rest, 1);
	while (part->count == 0 || !str_starts(*rest, STR("]"))) {
		struct pattern_range *range = &pattern->ranges[pattern->range_count];

		if (pattern_take_bound(pattern, rest, &range->low, err) < 0)
			return -1;
		range->high = range->low;
		if (str_starts(*rest, STR("-"))) {
			*rest = str_skip(*rest, 1);
			if (pattern_take_bound(pattern, rest, &range->high, err) < 0)
				return -1;
		}
		pattern->range_count++;
		part->count++;
	}
	*rest = str_skip(*rest, 1);
	return 0;
}

/*
 * Behind two stars. In front of a name without a slash between, they are what
 * the name may end: "**x" is "ax" and "a/bx".
 */
static void pattern_take_stars(struct pattern *pattern, struct str *rest)
{
	bool first = pattern->count == 0;
	bool slash = str_starts(*rest, STR("/"));

	if (slash)
		*rest = str_skip(*rest, 1);
	if (rest->len == 0 || (first && !slash && !pattern_has_wildcard(*rest)))
		(void)pattern_add(pattern, PART_ALL);
	else
		(void)pattern_add(pattern, PART_DIRS);
}

static int pattern_take(struct pattern *pattern, struct str *rest, struct err *err)
{
	uint32_t rune = rune_take(rest);

	switch (rune) {
	case '*':
		if (!str_starts(*rest, STR("*"))) {
			(void)pattern_add(pattern, PART_STAR);
			return 0;
		}
		*rest = str_skip(*rest, 1);
		pattern_take_stars(pattern, rest);
		return 0;
	case '?':
		(void)pattern_add(pattern, PART_ANY);
		return 0;
	case '[':
		return pattern_take_class(pattern, rest, err);
	case '\\':
		if (rest->len == 0)
			return pattern_wrong(pattern, err);
		rune = rune_take(rest);
		break;
	default:
		break;
	}
	pattern_add(pattern, PART_RUNE)->rune = rune;
	return 0;
}

/* A character makes one part or one range at most. */
static void pattern_make_room(struct pattern *pattern, size_t characters)
{
	pattern->parts = calloc(characters + 1, sizeof(*pattern->parts));
	pattern->ranges = calloc(characters + 1, sizeof(*pattern->ranges));
	pattern->states = calloc(4 * (characters + 1), 1);
	if (!pattern->parts || !pattern->ranges || !pattern->states)
		abort();
}

int pattern_parse(struct str text, struct pattern *out, struct err *err)
{
	auto_pattern struct pattern made = {0};
	auto_buf struct buf clean = BUF_INIT(PATH_TEXT_MAX);
	struct str rest;

	if (path_join(STR("/"), text, &clean, err) < 0)
		return -1;
	made.text = strdup(clean.ptr + 1);
	if (!made.text)
		abort();
	rest = str_of(made.text);
	made.literal = !pattern_has_wildcard(rest) && !strchr(made.text, '\\');
	pattern_make_room(&made, rest.len);
	while (rest.len > 0) {
		if (pattern_take(&made, &rest, err) < 0)
			return -1;
	}
	*out = made;
	made = (struct pattern){0};
	return 0;
}

void pattern_done(struct pattern *pattern)
{
	free(pattern->text);
	free(pattern->parts);
	free(pattern->ranges);
	free(pattern->states);
	*pattern = (struct pattern){0};
}

static bool pattern_in_class(const struct pattern *pattern, const struct pattern_part *part,
			     uint32_t rune)
{
	bool found = false;

	for (size_t i = part->first; i < part->first + part->count; i++)
		found |= rune >= pattern->ranges[i].low && rune <= pattern->ranges[i].high;
	return rune != '/' && found != part->negated;
}

/* Be before part i, and behind it where it may be nothing. */
static void pattern_reach(const struct pattern *pattern, unsigned char *states, size_t i)
{
	states[2 * i] = 1;
	while (i < pattern->count &&
	       (pattern->parts[i].kind == PART_STAR || pattern->parts[i].kind == PART_DIRS ||
		pattern->parts[i].kind == PART_ALL))
		states[2 * ++i] = 1;
}

/* Add the places that a character leads to, from one place. */
static void pattern_step_place(const struct pattern *pattern, size_t i, uint32_t rune,
			       unsigned char *next)
{
	const struct pattern_part *part = &pattern->parts[i];

	switch (part->kind) {
	case PART_RUNE:
		if (rune == part->rune)
			pattern_reach(pattern, next, i + 1);
		return;
	case PART_ANY:
		if (rune != '/')
			pattern_reach(pattern, next, i + 1);
		return;
	case PART_CLASS:
		if (pattern_in_class(pattern, part, rune))
			pattern_reach(pattern, next, i + 1);
		return;
	case PART_STAR:
		if (rune != '/')
			pattern_reach(pattern, next, i);
		return;
	case PART_ALL:
		pattern_reach(pattern, next, i);
		return;
	case PART_DIRS:
		next[2 * i + 1] = 1;
		if (rune == '/')
			pattern_reach(pattern, next, i + 1);
		return;
	}
}

/* False when no place is left. */
static bool pattern_step(const struct pattern *pattern, uint32_t rune, const unsigned char *now,
			 unsigned char *next)
{
	bool alive = false;

	memset(next, 0, 2 * (pattern->count + 1));
	for (size_t place = 0; place < 2 * pattern->count; place++) {
		if (now[place])
			pattern_step_place(pattern, place / 2, rune, next);
	}
	for (size_t place = 0; place < 2 * (pattern->count + 1) && !alive; place++)
		alive = next[place];
	return alive;
}

static enum pattern_reach pattern_try_literal(const struct pattern *pattern, struct str path)
{
	struct str text = str_of(pattern->text);

	if (text.len == 0)
		return PATTERN_MISS;
	if (str_starts(path, text) && (path.len == text.len || path.ptr[text.len] == '/'))
		return PATTERN_HIT;
	return path.len == 0 || (str_starts(text, path) && text.ptr[path.len] == '/')
		       ? PATTERN_BELOW
		       : PATTERN_MISS;
}

enum pattern_reach pattern_try(const struct pattern *pattern, struct str path)
{
	unsigned char *now = pattern->states;
	unsigned char *next = now + 2 * (pattern->count + 1);
	bool first = true;

	if (pattern->literal)
		return pattern_try_literal(pattern, path);
	if (path.len == 0)
		return PATTERN_BELOW;
	memset(now, 0, 2 * (pattern->count + 1));
	pattern_reach(pattern, now, 0);
	for (; path.len > 0; first = false) {
		uint32_t rune = rune_take(&path);
		unsigned char *other = next;

		if (rune == '/' && !first && now[2 * pattern->count])
			return PATTERN_HIT;
		if (!pattern_step(pattern, rune, now, next))
			return PATTERN_MISS;
		next = now;
		now = other;
	}
	if (now[2 * pattern->count])
		return PATTERN_HIT;
	return pattern_step(pattern, '/', now, next) ? PATTERN_BELOW : PATTERN_MISS;
}

bool pattern_matches_name(const struct pattern *pattern, struct str name)
{
	return pattern_try(pattern, name) == PATTERN_HIT;
}
