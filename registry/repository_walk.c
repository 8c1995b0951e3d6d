/* SPDX-License-Identifier: Apache-2.0 */
/* repository_walk.c - all that there is of a kind: records, and receipts of blobs. */
#include "registry/repository_priv.h"

#include "layers/digest_json.h"

#include <stdio.h>

#define REPOSITORY_RECEIPTS 64 /* read at a time */
#define REPOSITORY_PREFIX_MAX (GRAMMAR_NAME_MAX + sizeof("!m!"))

static int repository_has(struct meta *meta, struct str repository, enum repository_kind kind,
			  struct err *err)
{
	struct repository_key prefix;
	struct str first;

	if (repository_key(repository, REPOSITORY_LETTERS[kind], "", &prefix, err) < 0)
		return -1;
	return meta_find_end(meta, REPOSITORY_TABLE, str_of(prefix.text), META_FIRST, &first, err);
}

int repository_exists(struct meta *meta, struct str repository, struct err *err)
{
	return repository_has(meta, repository, REPOSITORY_MANIFEST, err);
}

static int repository_has_any(struct meta *meta, struct str repository, struct err *err)
{
	int found = repository_exists(meta, repository, err);

	return found != 0 ? found : repository_has(meta, repository, REPOSITORY_BLOB, err);
}

int repository_is_begun(struct meta *meta, struct str repository, struct err *err)
{
	AUTO(meta) struct meta *now = NULL;
	int found = repository_has_any(meta, repository, err);

	if (found == 0)
		found = receipt_exists(meta_store(meta), repository, err);
	if (found != 0 || !meta_is_outdated(meta))
		return found;
	/* A receipt that is gone may have become a record since the snapshot. */
	if (meta_begin(meta_store(meta), META_READ, &now, err) < 0)
		return -1;
	return repository_has_any(now, repository, err);
}

struct repository_walk {
	repository_each_fn *fn;
	void *ctx;
};

/* NAME!LETTER!DIGEST of an item; false for what else there is. */
static bool repository_split(struct str key, struct str *name, enum repository_kind *kind,
			     struct digest *digest)
{
	struct str letter;
	struct err none;

	if (!str_cut(&key, '!', name) || !str_cut(&key, '!', &letter) || letter.len != 1 ||
	    letter.ptr[0] == 'r')
		return false;
	*kind = letter.ptr[0] == 'm' ? REPOSITORY_MANIFEST : REPOSITORY_BLOB;
	return digest_parse(key, digest, &none) == 0;
}

static int repository_walk_record(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct repository_walk *walk = ctx;
	struct repository_item item;
	enum repository_kind kind;
	struct digest digest;
	struct str name;

	if (!repository_split(key, &name, &kind, &digest))
		return 0;
	if (repository_read(name, kind, &digest, value, &item, err) < 0)
		return -1;
	return walk->fn(walk->ctx, name, &item, err);
}

/* What the record says is said already. */
static int repository_walk_receipt(const struct repository_walk *walk, struct meta *meta,
				   const struct receipt *receipt, struct err *err)
{
	struct str name = str_of(receipt->name);
	struct repository_item item;
	int has;

	repository_read_receipt(receipt, &item);
	has = repository_has_record(meta, name, &item, err);
	if (has != 0)
		return has < 0 ? -1 : 0;
	return walk->fn(walk->ctx, name, &item, err);
}

static int repository_walk_receipts(const struct repository_walk *walk, struct meta *meta,
				    struct err *err)
{
	struct receipt some[REPOSITORY_RECEIPTS];
	int count = receipt_read(meta_store(meta), NULL, some, REPOSITORY_RECEIPTS, err);

	while (count > 0) {
		const struct receipt last = some[count - 1];

		for (int i = 0; i < count; i++) {
			int result = repository_walk_receipt(walk, meta, &some[i], err);

			if (result != 0)
				return result;
		}
		count = receipt_read(meta_store(meta), &last, some, REPOSITORY_RECEIPTS, err);
	}
	return count;
}

int repository_each(struct meta *meta, repository_each_fn *fn, void *ctx, struct err *err)
{
	struct repository_walk walk = {fn, ctx};
	int result = meta_each(meta, REPOSITORY_TABLE, STR(""), repository_walk_record, &walk, err);

	return result != 0 ? result : repository_walk_receipts(&walk, meta, err);
}

