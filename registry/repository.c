/* SPDX-License-Identifier: Apache-2.0 */
/* repository.c - one record, found, written and removed. */
#include "registry/repository_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/digest_json.h"
#include "layers/use.h"

#include <stdio.h>

static const char *const repository_sources[] = {"push", "bake", "mirror"};

int repository_key(struct str repository, char letter, const char *rest, struct repository_key *out,
		   struct err *err)
{
	if (repository.len == 0 || repository.len > GRAMMAR_NAME_MAX ||
	    memchr(repository.ptr, '!', repository.len))
		return err_set(err, ERR_INVALID, STR_FMT " is no name of a repository",
			       STR_ARG(repository));
	(void)snprintf(out->text, sizeof(out->text), STR_FMT "!%c!%s", STR_ARG(repository), letter,
		       rest);
	return 0;
}

static int repository_item_key(struct str repository, enum repository_kind kind,
			       const struct digest *digest, struct repository_key *out,
			       struct err *err)
{
	char text[DIGEST_TEXT_MAX];

	return repository_key(repository, REPOSITORY_LETTERS[kind], digest_format(digest, text),
			      out, err);
}

int repository_referrer_key(struct str repository, const struct digest *subject,
			    const struct digest *digest, struct repository_key *out,
			    struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	char hex[DIGEST_HEX_MAX];
	char rest[DIGEST_HEX_MAX + DIGEST_TEXT_MAX];
	struct digest named;

	digest_of(str_of(digest_format(subject, text)), &named);
	(void)snprintf(rest, sizeof(rest), "%s!%s", digest_hex(&named, hex),
		       digest ? digest_format(digest, text) : "");
	return repository_key(repository, 'r', rest, out, err);
}

static int repository_read_source(struct str text, enum repository_source *out, struct err *err)
{
	for (size_t i = 0; i < sizeof(repository_sources) / sizeof(repository_sources[0]); i++) {
		if (str_equal(text, str_of(repository_sources[i]))) {
			*out = (enum repository_source)i;
			return 0;
		}
	}
	return err_set(err, ERR_CORRUPT, "source: " STR_FMT " is none", STR_ARG(text));
}

static int repository_read_value(const json_t *value, struct repository_item *out, struct err *err)
{
	struct str source;
	struct str at;
	struct str type = STR("");
	int64_t size;

	if (digest_json_need(value, "", "blob", &out->blob, err) < 0 ||
	    json_need_int(value, "", "sizeBytes", &size, err) < 0 ||
	    json_need_string(value, "", "source", &source, err) < 0 ||
	    repository_read_source(source, &out->source, err) < 0 ||
	    json_need_string(value, "", "at", &at, err) < 0 ||
	    clock_parse(at, &out->at_ms, err) < 0 ||
	    json_get_string(value, "", "mediaType", &type, err) < 0)
		return -1;
	if (type.len >= sizeof(out->media_type))
		return err_set(err, ERR_CORRUPT, "mediaType: too long");
	out->size = (uint64_t)size;
	memcpy(out->media_type, type.ptr, type.len);
	out->media_type[type.len] = '\0';
	return 0;
}

int repository_read(struct str repository, enum repository_kind kind, const struct digest *digest,
		    const json_t *value, struct repository_item *out, struct err *err)
{
	struct repository_item item = {.kind = kind, .digest = *digest};
	char text[DIGEST_TEXT_MAX];
	struct err why;

	if (repository_read_value(value, &item, &why) < 0)
		return err_set(err, ERR_CORRUPT, "repositories: " STR_FMT " %s: %s",
			       STR_ARG(repository), digest_format(digest, text), why.text);
	*out = item;
	return 0;
}

static int repository_find_record(struct meta *meta, struct str repository,
				  enum repository_kind kind, const struct digest *digest,
				  struct repository_item *out, struct err *err)
{
	AUTO(json) json_t *value = NULL;
	struct repository_key key;
	int found;

	if (repository_item_key(repository, kind, digest, &key, err) < 0)
		return -1;
	found = meta_get(meta, REPOSITORY_TABLE, str_of(key.text), &value, err);
	if (found == 1 && repository_read(repository, kind, digest, value, out, err) < 0)
		return -1;
	return found;
}

