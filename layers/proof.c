/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - table `tars`: blob digest -> v, diffId: of the tar that was inflated
 * from it, diffIdSha512: of the same, where somebody asked for that.
 */
#include "layers/proof.h"

#include "layers/blob.h"
#include "layers/digest_json.h"

#define PROOF_TABLE "tars"

static const char *const proof_members[] = {
	[DIGEST_SHA256] = "diffId",
	[DIGEST_SHA512] = "diffIdSha512",
};

int proof_find(struct meta *meta, const struct digest *blob, enum digest_algorithm algorithm,
	       struct digest *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char key[DIGEST_TEXT_MAX];
	int found = meta_get(meta, PROOF_TABLE, str_of(digest_format(blob, key)), &record, err);

	if (found <= 0)
		return found;
	if (algorithm != DIGEST_SHA256 && !json_object_get(record, proof_members[algorithm]))
		return 0;
	return digest_json_need(record, key, proof_members[algorithm], out, err) < 0 ? -1 : 1;
}

int proof_compare(const struct digest *tar, const struct digest *claimed, struct err *err)
{
	char have[DIGEST_TEXT_MAX];
	char want[DIGEST_TEXT_MAX];

	if (digest_equal(tar, claimed))
		return 0;
	return err_set(err, ERR_CORRUPT, "its tar is %s, the image's config says %s",
		       digest_format(tar, have), digest_format(claimed, want));
}

int proof_check(struct meta *meta, const struct digest *blob, const struct digest *claimed,
		struct digest *out, struct err *err)
{
	struct digest known;
	int found = proof_find(meta, blob, claimed->algorithm, &known, err);

	if (found != 1)
		return found;
	if (proof_compare(&known, claimed, err) < 0)
		return -1;
	if (claimed->algorithm != DIGEST_SHA256)
		return proof_find(meta, blob, DIGEST_SHA256, out, err);
	*out = known;
	return 1;
}

int proof_put(struct meta *meta, const struct digest *blob, const struct digest *diff_id,
	      struct err *err)
{
	const char *member = proof_members[diff_id->algorithm];
	AUTO(json) json_t *record = NULL;
	char key[DIGEST_TEXT_MAX];
	int found = meta_get(meta, PROOF_TABLE, str_of(digest_format(blob, key)), &record, err);

	if (found < 0)
		return -1;
	if (found == 0)
		record = json_pack("{s:i}", "v", 1);
	if (json_object_get(record, member))
		return 0;
	digest_json_set(record, member, diff_id);
	return meta_put(meta, PROOF_TABLE, str_of(key), record, err);
}

int proof_remove(struct meta *meta, const struct digest *blob, struct err *err)
{
	char key[DIGEST_TEXT_MAX];

	return meta_del(meta, PROOF_TABLE, str_of(digest_format(blob, key)), err);
}

struct proof_walk {
	proof_each_fn *fn;
	void *ctx;
};

static int proof_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct proof_walk *walk = ctx;
	struct digest blob;
	struct digest diff_id;

	if (digest_parse(key, &blob, err) < 0 ||
	    digest_json_need(value, PROOF_TABLE, "diffId", &diff_id, err) < 0)
		return err_ctx(err, PROOF_TABLE " " STR_FMT, STR_ARG(key));
	return walk->fn(walk->ctx, &blob, &diff_id, err);
}

int proof_each(struct meta *meta, proof_each_fn *fn, void *ctx, struct err *err)
{
	struct proof_walk walk = {fn, ctx};

	return meta_each(meta, PROOF_TABLE, STR(""), proof_visit, &walk, err);
}

struct proof_sweep {
	struct store *store;
	struct meta *meta; /* writing */
};

static int proof_sweep_one(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct proof_sweep *sweep = ctx;
	struct blob_info info;
	struct digest blob;
	int found;

	(void)value;
	if (digest_parse(key, &blob, err) < 0)
		return err_ctx(err, "%s " STR_FMT, PROOF_TABLE, STR_ARG(key));
	found = blob_find(sweep->store, &blob, &info, err);
	if (found == 0)
		found = meta_del(sweep->meta, PROOF_TABLE, key, err);
	return found < 0 ? -1 : 0;
}

/* A proof of a blob that comes back meanwhile is lost, and made again: no harm. */
int proof_sweep(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct proof_sweep sweep = {.store = store};

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	sweep.meta = meta;
	if (meta_each(meta, PROOF_TABLE, STR(""), proof_sweep_one, &sweep, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}
