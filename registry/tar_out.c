/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_out_priv.h"

#include "layers/tar_header.h"

#include <assert.h>

int tar_out_begin_file(struct sink *out, const char *name, uint64_t size, struct err *err)
{
	const struct tar_fields fields = {
		.type = '0', .name = str_of(name), .link = STR(""), .mode = 0644, .size = size};
	struct tar_header header;

	assert(fields.name.len < TAR_OUT_NAME_MAX);
	tar_header_make(&fields, &header);
	return out->write(out, (struct str){(const char *)&header, sizeof(header)}, err);
}

int tar_out_end_file(struct sink *out, uint64_t size, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	size_t over = (size_t)(size % TAR_BLOCK);

	return over ? out->write(out, (struct str){zeros, TAR_BLOCK - over}, err) : 0;
}

int tar_out_file(struct sink *out, const char *name, struct str bytes, struct err *err)
{
	if (tar_out_begin_file(out, name, bytes.len, err) < 0)
		return -1;
	if (bytes.len > 0 && out->write(out, bytes, err) < 0)
		return -1;
	return tar_out_end_file(out, bytes.len, err);
}

int tar_out_end(struct sink *out, struct err *err)
{
	static const char zeros[2 * TAR_BLOCK];

	return out->write(out, (struct str){zeros, sizeof(zeros)}, err);
}