void repository_read_receipt(const struct receipt *receipt, struct repository_item *out)
{
	*out = (struct repository_item){
		.kind = REPOSITORY_BLOB,
		.source = REPOSITORY_PUSHED,
		.digest = receipt->digest,
		.blob = receipt->blob,
		.size = receipt->size,
		.at_ms = receipt->at_ms,
	};
}

/* After a look at the receipts: one that is gone may have become a record since the snapshot. */
static int repository_find_since(struct meta *meta, struct str repository,
				 enum repository_kind kind, const struct digest *digest,
				 struct repository_item *out, struct err *err)
{
	AUTO(meta) struct meta *now = NULL;

	if (!meta_is_outdated(meta))
		return 0;
	if (meta_begin(meta_store(meta), META_READ, &now, err) < 0)
		return -1;
	return repository_find_record(now, repository, kind, digest, out, err);
}

int repository_find(struct meta *meta, struct str repository, enum repository_kind kind,
		    const struct digest *digest, struct repository_item *out, struct err *err)
{
	struct receipt receipt;
	int found = repository_find_record(meta, repository, kind, digest, out, err);

	if (found != 0 || kind != REPOSITORY_BLOB)
		return found;
	found = receipt_find(meta_store(meta), repository, digest, &receipt, err);
	if (found == 1)
		repository_read_receipt(&receipt, out);
	return found != 0 ? found : repository_find_since(meta, repository, kind, digest, out, err);
}

/* Members that others added stay, but for what it is about. */
static int repository_write(struct meta *meta, struct str repository,
			    const struct repository_item *item, const struct digest *subject,
			    struct err *err)
{
	AUTO(json) json_t *value = NULL;
	struct repository_key key;
	char at[CLOCK_TEXT_MAX];
	int found;

	if (repository_item_key(repository, item->kind, &item->digest, &key, err) < 0)
		return -1;
	found = meta_get(meta, REPOSITORY_TABLE, str_of(key.text), &value, err);
	if (found < 0)
		return -1;
	if (found == 0)
		value = json_object();
	json_set_int(value, "v", 1);
	digest_json_set(value, "blob", &item->blob);
	json_set_size(value, "sizeBytes", item->size);
	json_set_text(value, "source", repository_sources[item->source]);
	json_set_text(value, "at", clock_format(item->at_ms, at));
	if (item->media_type[0])
		json_set_text(value, "mediaType", item->media_type);
	if (subject)
		digest_json_set(value, "subject", subject);
	return meta_put(meta, REPOSITORY_TABLE, str_of(key.text), value, err);
}

/* What was pushed before stays pushed; what only would become as it is stays unwritten. */
static int repository_settle(struct meta *meta, struct str repository, struct repository_item *item,
			     bool *out_same, struct err *err)
{
	struct repository_item old = {.source = item->source};
	int found = repository_find(meta, repository, item->kind, &item->digest, &old, err);

	*out_same = false;
	if (found <= 0)
		return found;
	if (old.source == REPOSITORY_PUSHED)
		item->source = REPOSITORY_PUSHED;
	*out_same = item->source == old.source && item->source == REPOSITORY_BAKED &&
		    strcmp(item->media_type, old.media_type) == 0;
	return 0;
}

/* Records call a blob by its sha256, whatever the caller knows it by. */
static int repository_name_blob(struct meta *meta, struct repository_item *item, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	int found;

	if (item->blob.algorithm == DIGEST_SHA256)
		return 0;
	found = blob_find_id(meta_store(meta), &item->blob, &item->blob, err);
	return found != 0 ? found
			  : err_set(err, ERR_NOT_FOUND, "no blob %s",
				    digest_format(&item->blob, text));
}

static int repository_put_about(struct meta *meta, struct str repository,
				const struct repository_item *item, const struct digest *subject,
				struct err *err)
{
	struct repository_item settled = *item;
	bool same;

	if (repository_name_blob(meta, &settled, err) < 0 ||
	    repository_settle(meta, repository, &settled, &same, err) < 0)
		return -1;
	return same ? 0 : repository_write(meta, repository, &settled, subject, err);
}

int repository_put(struct meta *meta, struct str repository, const struct repository_item *item,
		   struct err *err)
{
	return repository_put_about(meta, repository, item, NULL, err);
}

int repository_has_record(struct meta *meta, struct str repository,
			  const struct repository_item *item, struct err *err)
{
	struct repository_key key;

	if (repository_item_key(repository, item->kind, &item->digest, &key, err) < 0)
		return -1;
	return meta_has(meta, REPOSITORY_TABLE, str_of(key.text), err);
}

