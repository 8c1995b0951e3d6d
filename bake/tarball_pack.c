/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarball_pack.c - a directory as a tar, written here so that `hearth` needs
 * no library for it: POSIX.1-2017 ustar headers, and a pax header in front of
 * an entry with a long name, attributes, or more than 8 GiB.
 */
#include "bake/tarball_priv.h"

#include "bake/sources_priv.h"
#include "layers/tar_header.h"

#include <stdio.h>

#define TAR_PAX_MAX ((size_t)32 << 20)

struct pack {
	struct sink *sink;
	const struct cancel *cancel;
	uint64_t file_at; /* bytes of the file at hand that were written */
};

static int pack_bytes(struct pack *pack, struct str bytes, struct err *err)
{
	return pack->sink->write(pack->sink, bytes, err);
}

static int pack_zeros(struct pack *pack, uint64_t count, struct err *err)
{
	static const char zeros[64 * 1024];

	while (count > 0) {
		size_t n = count < sizeof(zeros) ? (size_t)count : sizeof(zeros);

		if (cancel_check(pack->cancel, err) < 0 ||
		    pack_bytes(pack, (struct str){zeros, n}, err) < 0)
			return -1;
		count -= n;
	}
	return 0;
}

static int pack_pad(struct pack *pack, uint64_t size, struct err *err)
{
	return pack_zeros(pack, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK, err);
}

static int pack_header(struct pack *pack, char type, struct str name, struct str link, mode_t mode,
		       uint64_t size, struct err *err)
{
	/* A size that its field cannot hold is in a pax record. */
	const struct tar_fields fields = {type, name, link, mode, size <= TAR_OCTAL_MAX ? size : 0};
	struct tar_header header;

	tar_header_make(&fields, &header);
	return pack_bytes(pack, (struct str){(const char *)&header, sizeof(header)}, err);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static int pack_record(struct buf *out, const char *prefix, const char *key, struct str value,
		       struct err *err)
{
	size_t rest = strlen(" =\n") + strlen(prefix) + strlen(key) + value.len;
	size_t length = rest;

	while (length != rest + (size_t)snprintf(NULL, 0, "%zu", length))
		length = rest + (size_t)snprintf(NULL, 0, "%zu", length);
	if (buf_addf(out, err, "%zu %s%s=", length, prefix, key) < 0 ||
	    buf_add(out, value, err) < 0)
		return -1;
	return buf_add(out, STR("\n"), err);
}

static int pack_pax(struct pack *pack, const struct source_entry *entry, struct str name,
		    struct str link, struct err *err)
{
	auto_buf struct buf records = BUF_INIT(TAR_PAX_MAX);
	char size[24];

	if (name.len > TAR_NAME_SIZE && pack_record(&records, "", "path", name, err) < 0)
		return -1;
	if (link.len > TAR_NAME_SIZE && pack_record(&records, "", "linkpath", link, err) < 0)
		return -1;
	(void)snprintf(size, sizeof(size), "%jd", (intmax_t)entry->st.st_size);
	if (S_ISREG(entry->st.st_mode) && (uint64_t)entry->st.st_size > TAR_OCTAL_MAX &&
	    pack_record(&records, "", "size", str_of(size), err) < 0)
		return -1;
	for (size_t i = 0; i < entry->xattrs.count; i++) {
		if (pack_record(&records, "SCHILY.xattr.", entry->xattrs.at[i].name,
				buf_str(&entry->xattrs.at[i].value), err) < 0)
			return -1;
	}
	if (records.len == 0)
		return 0;
	if (pack_header(pack, 'x', STR("pax"), STR(""), 0644, records.len, err) < 0 ||
	    pack_bytes(pack, buf_str(&records), err) < 0)
		return -1;
	return pack_pad(pack, records.len, err);
}

static int pack_entry(struct pack *pack, const struct source_entry *entry, char type,
		      const char *link, struct err *err)
{
	struct str name = str_of(entry->path);
	struct str target = str_of(link);
	uint64_t size = type == '0' ? (uint64_t)entry->st.st_size : 0;
	mode_t mode = type == '2' ? 0777 : entry->st.st_mode;

	if (pack_pax(pack, entry, name, target, err) < 0)
		return -1;
	return pack_header(pack, type, name, target, mode, size, err);
}

static int pack_start(void *ctx, const struct source_spec *source, const struct source_entry *entry,
		      struct err *err)
{
	(void)ctx;
	(void)source;
	(void)entry;
	(void)err;
	return 0;
}

static int pack_enter(void *ctx, const struct source_entry *entry, struct err *err)
{
	return *entry->path ? pack_entry(ctx, entry, '5', "", err) : 0;
}

static int pack_link(void *ctx, const struct source_entry *entry, struct err *err)
{
	return pack_entry(ctx, entry, '2', entry->target, err);
}

/* A fifo: a context has no other. */
static int pack_node(void *ctx, const struct source_entry *entry, struct err *err)
{
	return pack_entry(ctx, entry, '6', "", err);
}

static int pack_block(void *ctx, uint64_t offset, struct str bytes, struct err *err)
{
	struct pack *pack = ctx;

	if (pack_zeros(pack, offset - pack->file_at, err) < 0 || pack_bytes(pack, bytes, err) < 0)
		return -1;
	pack->file_at = offset + bytes.len;
	return 0;
}

static int pack_file(void *ctx, struct source_entry *entry, struct err *err)
{
	struct pack *pack = ctx;
	uint64_t size = (uint64_t)entry->st.st_size;

	if (entry->twin)
		return pack_entry(pack, entry, '1', entry->twin, err);
	pack->file_at = 0;
	if (source_open_file(entry, err) < 0 || pack_entry(pack, entry, '0', "", err) < 0 ||
	    source_read(entry, pack->cancel, pack_block, pack, err) < 0 ||
	    pack_zeros(pack, size - pack->file_at, err) < 0)
		return -1;
	return pack_pad(pack, size, err);
}

int tarball_pack_to(int dirfd, const struct cancel *cancel, struct sink *sink, struct err *err)
{
	static const char *const all[] = {"."};
	const struct context_sources sources = {.fd = dirfd, .paths = all, .count = 1};
	struct pack pack = {.sink = sink, .cancel = cancel};
	const struct source_visitor visitor = {
		.start = pack_start,
		.enter = pack_enter,
		.file = pack_file,
		.link = pack_link,
		.node = pack_node,
		.ctx = &pack,
		.cancel = cancel,
	};

	if (sources_walk(&sources, &visitor, err) < 0)
		return -1;
	return pack_zeros(&pack, 2 * TAR_BLOCK, err);
}

struct pack_sink {
	struct sink sink;
	struct tarball_writer *writer;
};

static int pack_store(struct sink *sink, struct str bytes, struct err *err)
{
	return tarball_writer_add(container_of(sink, struct pack_sink, sink)->writer, bytes, err);
}

int tarball_pack(struct store *store, int dirfd, const struct cancel *cancel, struct digest *out,
		 struct err *err)
{
	AUTO(tarball_writer) struct tarball_writer *writer = NULL;
	struct pack_sink into = {.sink.write = pack_store};

	if (tarball_writer_open(store, &writer, err) < 0)
		return -1;
	into.writer = writer;
	if (tarball_pack_to(dirfd, cancel, &into.sink, err) < 0)
		return -1;
	return tarball_writer_finish(writer, out, err);
}
