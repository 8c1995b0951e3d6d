/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/tarball.h"

#include <stdio.h>

#define BLOCK ((size_t)512)

static void must(int result)
{
	if (result < 0)
		abort();
}

static void tarball_bytes(struct tarball *tar, const void *bytes, size_t len)
{
	struct err err;

	must(buf_add(&tar->bytes, (struct str){bytes, len}, &err));
}

void tarball_init(struct tarball *tar)
{
	*tar = (struct tarball){
		.bytes = BUF_INIT((size_t)64 << 20),
		.pax = BUF_INIT((size_t)4 << 20),
	};
}

void tarball_done(struct tarball *tar)
{
	buf_done(&tar->bytes);
	buf_done(&tar->pax);
}

static void tarball_padded(struct tarball *tar, struct str data)
{
	static const char zeros[BLOCK];

	tarball_bytes(tar, data.ptr, data.len);
	if (data.len % BLOCK)
		tarball_bytes(tar, zeros, BLOCK - data.len % BLOCK);
}

static void tarball_checksum(char header[static BLOCK])
{
	unsigned sum = 0;

	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)header[i];
	(void)snprintf(header + 148, 8, "%06o", sum);
}

/* Fields are bytes, not strings; a full one has no NUL. */
static void tarball_field(char *field, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		field[i] = bytes[i];
}

static void tarball_header(struct tarball *tar, const struct tar_entry *entry)
{
	char header[BLOCK] = {0};
	const char type = (char)(entry->type ? entry->type : '0');
	unsigned mode = entry->mode ? entry->mode : (type == '5' ? 0755 : 0644);

	tarball_field(header, entry->name, strnlen(entry->name, 100));
	(void)snprintf(header + 100, 8, "%07o", mode & 07777777);
	(void)snprintf(header + 108, 8, "%07o", entry->uid);
	(void)snprintf(header + 116, 8, "%07o", entry->gid);
	(void)snprintf(header + 124, 12, "%011zo", entry->data.len);
	(void)snprintf(header + 136, 12, "%011lo", (unsigned long)entry->mtime);
	header[156] = type;
	if (entry->link)
		tarball_field(header + 157, entry->link, strnlen(entry->link, 100));
	tarball_field(header + 257, "ustar\00000", 8);
	(void)snprintf(header + 329, 8, "%07o", entry->major);
	(void)snprintf(header + 337, 8, "%07o", entry->minor);
	if (entry->raw_size)
		tarball_field(header + 124, entry->raw_size, 12);
	if (entry->raw_uid)
		tarball_field(header + 108, entry->raw_uid, 8);
	tarball_checksum(header);
	tarball_bytes(tar, header, BLOCK);
}

void tarball_pax(struct tarball *tar, const char *key, struct str value)
{
	size_t body = strlen(key) + value.len + 3; /* blank, '=', newline */
	size_t len = body + 1;
	struct err err;

	while ((size_t)snprintf(NULL, 0, "%zu", len) + body != len)
		len = (size_t)snprintf(NULL, 0, "%zu", len) + body;
	must(buf_addf(&tar->pax, &err, "%zu %s=", len, key));
	must(buf_add(&tar->pax, value, &err));
	must(buf_add(&tar->pax, STR("\n"), &err));
}

void tarball_add(struct tarball *tar, const struct tar_entry *entry)
{
	if (tar->pax.len > 0) {
		tarball_header(tar, &(struct tar_entry){.name = "pax",
							.type = 'x',
							.data = buf_str(&tar->pax)});
		tarball_padded(tar, buf_str(&tar->pax));
		buf_clear(&tar->pax);
	}
	tarball_header(tar, entry);
	tarball_padded(tar, entry->data);
}

void tarball_end(struct tarball *tar)
{
	static const char zeros[2 * BLOCK];

	tarball_bytes(tar, zeros, sizeof(zeros));
}

static int memory_source_read(struct source *source, struct str *out, struct err *err)
{
	struct memory_source *memory = (struct memory_source *)source;
	size_t n = memory->rest.len;

	(void)err;
	if (n == 0)
		return 0;
	if (memory->step && n > memory->step)
		n = memory->step;
	*out = (struct str){memory->rest.ptr, n};
	memory->rest.ptr += n;
	memory->rest.len -= n;
	return 1;
}

void memory_source_init(struct memory_source *source, struct str bytes, size_t step)
{
	*source = (struct memory_source){{memory_source_read}, bytes, step};
}