int repository_each_in(struct meta *meta, struct str repository, enum repository_kind kind,
		       repository_each_fn *fn, void *ctx, struct err *err)
{
	struct repository_walk walk = {fn, ctx};
	struct repository_key prefix;

	if (repository_key(repository, REPOSITORY_LETTERS[kind], "", &prefix, err) < 0)
		return -1;
	return meta_each(meta, REPOSITORY_TABLE, str_of(prefix.text), repository_walk_record, &walk,
			 err);
}

static int repository_take_name(void *ctx, struct str key, struct err *err)
{
	struct str name;

	if (!str_cut(&key, '!', &name) || name.len > GRAMMAR_NAME_MAX)
		return err_set(err, ERR_CORRUPT, "repositories: a key is none");
	(void)snprintf(ctx, GRAMMAR_NAME_MAX + 1, STR_FMT, STR_ARG(name));
	return 1;
}

static int repository_next_recorded(struct meta *meta, char name[static GRAMMAR_NAME_MAX + 1],
				    struct err *err)
{
	char after[REPOSITORY_PREFIX_MAX];

	/* '~' comes behind each letter */
	(void)snprintf(after, sizeof(after), "%s%s", name, name[0] ? "!~" : "");
	return meta_each_key(meta, REPOSITORY_TABLE, STR(""), str_of(after), repository_take_name,
			     name, err);
}

int repository_next_name(struct meta *meta, char name[static GRAMMAR_NAME_MAX + 1], struct err *err)
{
	char received[RECEIPT_NAME_MAX + 1];
	int recorded;
	int more;

	memcpy(received, name, strlen(name) + 1);
	recorded = repository_next_recorded(meta, name, err);
	more = recorded < 0 ? -1 : receipt_next_name(meta_store(meta), received, err);
	if (more != 1)
		return more < 0 ? -1 : recorded;
	if (recorded == 0 || strcmp(received, name) < 0)
		memcpy(name, received, sizeof(received));
	return 1;
}

int repository_each_name(struct meta *meta, struct str after, repository_name_fn *fn, void *ctx,
			 struct err *err)
{
	char name[GRAMMAR_NAME_MAX + 1];
	int more;

	(void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(after));
	while ((more = repository_next_name(meta, name, err)) == 1) {
		int exists = repository_exists(meta, str_of(name), err);
		int result = exists == 1 ? fn(ctx, str_of(name), err) : exists;

		if (result != 0)
			return result;
	}
	return more;
}

int repository_has_referrer(struct meta *meta, struct str repository, const struct digest *subject,
			    const struct digest *digest, struct err *err)
{
	struct repository_key key;

	if (repository_referrer_key(repository, subject, digest, &key, err) < 0)
		return -1;
	return meta_has(meta, REPOSITORY_TABLE, str_of(key.text), err);
}

struct repository_referrers {
	const struct digest *subject;
	repository_referrer_fn *fn;
	void *ctx;
};

static int repository_visit_referrer(void *ctx, struct str key, const json_t *value,
				     struct err *err)
{
	const struct repository_referrers *walk = ctx;
	json_t *descriptor;
	struct digest subject;
	struct digest digest;
	struct err why;

	if (digest_json_need(value, "", "subject", &subject, &why) < 0 ||
	    digest_json_need(value, "", "digest", &digest, &why) < 0 ||
	    json_need_object(value, "", "descriptor", &descriptor, &why) < 0)
		return err_set(err, ERR_CORRUPT, "repositories: " STR_FMT ": %s", STR_ARG(key),
			       why.text);
	if (!digest_equal(&subject, walk->subject))
		return 0;
	return walk->fn(walk->ctx, &digest, descriptor, err);
}

int repository_each_referrer(struct meta *meta, struct str repository, const struct digest *subject,
			     const struct digest *after, repository_referrer_fn *fn, void *ctx,
			     struct err *err)
{
	struct repository_referrers walk = {subject, fn, ctx};
	struct repository_key start = {.text = ""};
	struct repository_key prefix;

	if (repository_referrer_key(repository, subject, NULL, &prefix, err) < 0 ||
	    (after && repository_referrer_key(repository, subject, after, &start, err) < 0))
		return -1;
	return meta_each_after(meta, REPOSITORY_TABLE, str_of(prefix.text), str_of(start.text),
			       repository_visit_referrer, &walk, err);
}
