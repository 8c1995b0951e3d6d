/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subst.c - a pattern is pieces between stars. Each piece is matched at its
 * earliest place, which leaves most room for the rest; so if the first piece
 * matches somewhere and the rest does not, the rest matches from no later place
 * either, and nothing is tried twice.
 */
#include "bake/subst_priv.h"

#include "bake/rune_priv.h"

#define SUBST_STAR 0x200000U /* above all that rune_take() gives */
#define SUBST_ANY 0x200001U
#define SUBST_NONE SIZE_MAX

struct runes {
	uint32_t *at; /* owned */
	size_t count;
};

static inline void auto_runes_release(struct runes *slot)
{
	free(slot->at);
}
#define auto_runes AUTO(runes)

static void subst_read(struct str text, struct runes *out)
{
	out->at = calloc(text.len + 1, sizeof(*out->at));
	if (!out->at)
		abort();
	while (text.len > 0)
		out->at[out->count++] = rune_take(&text);
}

static void subst_reverse(struct runes *runes)
{
	for (size_t i = 0; i < runes->count / 2; i++) {
		uint32_t kept = runes->at[i];

		runes->at[i] = runes->at[runes->count - 1 - i];
		runes->at[runes->count - 1 - i] = kept;
	}
}

static int subst_refuse_escape(struct str text, struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "the pattern " STR_FMT ": only *, ? and \\ may stand behind a \\",
		       STR_ARG(text));
}

/* Escapes are gone from what comes out. */
static int subst_read_pattern(struct str text, struct runes *out, struct err *err)
{
	struct runes read = {0};
	size_t kept = 0;

	subst_read(text, &read);
	*out = read;
	for (size_t i = 0; i < read.count; i++) {
		uint32_t rune = read.at[i];

		if (rune == '\\') {
			rune = ++i < read.count ? read.at[i] : 0;
			if (rune == 0 || !strchr("*?\\}/", (int)(rune & 0x7f)) || rune > 0x7f)
				return subst_refuse_escape(text, err);
		} else if (rune == '*') {
			rune = SUBST_STAR;
		} else if (rune == '?') {
			rune = SUBST_ANY;
		}
		out->at[kept++] = rune;
	}
	out->count = kept;
	if (kept > SUBST_PATTERN_MAX)
		return err_set(err, ERR_LIMIT, "a pattern of more than %zu characters",
			       SUBST_PATTERN_MAX);
	return 0;
}

/* Whether a piece, which holds no star, stands at a place. */
static bool subst_stands(const struct runes *value, size_t at, const uint32_t *piece, size_t count)
{
	if (value->count - at < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (piece[i] != SUBST_ANY && piece[i] != value->at[at + i])
			return false;
	}
	return true;
}

/* The first place from `at` on where a piece stands, or the last. */
static size_t subst_find(const struct runes *value, size_t at, const uint32_t *piece, size_t count,
			 bool last)
{
	size_t places = value->count - at < count ? 0 : value->count - at - count + 1;

	for (size_t i = 0; i < places; i++) {
		size_t place = last ? at + places - 1 - i : at + i;

		if (subst_stands(value, place, piece, count))
			return place;
	}
	return SUBST_NONE;
}

static size_t subst_piece(const struct runes *pattern, size_t from)
{
	size_t end = from;

	while (end < pattern->count && pattern->at[end] != SUBST_STAR)
		end++;
	return end;
}

/* The end of the shortest or longest match whose first piece ends at `at`. */
static size_t subst_match_rest(const struct runes *value, size_t at, const struct runes *pattern,
			       size_t next, bool longest)
{
	while (next < pattern->count) {
		size_t from = next + 1;
		size_t count;
		size_t place;
		bool final;

		next = subst_piece(pattern, from);
		count = next - from;
		final = next == pattern->count;
		place = subst_find(value, at, pattern->at + from, count, final && longest);
		if (place == SUBST_NONE)
			return SUBST_NONE;
		at = place + count;
	}
	return at;
}

/* The end of the match at the front, or SUBST_NONE. */
static size_t subst_match_front(const struct runes *value, const struct runes *pattern,
				bool longest)
{
	size_t first = subst_piece(pattern, 0);

	if (!subst_stands(value, 0, pattern->at, first))
		return SUBST_NONE;
	return subst_match_rest(value, first, pattern, first, longest);
}

static int subst_put(const struct runes *runes, size_t from, size_t to, struct buf *out,
		     struct err *err)
{
	for (size_t i = from; i < to; i++) {
		if (rune_put(runes->at[i], out, err) < 0)
			return -1;
	}
	return 0;
}

int subst_trim(struct str value, struct str pattern, enum subst_side side, bool longest,
	       struct buf *out, struct err *err)
{
	auto_runes struct runes text = {0};
	auto_runes struct runes wanted = {0};
	size_t end;

	if (subst_read_pattern(pattern, &wanted, err) < 0)
		return -1;
	subst_read(value, &text);
	if (side == SUBST_BACK) {
		subst_reverse(&text);
		subst_reverse(&wanted);
	}
	end = subst_match_front(&text, &wanted, longest);
	if (end == SUBST_NONE)
		end = 0;
	if (side == SUBST_FRONT)
		return subst_put(&text, end, text.count, out, err);
	subst_reverse(&text);
	return subst_put(&text, 0, text.count - end, out, err);
}

int subst_replace(struct str value, struct str pattern, struct str replacement, bool all,
		  struct buf *out, struct err *err)
{
	auto_runes struct runes text = {0};
	auto_runes struct runes wanted = {0};
	size_t first;
	size_t at = 0; /* what is before it was put */
	size_t ended =
		SUBST_NONE; /* where the last match did, which none that is empty may touch */

	if (subst_read_pattern(pattern, &wanted, err) < 0)
		return -1;
	subst_read(value, &text);
	first = subst_piece(&wanted, 0);
	for (size_t from = 0; from <= text.count;) {
		size_t place = subst_find(&text, from, wanted.at, first, false);
		size_t end = SUBST_NONE;

		if (place != SUBST_NONE)
			end = subst_match_rest(&text, place + first, &wanted, first, true);
		if (end == SUBST_NONE)
			break;
		if (end > place || place != ended) {
			if (subst_put(&text, at, place, out, err) < 0 ||
			    buf_add(out, replacement, err) < 0)
				return -1;
			at = ended = end;
		}
		if (!all)
			break;
		from = end > place ? end : place + 1;
	}
	return subst_put(&text, at, text.count, out, err);
}
