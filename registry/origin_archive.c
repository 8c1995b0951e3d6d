/* SPDX-License-Identifier: Apache-2.0 */
/* origin_archive.c - oci-archive: a tar of a layout. */
#include "registry/layout_priv.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"
#include "registry/tar_index_priv.h"

#include <inttypes.h>

struct origin_archive {
	struct origin origin;
	const struct reference *reference;
	struct tar_index *tar; /* owned */
};

static int origin_archive_resolve(struct origin *origin, struct digest *out, struct err *err)
{
	struct origin_archive *archive = container_of(origin, struct origin_archive, origin);
	auto_buf struct buf text = BUF_INIT(LAYOUT_INDEX_MAX);
	AUTO(json) json_t *document = NULL;
	const json_t *entry;
	json_t *list;

	if (tar_index_read(archive->tar, STR("index.json"), &text, err) < 0)
		return err->kind == ERR_NOT_FOUND
			       ? err_set(err, ERR_CORRUPT,
					 "no index.json, as a layout has; docker-archive: reads "
					 "what docker save writes")
			       : -1;
	if (layout_parse_index(buf_str(&text), &document, &list, err) < 0 ||
	    layout_choose(list, archive->reference->tag, &entry, out, err) < 0)
		return -1;
	origin_add_name(origin, layout_entry_image(entry));
	return 0;
}

static int origin_archive_document(struct origin *origin, const struct digest *digest,
				   struct buf *out, struct err *err)
{
	const struct origin_archive *archive = container_of(origin, struct origin_archive, origin);
	char name[LAYOUT_BLOB_NAME_MAX];

	if (tar_index_read(archive->tar, str_of(layout_blob_name(digest, name)), out, err) < 0)
		return -1;
	if (!digest_is_of(digest, buf_str(out)))
		return err_set(err, ERR_CORRUPT, "the archive's %s is not what its name says",
			       name);
	return 0;
}

static int origin_archive_blob(struct origin *origin, size_t lane, const struct descriptor *blob,
			       struct sink *out, struct err *err)
{
	const struct origin_archive *archive = container_of(origin, struct origin_archive, origin);
	char name[LAYOUT_BLOB_NAME_MAX];
	struct tar_file file;
	int found;

	(void)lane; /* files need no connection */
	layout_blob_name(&blob->digest, name);
	found = tar_index_find(archive->tar, str_of(name), &file, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_CORRUPT, "the archive has no %s", name);
	if (file.size != blob->size)
		return err_set(err, ERR_CORRUPT,
			       "the archive's %s has %" PRIu64 " bytes, the manifest says %" PRIu64,
			       name, file.size, blob->size);
	return tar_index_copy(archive->tar, &file, out, err);
}

static void origin_archive_close(struct origin *origin)
{
	struct origin_archive *archive = container_of(origin, struct origin_archive, origin);

	tar_index_close(archive->tar);
	json_decref(origin->names);
	free(archive);
}

void origin_archive_open(const struct pull_spec *spec, struct tar_index *tar, struct origin **out)
{
	struct origin_archive *archive = calloc(1, sizeof(*archive));

	if (!archive)
		abort();
	archive->origin = (struct origin){.resolve = origin_archive_resolve,
					  .document = origin_archive_document,
					  .blob = origin_archive_blob,
					  .close = origin_archive_close};
	archive->reference = spec->reference;
	archive->tar = tar;
	*out = &archive->origin;
}
