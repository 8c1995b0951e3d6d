/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_out_priv.h"

#include "layers/tar_header.h"

#include <assert.h>
#include <stdio.h>

static int tar_out_header(struct sink *out, char type, struct str name, uint64_t size,
			  struct err *err)
{
	const struct tar_fields fields = {
		.type = type, .name = name, .link = STR(""), .mode = 0644, .size = size};
	struct tar_header header;

	tar_header_make(&fields, &header);
	return out->write(out, (struct str){(const char *)&header, sizeof(header)}, err);
}

/* A record begins with its own length, which has three digits for all names that come here. */
static int tar_out_long_name(struct sink *out, struct str name, struct err *err)
{
	char record[TAR_BLOCK];
	size_t len = sizeof("123 path=\n") - 1 + name.len;
	int n = snprintf(record, sizeof(record), "%zu path=" STR_FMT "\n", len, STR_ARG(name));
	struct str bytes = {record, len};

	assert(n > 0 && (size_t)n == len);
	if (tar_out_header(out, 'x', STR("PaxHeader"), bytes.len, err) < 0 ||
	    out->write(out, bytes, err) < 0)
		return -1;
	return tar_out_end_file(out, bytes.len, err);
}

int tar_out_begin_file(struct sink *out, const char *name, uint64_t size, struct err *err)
{
	struct str text = str_of(name);

	assert(text.len < TAR_OUT_NAME_MAX);
	if (text.len > TAR_NAME_SIZE && tar_out_long_name(out, text, err) < 0)
		return -1;
	return tar_out_header(out, '0', text, size, err);
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
