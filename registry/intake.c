/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/intake.h"

#include "layers/base/clock.h"
#include "registry/repository.h"

struct intake {
	struct store *store;
	struct digest digest;
	struct blob_writer *writer;
	uint64_t size;
};

int intake_open(struct store *store, const struct digest *digest, struct intake **out,
		struct err *err)
{
	AUTO(intake) struct intake *intake = calloc(1, sizeof(*intake));

	if (!intake)
		abort();
	*intake = (struct intake){.store = store, .digest = *digest};
	if (blob_writer_open(store, &intake->writer, err) < 0)
		return -1;
	blob_writer_hash_as(intake->writer, digest->algorithm);
	*out = steal_ptr(&intake);
	return 0;
}

void intake_close(struct intake *intake)
{
	if (!intake)
		return;
	blob_writer_close(intake->writer);
	free(intake);
}

int intake_add(struct intake *intake, struct str bytes, struct err *err)
{
	intake->size += bytes.len;
	return blob_writer_add(intake->writer, bytes, err);
}

uint64_t intake_size(const struct intake *intake)
{
	return intake->size;
}

int intake_check(struct intake *intake, struct err *err)
{
	return blob_writer_check(intake->writer, &intake->digest, err);
}

/* The repository holds a blob of the store, which a lease keeps. */
static int intake_record(struct store *store, struct str repository, const struct digest *digest,
			 const struct blob_info *blob, struct err *err)
{
	const struct repository_item item = {
		.kind = REPOSITORY_BLOB,
		.source = REPOSITORY_PUSHED,
		.digest = *digest,
		.blob = blob->digest,
		.size = blob->size,
		.at_ms = clock_now_ms(),
	};
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_SHARED, &meta, err) < 0 ||
	    repository_put(meta, repository, &item, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

int intake_keep(struct intake *intake, struct str repository, struct err *err)
{
	struct blob_info blob;

	blob_writer_receipt(intake->writer, repository);
	return blob_writer_commit(intake->writer, &intake->digest, &blob, err);
}

int intake_find(struct store *store, struct lease *lease, const struct digest *digest,
		struct blob_info *out, struct err *err)
{
	struct digest id;
	int found = blob_find_id(store, digest, &id, err);

	if (found <= 0)
		return found;
	if (lease_add(lease, &id, err) < 0 || lease_rest(lease, err) < 0)
		return -1;
	return blob_find(store, digest, out, err);
}

int intake_mount(struct store *store, const struct digest *digest, struct str repository,
		 struct err *err)
{
	AUTO(lease) struct lease *lease = NULL;
	struct blob_info blob;
	int found;

	if (lease_open(store, &lease, err) < 0)
		return -1;
	found = intake_find(store, lease, digest, &blob, err);
	if (found <= 0)
		return found;
	return intake_record(store, repository, digest, &blob, err) < 0 ? -1 : 1;
}
