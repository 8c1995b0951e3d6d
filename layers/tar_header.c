/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/tar_header.h"

#include <assert.h>
#include <stdio.h>

static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");

static void tar_put_text(char out[static TAR_NAME_SIZE], struct str text)
{
	memcpy(out, text.ptr, text.len < TAR_NAME_SIZE ? text.len : TAR_NAME_SIZE);
}

/* Digits, and a NUL at the end. */
static void tar_put_octal(char *out, size_t size, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%0*llo", (int)size - 1, (unsigned long long)value);
	memcpy(out, digits, size);
}

static void tar_put_size(struct tar_header *header, uint64_t size)
{
	if (size <= TAR_OCTAL_MAX) {
		tar_put_octal(header->size, sizeof(header->size), size);
		return;
	}
	header->size[0] = (char)0x80;
	for (int i = 0; i < 8; i++)
		header->size[11 - i] = (char)(size >> (8 * i) & 0xff);
}

/* Of the header with blanks in its own field, the last of which stays. */
static void tar_put_checksum(struct tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned sum = 0;

	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	tar_put_octal(header->checksum, sizeof(header->checksum) - 1, sum);
}

void tar_header_make(const struct tar_fields *fields, struct tar_header *out)
{
	*out = (struct tar_header){.type = fields->type, .magic = "ustar", .version = {'0', '0'}};
	tar_put_text(out->name, fields->name);
	tar_put_text(out->link, fields->link);
	tar_put_octal(out->mode, sizeof(out->mode), fields->mode & 07777);
	tar_put_octal(out->uid, sizeof(out->uid), 0);
	tar_put_octal(out->gid, sizeof(out->gid), 0);
	tar_put_size(out, fields->size);
	tar_put_octal(out->mtime, sizeof(out->mtime), 0);
	tar_put_checksum(out);
}
