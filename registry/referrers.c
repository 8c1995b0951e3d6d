/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/referrers.h"

#include "layers/base/array.h"
#include "layers/blob.h"
#include "layers/digest_set.h"
#include "registry/closure.h"
#include "registry/inventory.h"
#include "registry/repository.h"

#include <stdio.h>

const char *referrers_tag(const struct digest *subject, char out[static REFERRERS_TAG_MAX])
{
	char text[DIGEST_TEXT_MAX];
	struct str hex = str_of(digest_format(subject, text));
	struct str algorithm;

	(void)str_cut(&hex, ':', &algorithm);
	if (algorithm.len > 32)
		algorithm.len = 32;
	(void)snprintf(out, REFERRERS_TAG_MAX, STR_FMT "-%.64s", STR_ARG(algorithm), hex.ptr);
	return out;
}

struct referrers {
	struct store *store;
	struct meta *meta;
	struct digest_set known; /* by their sha256: what is looked for in subjects, or was */
	struct digest *found;    /* owned; what is about them, in the order that it was found in */
	size_t count;
	const struct digest *subject; /* the one that is looked for */
};

static void auto_referrers_release(struct referrers *referrers)
{
	digest_set_done(&referrers->known);
	free(referrers->found);
}

static int referrers_add(void *ctx, const struct digest *digest, const json_t *descriptor,
			 struct err *err)
{
	struct referrers *referrers = ctx;
	struct digest blob;
	int fresh = blob_find_id(referrers->store, digest, &blob, err);

	(void)descriptor;
	if (fresh == 1)
		fresh = digest_set_add(&referrers->known, &blob, err);
	if (fresh <= 0)
		return fresh;
	if (array_make_room(&referrers->found, sizeof(*referrers->found), referrers->count,
			    REFERRERS_MAX, "referrers", err) < 0)
		return -1;
	referrers->found[referrers->count++] = blob;
	return 0;
}

static int referrers_look_in(void *ctx, struct str name, struct err *err)
{
	struct referrers *referrers = ctx;

	return repository_each_referrer(referrers->meta, name, referrers->subject, NULL,
					referrers_add, referrers, err);
}

static int referrers_look(struct referrers *referrers, const struct digest *subject,
			  struct err *err)
{
	referrers->subject = subject;
	return repository_each_name(referrers->meta, STR(""), referrers_look_in, referrers, err);
}

/* What is about a part of the image may name it as the image does, or by its sha256. */
static int referrers_look_at(struct referrers *referrers, const struct inventory_item *item,
			     struct err *err)
{
	struct digest id;
	int found = blob_find_id(referrers->store, &item->digest, &id, err);

	if (found <= 0 || referrers_look(referrers, &item->digest, err) < 0)
		return found < 0 ? -1 : 0;
	return digest_equal(&id, &item->digest) ? 0 : referrers_look(referrers, &id, err);
}

static int referrers_know(struct referrers *referrers, const struct inventory_item *item,
			  struct err *err)
{
	struct digest id;
	int found = blob_find_id(referrers->store, &item->digest, &id, err);

	if (found == 1)
		found = digest_set_add(&referrers->known, &id, err);
	return found < 0 ? -1 : 0;
}

int referrers_find(struct store *store, const struct digest *image, struct digest **out,
		   size_t *out_count, struct err *err)
{
	auto_inventory struct inventory inventory = {0};
	AUTO(referrers) struct referrers referrers = {0};
	AUTO(meta) struct meta *meta = NULL;

	if (inventory_read(store, image, &inventory, err) < 0 ||
	    meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	referrers.store = store;
	referrers.meta = meta;
	for (size_t i = 0; i < inventory.count; i++) {
		if (referrers_know(&referrers, &inventory.items[i], err) < 0)
			return -1;
	}
	for (size_t i = inventory.count; i > 0; i--) {
		if (referrers_look_at(&referrers, &inventory.items[i - 1], err) < 0)
			return -1;
	}
	for (size_t i = 0; i < referrers.count; i++) {
		const struct digest subject = referrers.found[i]; /* the array may move */

		if (referrers_look(&referrers, &subject, err) < 0)
			return -1;
	}
	*out = steal_ptr(&referrers.found);
	*out_count = referrers.count;
	return 0;
}
