/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/listing_priv.h"

#include "bake/differences.h"
#include "bake/listing.h"
#include "bake/mode_priv.h"
#include "layers/text.h"

#include <ctype.h>
#include <sys/sysmacros.h>

#define LISTING_MARK_PATH STR("/") /* no name is that */
#define LISTING_MARK \
	STR("/\0"    \
	    "2\0")
#define LISTING_SHOWN ((size_t)12) /* hex digits of a digest */

/* Describe an entry, without its attributes and owner. */
static int listing_describe(struct buf *out, const char *chmod, const struct source_entry *entry,
			    struct err *err)
{
	const struct stat *st = &entry->st;
	unsigned mode = mode_copied(chmod, st);
	char hex[DIGEST_HEX_MAX];

	if (S_ISLNK(st->st_mode))
		return buf_addf(out, err, "a link to %s", entry->target);
	if (entry->twin)
		return buf_addf(out, err, "the file %s", entry->twin);
	if (S_ISDIR(st->st_mode))
		return buf_addf(out, err, "%04o, a directory", mode);
	if (S_ISFIFO(st->st_mode))
		return buf_addf(out, err, "%04o, a fifo", mode);
	if (!S_ISREG(st->st_mode))
		return buf_addf(out, err, "%04o, a device %u:%u", mode, major(st->st_rdev),
				minor(st->st_rdev));
	return buf_addf(out, err, "%04o, %jd bytes, %.*s", mode, (intmax_t)st->st_size,
			(int)LISTING_SHOWN, digest_hex(&entry->what, hex));
}

/* Names with their NUL and digests of values: no two lists have the same bytes. */
static int listing_add_attributes(struct buf *out, const struct xattrs *xattrs, struct err *err)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest digest;
	char hex[DIGEST_HEX_MAX];

	if (xattrs->count == 0)
		return 0;
	hasher_init(&hasher);
	for (size_t i = 0; i < xattrs->count; i++) {
		const struct xattr *xattr = &xattrs->at[i];

		digest_of(buf_str(&xattr->value), &digest);
		hasher_add(&hasher, (struct str){xattr->name, strlen(xattr->name) + 1});
		hasher_add(&hasher, (struct str){(const char *)digest.bytes, 32});
	}
	hasher_final(&hasher, &digest);
	return buf_addf(out, err, ", attributes %.*s", (int)LISTING_SHOWN,
			digest_hex(&digest, hex));
}

void listing_draft_init(struct listing_draft *draft, const struct context_sources *sources)
{
	*draft = (struct listing_draft){.list = sources->list, .chmod = sources->chmod};
}

void listing_source(struct listing_draft *draft, const struct source_spec *source)
{
	draft->owners = source->devices;
	draft->whole = source->whole;
	draft->source = source->path + (!draft->owners && source->path[0] == '/');
}

static int listing_add_path(const struct listing_draft *draft, const char *path, struct err *err)
{
	struct str source = str_of(draft->source);
	bool between = *path && source.len > 0 && source.ptr[source.len - 1] != '/';

	if (buf_addf(draft->list, err, "%s%s%s", draft->source, between ? "/" : "", path) < 0)
		return -1;
	return buf_add(draft->list, STR("\0"), err);
}

int listing_add(const struct listing_draft *draft, const struct source_entry *entry,
		struct err *err)
{
	struct buf *list = draft->list;

	if (!list || (!*entry->path && S_ISDIR(entry->st.st_mode) && !draft->whole))
		return 0; /* of a directory that is a source only the content counts */
	if (listing_add_path(draft, entry->path, err) < 0 ||
	    listing_describe(list, draft->chmod, entry, err) < 0 ||
	    listing_add_attributes(list, &entry->xattrs, err) < 0)
		return -1;
	if (draft->owners &&
	    buf_addf(list, err, ", owner %u:%u", entry->st.st_uid, entry->st.st_gid) < 0)
		return -1;
	return buf_add(list, STR("\0"), err);
}

int listing_begin(struct buf *list, struct err *err)
{
	return list->len == 0 ? buf_add(list, LISTING_MARK, err) : 0;
}

int listing_read(const struct context_sources *sources, const struct digest *content,
		 const struct cancel *cancel, struct buf *list, struct err *err)
{
	struct context_sources listed = *sources;
	struct digest now;

	listed.list = list;
	if (listing_begin(list, err) < 0 || context_digest(&listed, cancel, &now, err) < 0)
		return -1;
	if (content && !digest_equal(&now, content))
		return err_set(err, ERR_UNAVAILABLE,
			       "the context changed while it was read; bake again");
	return 0;
}

int listing_keep(struct store *store, struct str list, struct digest *out, struct err *err)
{
	return text_put(store, list, out, err) < 0 ? err_ctx(err, "keep what was read") : 0;
}

/* The next pair of a listing. */
static bool listing_next(struct str *rest, struct str *path, struct str *words)
{
	return rest->len > 0 && str_cut(rest, '\0', path) && str_cut(rest, '\0', words);
}

