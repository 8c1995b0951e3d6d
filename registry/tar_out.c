/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_out_priv.h"

#include <assert.h>
#include <stdio.h>

#define TAR_BLOCK ((size_t)512)
#define TAR_OCTAL_MAX ((uint64_t)077777777777)

struct tar_header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char rest[TAR_BLOCK - 265];
};
static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

static void tar_set_size(struct tar_header *header, uint64_t size)
{
	if (size <= TAR_OCTAL_MAX) {
		(void)snprintf(header->size, sizeof(header->size), "%011llo",
			       (unsigned long long)size);
		return;
	}
	header->size[0] = (char)0x80;
	for (int i = 0; i < 8; i++)
		header->size[11 - i] = (char)(size >> (8 * i) & 0xff);
}

/* With its own field as blanks. */
static void tar_set_checksum(struct tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned sum = 0;

	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	(void)snprintf(header->checksum, sizeof(header->checksum) - 1, "%06o", sum);
}

int tar_out_begin_file(struct sink *out, const char *name, uint64_t size, struct err *err)
{
	struct tar_header header = {
		.mode = "0000644",
		.uid = "0000000",
		.gid = "0000000",
		.mtime = "00000000000",
		.type = '0',
		.magic = "ustar",
		.version = {'0', '0'},
	};

	assert(strlen(name) < TAR_OUT_NAME_MAX);
	memcpy(header.name, name, strlen(name));
	tar_set_size(&header, size);
	tar_set_checksum(&header);
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