int repository_confirm(struct meta *meta, struct str repository, const struct repository_item *item,
		       struct err *err)
{
	int has = repository_has_record(meta, repository, item, err);

	if (has != 0)
		return has < 0 ? -1 : 0;
	return repository_write(meta, repository, item, NULL, err);
}

int repository_put_receipt(struct meta *meta, const struct receipt *receipt, struct err *err)
{
	struct str name = str_of(receipt->name);
	struct repository_item item;
	struct repository_item old;
	int found;

	repository_read_receipt(receipt, &item);
	found = repository_find_record(meta, name, REPOSITORY_BLOB, &item.digest, &old, err);
	if (found < 0)
		return -1;
	if (found == 1 && old.at_ms > item.at_ms)
		item.at_ms = old.at_ms;
	return repository_put(meta, name, &item, err);
}

static json_t *repository_descriptor(const struct repository_item *item,
				     const struct outline *outline)
{
	json_t *descriptor = json_object();

	json_set_text(descriptor, "mediaType", item->media_type);
	digest_json_set(descriptor, "digest", &item->digest);
	json_set_size(descriptor, "size", item->size);
	if (outline->artifact_type.len > 0)
		json_set(descriptor, "artifactType", json_from_str(outline->artifact_type));
	if (outline->annotations)
		json_set(descriptor, "annotations", json_incref(outline->annotations));
	return descriptor;
}

static int repository_put_referrer(struct meta *meta, struct str repository,
				   const struct repository_item *item,
				   const struct outline *outline, struct err *err)
{
	const struct digest *subject = &outline->subject.digest;
	AUTO(json) json_t *value = json_object();
	struct repository_key key;

	if (repository_referrer_key(repository, subject, &item->digest, &key, err) < 0)
		return -1;
	json_set_int(value, "v", 1);
	digest_json_set(value, "subject", subject);
	digest_json_set(value, "digest", &item->digest);
	json_set(value, "descriptor", repository_descriptor(item, outline));
	return meta_put(meta, REPOSITORY_TABLE, str_of(key.text), value, err);
}

int repository_put_manifest(struct meta *meta, struct str repository,
			    const struct repository_item *item, const struct outline *outline,
			    struct err *err)
{
	if (outline->has_subject &&
	    repository_put_referrer(meta, repository, item, outline, err) < 0)
		return -1;
	return repository_put_about(meta, repository, item,
				    outline->has_subject ? &outline->subject.digest : NULL, err);
}

int repository_release(struct meta *meta, struct str repository, const struct repository_item *item,
		       struct err *err)
{
	struct repository_item released = *item;

	released.source = REPOSITORY_BAKED;
	return repository_write(meta, repository, &released, NULL, err);
}

static int repository_del_referrer(struct meta *meta, struct str repository,
				   const struct digest *digest, const json_t *value,
				   struct err *err)
{
	struct repository_key key;
	struct digest subject;
	struct err none;

	if (digest_json_need(value, "", "subject", &subject, &none) < 0)
		return 0;
	if (repository_referrer_key(repository, &subject, digest, &key, err) < 0)
		return -1;
	return meta_del(meta, REPOSITORY_TABLE, str_of(key.text), err);
}

static int repository_del_record(struct meta *meta, struct str repository,
				 enum repository_kind kind, const struct digest *digest,
				 struct err *err)
{
	AUTO(json) json_t *value = NULL;
	struct repository_key key;
	int found;

	if (repository_item_key(repository, kind, digest, &key, err) < 0)
		return -1;
	found = meta_get(meta, REPOSITORY_TABLE, str_of(key.text), &value, err);
	if (found <= 0)
		return found;
	if (repository_del_referrer(meta, repository, digest, value, err) < 0)
		return -1;
	return meta_del(meta, REPOSITORY_TABLE, str_of(key.text), err);
}

int repository_del(struct meta *meta, struct str repository, enum repository_kind kind,
		   const struct digest *digest, struct err *err)
{
	int received = kind == REPOSITORY_BLOB
			       ? receipt_drop(meta_store(meta), repository, digest, err)
			       : 0;
	int recorded;

	if (received < 0)
		return -1;
	recorded = repository_del_record(meta, repository, kind, digest, err);
	return recorded == 0 ? received : recorded;
}

void repository_note(struct store *store, const struct repository_item *item)
{
	use_note(store, &item->blob);
}
