/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/origin_priv.h"
#include "registry/pull.h"
#include "registry/tar_index_priv.h"

void origin_add_name(struct origin *origin, struct str text)
{
	auto_buf struct buf name = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct reference reference;
	struct err ignored;

	if (reference_parse(text, &reference, &ignored) < 0 ||
	    reference.kind != REFERENCE_REGISTRY || reference.has_digest ||
	    reference_format(&reference, &name, &ignored) < 0)
		return;
	if (!origin->names)
		origin->names = json_array();
	if (json_array_append_new(origin->names, json_from_str(buf_str(&name))) < 0)
		abort();
}

static int origin_open_archive(const struct pull_spec *spec, struct store *store,
			       const struct cancel *stop, struct origin **out, struct err *err)
{
	const struct tar_source source = {.store = store,
					  .path = spec->reference->path,
					  .streamfd = spec->streamfd,
					  .cancel = spec->cancel,
					  .cancel_too = stop};
	enum reference_kind kind = spec->reference->kind;
	AUTO(tar_index) struct tar_index *tar = NULL;
	struct tar_file file;
	int found;

	if (!store)
		return err_set(err, ERR_UNSUPPORTED, "an archive cannot be asked without a store");
	if (tar_index_open(&source, &tar, err) < 0)
		return -1;
	if (spec->any_archive) {
		found = tar_index_find(tar, STR("index.json"), &file, err);
		if (found < 0)
			return -1;
		kind = found ? REFERENCE_OCI_ARCHIVE : REFERENCE_DOCKER_ARCHIVE;
	}
	if (kind == REFERENCE_OCI_ARCHIVE)
		origin_archive_open(spec, steal_ptr(&tar), out);
	else
		origin_docker_open(spec, steal_ptr(&tar), out);
	return 0;
}

int origin_open(const struct pull_spec *spec, struct store *store, const struct cancel *stop,
		struct origin **out, struct err *err)
{
	switch (spec->reference->kind) {
	case REFERENCE_SCRATCH:
		break;
	case REFERENCE_LAYOUT:
		return origin_layout_open(spec, stop, out, err);
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
		return origin_open_archive(spec, store, stop, out, err);
	case REFERENCE_REGISTRY:
		return origin_registry_open(spec, stop, out, err);
	}
	return err_set(err, ERR_INVALID, "scratch is nothing that could be read");
}
