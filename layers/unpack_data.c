/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_data.c - the bytes of a file, and the holes between them.
 *
 * libarchive passes over what makes no sense in a sparse map, and stops at its
 * end or that of the data, whichever comes first; so a map is judged by what
 * comes out: rising, inside the file, and all of it.
 *
 * A map is coarse (DIFF_SPARSE_GRAIN), so blocks of zeros in a sparse file are
 * holes, too: it takes no more room than the file that it was made of.
 */
#include "layers/base/fd.h"
#include "layers/unpack_priv.h"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

struct data {
	struct unpack *unpack;
	int fd;
	int64_t size;
	bool sparse;
	int64_t mapped; /* bytes that the map of a sparse file promises */
	int64_t taken;
	int64_t end; /* of what was taken last */
};

static int data_tar_error(const struct data *data, struct err *err)
{
	if (data->unpack->source_failed) {
		*err = data->unpack->source_err;
		return -1;
	}
	return err_set(err, ERR_CORRUPT, "%s", archive_error_string(data->unpack->archive));
}

static int data_begin(struct data *data, struct archive_entry *raw, struct err *err)
{
	la_int64_t offset;
	la_int64_t len;

	data->size = archive_entry_size(raw);
	if (data->size < 0)
		return err_set(err, ERR_CORRUPT, "its size is malformed");
	if (data->size > UNPACK_FILE_MAX)
		return err_set(err, ERR_UNSUPPORTED,
			       "it has %lld bytes, and no file may have more than %lld",
			       (long long)data->size, (long long)UNPACK_FILE_MAX);
	data->sparse = archive_entry_sparse_reset(raw) > 0;
	while (data->sparse && archive_entry_sparse_next(raw, &offset, &len) == ARCHIVE_OK)
		data->mapped += len; /* in order and apart, so it is no more than the size */
	return 0;
}

/* Why its data or size could not be written: *err says, unless the file is too large. */
static int data_write_failed(const struct data *data, struct err *err)
{
	if (err->os != EFBIG)
		return -1;
	return err_set(err, ERR_UNSUPPORTED,
		       "it has %lld bytes, and the data directory's file system has no files as "
		       "large",
		       (long long)data->size);
}

static int data_take(struct data *data, struct str bytes, int64_t offset, struct err *err)
{
	if (bytes.len == 0)
		return 0;
	if (offset < data->end || (int64_t)bytes.len > data->size - offset)
		return err_set(err, ERR_CORRUPT, "its sparse map is malformed");
	data->end = offset + (int64_t)bytes.len;
	data->taken += (int64_t)bytes.len;
	if (data->unpack->twin) {
		twin_take(data->unpack->twin, bytes, offset);
		return 0;
	}
	if (data->sparse ? fd_pwrite_sparse(data->fd, bytes.ptr, bytes.len, offset, err) < 0
			 : fd_pwrite_all(data->fd, bytes.ptr, bytes.len, offset, err) < 0)
		return data_write_failed(data, err);
	return 0;
}

static int data_finish(const struct data *data, struct err *err)
{
	if (data->sparse && data->taken != data->mapped)
		return err_set(err, ERR_CORRUPT, "its sparse map is not that of its data");
	if (data->unpack->twin && data->size > 0)
		twin_close(data->unpack->twin, data->size);
	if ((data->sparse || data->end < data->size || data->unpack->twin) &&
	    ftruncate(data->fd, data->size) < 0) {
		(void)err_os(err, errno, "set size");
		return data_write_failed(data, err);
	}
	return 0;
}

int unpack_data(struct unpack *unpack, struct archive_entry *raw, int fd, struct err *err)
{
	struct data data = {.unpack = unpack, .fd = fd};
	const void *bytes;
	size_t len;
	int64_t offset;
	int got;

	if (data_begin(&data, raw, err) < 0)
		return -1;
	if (unpack->twin && data.size > 0)
		twin_open(unpack->twin, unpack->name.path.ptr, fd);
	while ((got = archive_read_data_block(unpack->archive, &bytes, &len, &offset)) ==
	       ARCHIVE_OK) {
		if (data_take(&data, (struct str){bytes, len}, offset, err) < 0)
			return -1;
	}
	if (got != ARCHIVE_EOF)
		return data_tar_error(&data, err);
	return data_finish(&data, err);
}
