/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/gzip_tag.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "registry/holding.h"
#include "registry/tagging.h"

#include <stdio.h>

bool gzip_tag_split(struct str tag, struct str *out_base)
{
	struct str suffix = STR(TAG_GZIP_SUFFIX);
	struct str base = {tag.ptr, tag.len > suffix.len ? tag.len - suffix.len : 0};

	if (base.len == 0 || !str_equal(str_skip(tag, base.len), suffix) ||
	    gzip_tag_split(base, out_base))
		return false;
	*out_base = base;
	return true;
}

int gzip_tag_find(struct meta *meta, struct str repository, struct str base, struct tag *out,
		  struct err *err)
{
	char reference[HOLDING_REFERENCE_MAX];

	if (!holding_join(repository, base, reference))
		return 0;
	return tag_find_newest(meta, str_of(reference), out, err);
}

/* The images of the variant, as tags. */
static int gzip_tag_read(struct store *store, const struct digest *variant, struct tagging *out,
			 struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_outline struct outline outline = {0};
	const struct repository_item item = {.kind = REPOSITORY_MANIFEST,
					     .source = REPOSITORY_BAKED,
					     .digest = *variant,
					     .blob = *variant,
					     .at_ms = clock_now_ms()};

	if (blob_read_all(store, variant, &text, err) < 0 ||
	    outline_parse(buf_str(&text), &outline, err) < 0)
		return -1;
	return tagging_make(store, STR(""), &item, &outline, out, err);
}

/* Whether the name is free for what was made of target: 1, 0, -1. */
static int gzip_tag_may(struct meta *meta, struct str repository, struct str base, struct str name,
			const struct digest *target, struct err *err)
{
	struct tag tag;
	int found = gzip_tag_find(meta, repository, base, &tag, err);

	if (found <= 0)
		return found;
	if (!digest_equal(&tag.target, target))
		return 0;
	if (holding_check(meta, repository, target, err) < 0)
		return -1;
	found = tag_find_newest(meta, name, &tag, err);
	return found < 0 ? -1 : found == 0 || tag_is_made(&tag);
}

int gzip_tag_put(struct store *store, struct str repository, struct str base,
		 const struct digest *target, const struct digest *variant, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_tagging struct tagging tagging = {0};
	char tag[GRAMMAR_TAG_MAX + sizeof(TAG_GZIP_SUFFIX)];
	char reference[HOLDING_REFERENCE_MAX];
	int may;

	(void)snprintf(tag, sizeof(tag), STR_FMT TAG_GZIP_SUFFIX, STR_ARG(base));
	if (!holding_join(repository, str_of(tag), reference))
		return err_set(err, ERR_INVALID, "%s is too long a tag", tag);
	if (gzip_tag_read(store, variant, &tagging, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	may = gzip_tag_may(meta, repository, base, str_of(reference), target, err);
	if (may <= 0)
		return may;
	for (size_t i = 0; i < tagging.count; i++) {
		tagging.at[i].made_of = *target;
		if (tag_put(meta, str_of(reference), &tagging.at[i], err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : 1;
}
