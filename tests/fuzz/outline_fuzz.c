/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a collection follows all that a registry's reading of a document
 * names, and what it names is within the ceilings.
 */
#include "registry/document.h"
#include "registry/outline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct wanted {
	const struct digest *digest;
	bool found;
};

static int look(void *ctx, const struct digest *digest, struct err *err)
{
	struct wanted *wanted = ctx;

	(void)err;
	wanted->found |= digest_equal(digest, wanted->digest);
	return 0;
}

static void check_followed(struct str text, const struct digest *digest)
{
	struct wanted wanted = {.digest = digest};
	struct err err;

	if (document_names(text, look, &wanted, &err) < 0 || !wanted.found)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	auto_outline struct outline outline = {0};
	struct err err;

	if (outline_parse(text, &outline, &err) < 0)
		return 0;
	if (outline.count > OUTLINE_ITEMS_MAX + 1 || (!outline.index && outline.count == 0))
		abort();
	for (size_t i = 0; i < outline.count; i++) {
		if ((outline.items[i].kind == OUTLINE_DOCUMENT) != outline.index)
			abort();
		check_followed(text, &outline.items[i].what.digest);
	}
	if (outline.has_subject)
		check_followed(text, &outline.subject.digest);
	return 0;
}
