/* SPDX-License-Identifier: Apache-2.0 */
/* pull_choose.c - of an index the wanted platform's manifest, also from an index in it. */
#include "registry/pull_priv.h"

#include <inttypes.h>

#define CHOOSE_INDEXES_MAX 64 /* that may be read for one image */

/* What is looked for, and what was found. */
struct choosing {
	struct pull *pull;
	size_t indexes; /* read so far */
	struct digest *digest;
	struct buf *text;
};

static int choose_in(struct choosing *choosing, struct str index, size_t depth, struct err *err);

/* The document of an entry, which is what the entry says that it is. */
static int choose_get(struct choosing *choosing, const struct descriptor *entry, bool want_index,
		      struct buf *out, struct err *err)
{
	bool index;

	if (pull_document(choosing->pull, &entry->digest, out, err) < 0)
		return -1;
	if (out->len != entry->size)
		return err_set(err, ERR_CORRUPT, "manifest of %zu bytes, the index says %" PRIu64,
			       out->len, entry->size);
	if (manifest_is_index(buf_str(out), &index, err) < 0)
		return -1;
	if (index != want_index)
		return err_set(err, ERR_CORRUPT, "%s where the index says there is %s",
			       index ? "an index" : "a manifest",
			       index ? "a manifest" : "an index");
	return 0;
}

static int choose_below(struct choosing *choosing, const struct descriptor *entry, size_t depth,
			struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct digest stored;

	if (depth == PULL_DEPTH_MAX || choosing->indexes == CHOOSE_INDEXES_MAX)
		return err_set(err, ERR_LIMIT, "too many indexes in indexes");
	choosing->indexes++;
	if (choose_get(choosing, entry, true, &text, err) < 0 ||
	    pull_store(choosing->pull, &entry->digest, &text, &stored, err) < 0)
		return -1;
	return choose_in(choosing, buf_str(&text), depth + 1, err);
}

/* An image of its own goes before those of the indexes in it, in their order. */
static int choose_in(struct choosing *choosing, struct str index, size_t depth, struct err *err)
{
	struct descriptor entry;
	int found = manifest_choose(index, &choosing->pull->wanted, &entry, err);

	if (found == 0) {
		*choosing->digest = entry.digest;
		return choose_get(choosing, &entry, false, choosing->text, err);
	}
	for (size_t at = 0; err->kind == ERR_NOT_FOUND; at++) {
		struct err why = {0};

		found = manifest_index_in(index, at, &entry, &why);
		if (found == 1 && choose_below(choosing, &entry, depth, err) == 0)
			return 0;
		if (found == 0)
			return -1;
		if (found < 0)
			*err = why;
	}
	return -1;
}

int pull_choose(struct pull *pull, struct str index, struct digest *out, struct buf *out_text,
		struct err *err)
{
	struct choosing choosing = {.pull = pull, .digest = out, .text = out_text};

	return choose_in(&choosing, index, 0, err);
}