/* A listing as an object of words by path. */
struct listing {
	json_t *files; /* owned */
	bool marked;   /* it tells attributes and owners */
};

static inline void auto_listing_release(struct listing *slot)
{
	json_decref(slot->files);
}

static struct listing listing_parse(struct str text)
{
	struct listing listing = {.files = json_object()};
	struct str path;
	struct str words;

	while (listing_next(&text, &path, &words)) {
		if (str_equal(path, LISTING_MARK_PATH)) {
			listing.marked = true;
			continue;
		}
		if (!listing.marked && str_starts(path, STR("/")))
			path = str_skip(path, 1);
		(void)json_object_setn_new_nocheck(listing.files, path.ptr, path.len,
						   json_from_str(words));
	}
	return listing;
}

/* The parts of an entry's words, in their order, each with the separator in front of it. */
struct listing_words {
	struct str head; /* of a file its mode and size */
	struct str digest;
	struct str tail;
};

static struct str listing_between(const char *from, const char *to)
{
	return (struct str){from, (size_t)(to - from)};
}

static bool listing_is_digest(struct str word)
{
	return word.len == LISTING_SHOWN + 1 && isxdigit((unsigned char)word.ptr[1]);
}

/* Only words that begin with a mode are divided: names in others may have commas. */
static struct listing_words listing_divide(struct str text)
{
	struct listing_words words = {.head = text};
	const char *end = text.ptr + text.len;
	struct str rest = text;
	struct str piece;

	if (text.len == 0 || !isdigit((unsigned char)text.ptr[0]) || !str_cut(&rest, ',', &piece) ||
	    !str_cut(&rest, ',', &piece))
		return words;
	words.head = listing_between(text.ptr, piece.ptr + piece.len);
	words.tail = listing_between(piece.ptr + piece.len, end);
	if (!str_cut(&rest, ',', &piece) || !listing_is_digest(piece))
		return words;
	words.digest = listing_between(words.tail.ptr, piece.ptr + piece.len);
	words.tail = listing_between(piece.ptr + piece.len, end);
	return words;
}

/* With the digest or without; NULL for what is not there. */
static json_t *listing_join(const struct listing_words *words, bool digest)
{
	struct str shown = digest ? words->digest : STR("");

	if (words->head.len == 0)
		return NULL;
	return json_sprintf(STR_FMT STR_FMT STR_FMT, STR_ARG(words->head), STR_ARG(shown),
			    STR_ARG(words->tail));
}

/*
 * The digest is of all a file is, so it points to the bytes only where all else
 * is equal; elsewhere it would mislead, and is left out.
 */
static void listing_tell(json_t *differences, const char *path, const struct listing_words *was,
			 const struct listing_words *is)
{
	bool alike = str_equal(was->head, is->head) && str_equal(was->tail, is->tail);
	AUTO(json) json_t *before = listing_join(was, alike);
	AUTO(json) json_t *now = listing_join(is, alike);

	if (alike && str_equal(was->digest, is->digest))
		return;
	if (json_array_size(differences) < LISTING_DIFFERENCES_MAX)
		differences_add(differences, "file", path, before, now);
}

/* Attributes and owners that only one of the listings has are not compared. */
static void listing_tell_name(json_t *differences, const char *path, const json_t *was,
			      const json_t *is, bool tails)
{
	struct listing_words before = listing_divide(json_str(was));
	struct listing_words now = listing_divide(json_str(is));

	if (!tails)
		before.tail = now.tail = STR("");
	listing_tell(differences, path, &before, &now);
}

/*
 * In a listing without a mark some directories may be sources, of which only
 * the content counted.
 */
static bool listing_may_be_content(const struct listing *was, const json_t *words)
{
	struct str text = json_str(words);
	struct str end = STR(", a directory");

	return !was->marked && text.len > end.len &&
	       str_equal(str_skip(text, text.len - end.len), end);
}

/* First names that are new or changed; then those that are gone. */
static void listing_compare_parsed(const struct listing *was, const struct listing *is,
				   json_t *differences)
{
	bool tails = was->marked && is->marked;
	const char *path;
	json_t *words;

	json_object_foreach(is->files, path, words)
	{
		const json_t *old = json_object_get(was->files, path);

		if (!json_equal(old, words))
			listing_tell_name(differences, path, old, words, tails);
	}
	json_object_foreach(was->files, path, words)
	{
		if (!json_object_get(is->files, path) && !listing_may_be_content(was, words))
			listing_tell_name(differences, path, words, NULL, tails);
	}
}

int listing_compare(struct store *store, const struct digest *kept, struct str now,
		    json_t *differences, struct err *err)
{
	auto_buf struct buf before = BUF_INIT(LISTING_BYTES_MAX);
	struct buf_sink sink = BUF_SINK(&before);
	AUTO(listing) struct listing was = {0};
	AUTO(listing) struct listing is = {0};

	if (text_copy(store, kept, &sink.sink, err) < 0)
		return -1;
	was = listing_parse(buf_str(&before));
	is = listing_parse(now);
	listing_compare_parsed(&was, &is, differences);
	return 0;
}
