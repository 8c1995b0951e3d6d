/* SPDX-License-Identifier: Apache-2.0 */
/* origin_layout.c - oci: a directory in the OCI image layout. */
#include "registry/layout_priv.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"

#include <fcntl.h>
#include <inttypes.h>

#define ORIGIN_READ_SIZE ((size_t)256 * 1024)

struct origin_layout {
	struct origin origin;
	const struct reference *reference;
	const struct cancel *cancel;
	const struct cancel *stop;
	int dirfd;
};

static int origin_layout_resolve(struct origin *origin, struct digest *out, struct err *err)
{
	const struct origin_layout *layout = (const struct origin_layout *)origin;
	AUTO(json) json_t *document = NULL;
	const json_t *entry;
	json_t *list;

	if (layout_read_index(layout->dirfd, &document, &list, err) < 0 ||
	    layout_choose(list, layout->reference->tag, &entry, out, err) < 0)
		return err_ctx(err, STR_FMT, STR_ARG(layout->reference->path));
	origin_add_name(origin, layout_entry_image(entry));
	return 0;
}

static int origin_layout_document(struct origin *origin, const struct digest *digest,
				  struct buf *out, struct err *err)
{
	const struct origin_layout *layout = (const struct origin_layout *)origin;
	char name[LAYOUT_BLOB_NAME_MAX];

	if (layout_read_file(layout->dirfd, layout_blob_name(digest, name), out, err) < 0)
		return -1;
	if (!digest_is_of(digest, buf_str(out)))
		return err_set(err, ERR_CORRUPT, "the layout's %s is not what its name says", name);
	return 0;
}

/* Read what is there now; a file that shrinks or grows meanwhile is told by its size. */
static int origin_layout_copy(const struct origin_layout *layout, int fd,
			      const struct descriptor *blob, struct sink *out, struct err *err)
{
	auto_free char *chunk = malloc(ORIGIN_READ_SIZE);
	uint64_t left = blob->size;

	if (!chunk)
		abort();
	while (left > 0) {
		ssize_t n = read(fd, chunk, left < ORIGIN_READ_SIZE ? left : ORIGIN_READ_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(err, errno, "read a blob");
		if (n == 0)
			return err_set(err, ERR_CORRUPT, "a blob of the layout ends early");
		if (cancel_check(layout->cancel, err) < 0 || cancel_check(layout->stop, err) < 0 ||
		    out->write(out, (struct str){chunk, (size_t)n}, err) < 0)
			return -1;
		left -= (uint64_t)n;
	}
	return 0;
}

static int origin_layout_blob(struct origin *origin, size_t lane, const struct descriptor *blob,
			      struct sink *out, struct err *err)
{
	const struct origin_layout *layout = (const struct origin_layout *)origin;
	char name[LAYOUT_BLOB_NAME_MAX];
	auto_close int fd = -1;
	uint64_t size;

	(void)lane; /* files need no connection */
	fd = layout_open_file(layout->dirfd, layout_blob_name(&blob->digest, name), &size, err);
	if (fd < 0)
		return -1;
	if (size != blob->size)
		return err_set(err, ERR_CORRUPT,
			       "the layout's %s has %" PRIu64 " bytes, the manifest says %" PRIu64,
			       name, size, blob->size);
	return origin_layout_copy(layout, fd, blob, out, err);
}

static void origin_layout_close(struct origin *origin)
{
	struct origin_layout *layout = container_of(origin, struct origin_layout, origin);

	auto_close_release(&layout->dirfd);
	json_decref(origin->names);
	free(layout);
}

int origin_layout_open(const struct pull_spec *spec, const struct cancel *stop, struct origin **out,
		       struct err *err)
{
	struct origin_layout *layout = calloc(1, sizeof(*layout));

	if (!layout)
		abort();
	layout->origin = (struct origin){.resolve = origin_layout_resolve,
					 .document = origin_layout_document,
					 .blob = origin_layout_blob,
					 .close = origin_layout_close};
	layout->reference = spec->reference;
	layout->cancel = spec->cancel;
	layout->stop = stop;
	layout->dirfd = -1;
	if (layout_open(spec->reference->path, &layout->dirfd, err) < 0) {
		origin_layout_close(&layout->origin);
		return -1;
	}
	*out = &layout->origin;
	return 0;
}
