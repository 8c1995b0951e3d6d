/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/listing.h"

#include "bake/differences.h"
#include "layers/text.h"

#include <ctype.h>

static int listing_make(const struct context_sources *sources, const struct cancel *cancel,
			struct buf *out, struct digest *content, struct err *err)
{
	struct context_sources listed = *sources;

	listed.list = out;
	return context_digest(&listed, cancel, content, err);
}

int listing_keep(const struct context_sources *sources, const struct digest *content,
		 const struct cancel *cancel, struct digest *out, struct err *err)
{
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);
	struct digest now;

	if (listing_make(sources, cancel, &list, &now, err) < 0)
		return -1;
	if (!digest_equal(&now, content))
		return err_set(err, ERR_UNAVAILABLE,
			       "the context changed while it was read; bake again");
	return text_put(sources->store, buf_str(&list), out, err) < 0
		       ? err_ctx(err, "keep what was read")
		       : 0;
}

/* The next pair of a listing. */
static bool listing_next(struct str *rest, struct str *path, struct str *what)
{
	return rest->len > 0 && str_cut(rest, '\0', path) && str_cut(rest, '\0', what);
}

/* The pairs as an object. */
static json_t *listing_parse(struct str text)
{
	json_t *files = json_object();
	struct str path;
	struct str what;

	while (listing_next(&text, &path, &what))
		(void)json_object_setn_new_nocheck(files, path.ptr, path.len, json_from_str(what));
	return files;
}

/* A file's mode and size, without its digest; of anything else, all words. */
static struct str listing_head(struct str words)
{
	struct str rest = words;
	struct str mode;
	struct str size;

	if (words.len == 0 || !isdigit((unsigned char)words.ptr[0]))
		return words; /* "a link to ..." may have commas of its own */
	if (!str_cut(&rest, ',', &mode) || !str_cut(&rest, ',', &size))
		return words;
	return (struct str){words.ptr, (size_t)(size.ptr + size.len - words.ptr)};
}

static json_t *listing_head_of(const json_t *what)
{
	return what ? json_from_str(listing_head(json_str(what))) : NULL;
}

/*
 * The digest is of all a file is, so it points to the content (or to xattrs) only
 * where mode and size are equal; elsewhere it would mislead, and is left out.
 */
static void listing_add(json_t *differences, const char *path, const json_t *was, const json_t *is)
{
	AUTO(json) json_t *before = listing_head_of(was);
	AUTO(json) json_t *now = listing_head_of(is);
	bool alike = json_equal(before, now);

	if (json_array_size(differences) < LISTING_DIFFERENCES_MAX)
		differences_add(differences, "file", path, alike ? was : before, alike ? is : now);
}

/* What is there now and was not, or was another; then what is no longer there. */
static void listing_compare_parsed(json_t *was, json_t *is, json_t *differences)
{
	const char *path;
	json_t *what;

	json_object_foreach(is, path, what)
	{
		const json_t *old = json_object_get(was, path);

		if (!json_equal(old, what))
			listing_add(differences, path, old, what);
	}
	json_object_foreach(was, path, what)
	{
		if (!json_object_get(is, path))
			listing_add(differences, path, what, NULL);
	}
}

int listing_compare(const struct digest *kept, const struct context_sources *sources,
		    const struct cancel *cancel, json_t *differences, struct err *err)
{
	auto_buf struct buf before = BUF_INIT(LISTING_BYTES_MAX);
	auto_buf struct buf now = BUF_INIT(LISTING_BYTES_MAX);
	struct buf_sink sink = BUF_SINK(&before);
	AUTO(json) json_t *was = NULL;
	AUTO(json) json_t *is = NULL;
	struct digest content;

	if (text_copy(sources->store, kept, &sink.sink, err) < 0 ||
	    listing_make(sources, cancel, &now, &content, err) < 0)
		return -1;
	was = listing_parse(buf_str(&before));
	is = listing_parse(buf_str(&now));
	listing_compare_parsed(was, is, differences);
	return 0;
}
