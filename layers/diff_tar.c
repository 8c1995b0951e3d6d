/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_tar.c - entries as a pax tar, and as the digest of their content.
 *
 * libarchive is told to keep no block of its own, so its output is in the sink
 * when a call returns and a cut falls exactly where the data begin. It writes
 * in the C.UTF-8 locale: a name that is UTF-8 is then a plain pax record, and
 * one that is not says hdrcharset=BINARY.
 */
#include "layers/diff_priv.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <endian.h>
#include <locale.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define HOLE_SIZE ((size_t)1 << 30) /* of address space, not of memory */
#define WHITEOUT_MODE (S_IFREG | 0600)

struct diff_tar {
	const struct diff_out *out;
	struct archive *archive;
	struct archive_entry *entry;
	struct hasher content;
	struct fingerprinter data; /* of all files */
	struct err sink_err;       /* what the sink said */
	bool sink_failed;
	void *zeros; /* HOLE_SIZE of them, once needed */
	locale_t locale;
	locale_t before;
};

/*
 * We never tell libarchive that a write failed, since it leaks then; its
 * callers look at sink_failed afterwards.
 */
static la_ssize_t tar_write(struct archive *archive, void *ctx, const void *bytes, size_t len)
{
	struct diff_tar *tar = ctx;
	struct sink *sink = tar->out->sink;

	assert(archive == tar->archive);
	if (!tar->sink_failed && sink->write(sink, (struct str){bytes, len}, &tar->sink_err) < 0)
		tar->sink_failed = true;
	return (la_ssize_t)len;
}

/* A warning says that a name is not UTF-8; it is written as it is. */
static int tar_check(const struct diff_tar *tar, la_ssize_t done, struct err *err)
{
	if (tar->sink_failed) {
		*err = tar->sink_err;
		return -1;
	}
	if (done < 0 && done != ARCHIVE_WARN)
		return err_set(err, ERR_OS, "write tar: %s", archive_error_string(tar->archive));
	return 0;
}

static int tar_set_locale(struct diff_tar *tar, struct err *err)
{
	tar->locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
	if (tar->locale == (locale_t)0)
		return err_set(err, ERR_UNSUPPORTED, "this host has no C.UTF-8 locale");
	tar->before = uselocale(tar->locale);
	return 0;
}

int diff_tar_open(const struct diff_out *out, struct diff_tar **out_tar, struct err *err)
{
	AUTO(diff_tar) struct diff_tar *tar = calloc(1, sizeof(*tar));

	if (!tar)
		abort();
	tar->out = out;
	hasher_init(&tar->content);
	fingerprinter_init(&tar->data, &out->key);
	tar->archive = archive_write_new();
	tar->entry = archive_entry_new();
	if (!tar->archive || !tar->entry)
		abort();
	if (tar_set_locale(tar, err) < 0)
		return -1;
	if (archive_write_set_format_pax(tar->archive) != ARCHIVE_OK ||
	    archive_write_set_options(tar->archive, "pax:xattrheader=SCHILY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(tar->archive, 0) != ARCHIVE_OK ||
	    archive_write_open(tar->archive, tar, NULL, tar_write, NULL) != ARCHIVE_OK)
		return err_set(err, ERR_OS, "write tar: %s", archive_error_string(tar->archive));
	*out_tar = steal_ptr(&tar);
	return 0;
}

void diff_tar_close(struct diff_tar *tar)
{
	if (!tar)
		return;
	tar->sink_failed = true; /* freeing writes an end of the archive, which goes nowhere */
	archive_entry_free(tar->entry);
	(void)archive_write_free(tar->archive);
	hasher_done(&tar->content);
	fingerprinter_done(&tar->data);
	if (tar->zeros)
		(void)munmap(tar->zeros, HOLE_SIZE);
	if (tar->locale != (locale_t)0) {
		(void)uselocale(tar->before);
		freelocale(tar->locale);
	}
	free(tar);
}

static void hash_number(struct diff_tar *tar, uint64_t number)
{
	uint64_t bytes = htole64(number);

	hasher_add(&tar->content, (struct str){(const char *)&bytes, sizeof(bytes)});
}

static void hash_text(struct diff_tar *tar, struct str text)
{
	hash_number(tar, text.len);
	hasher_add(&tar->content, text);
}

static void hash_attrs(struct diff_tar *tar, const struct attrs *attrs)
{
	size_t count = attrs ? attrs->count : 0;

	hash_number(tar, count);
	for (size_t i = 0; i < count; i++) {
		hash_text(tar, str_of(attrs_name(attrs, i)));
		hash_text(tar, attrs_value(attrs, i));
	}
}

/* Everything but times; the length of each field follows from those before it. */
static void hash_entry(struct diff_tar *tar, const struct diff_entry *entry)
{
	hash_text(tar, entry->path);
	hash_number(tar, entry->is_hardlink);
	hash_text(tar, str_of(entry->link ? entry->link : ""));
	if (entry->is_hardlink)
		return;
	hash_number(tar, entry->stat.st_mode);
	hash_number(tar, entry->stat.st_uid);
	hash_number(tar, entry->stat.st_gid);
	hash_number(tar, entry->stat.st_rdev);
	hash_number(tar, S_ISREG(entry->stat.st_mode) ? (uint64_t)entry->stat.st_size : 0);
	hash_attrs(tar, entry->attrs);
}

static void tar_fill_attrs(struct archive_entry *raw, const struct attrs *attrs)
{
	for (size_t i = 0; attrs && i < attrs->count; i++) {
		struct str value = attrs_value(attrs, i);

		archive_entry_xattr_add_entry(raw, attrs_name(attrs, i), value.ptr, value.len);
	}
}

static void tar_fill(struct archive_entry *raw, const struct diff_entry *entry)
{
	const struct stat *stat = &entry->stat;

	archive_entry_clear(raw);
	archive_entry_copy_pathname(raw, entry->path.ptr);
	archive_entry_set_mode(raw, stat->st_mode);
	archive_entry_set_uid(raw, stat->st_uid);
	archive_entry_set_gid(raw, stat->st_gid);
	archive_entry_set_mtime(raw, stat->st_mtim.tv_sec, 0);
	archive_entry_set_size(raw, 0);
	if (entry->is_hardlink)
		archive_entry_copy_hardlink(raw, entry->link);
	else if (entry->link)
		archive_entry_copy_symlink(raw, entry->link);
	else if (S_ISREG(stat->st_mode))
		archive_entry_set_size(raw, stat->st_size);
	if (S_ISCHR(stat->st_mode) || S_ISBLK(stat->st_mode)) {
		archive_entry_set_rdevmajor(raw, major(stat->st_rdev));
		archive_entry_set_rdevminor(raw, minor(stat->st_rdev));
	}
	if (!entry->is_hardlink)
		tar_fill_attrs(raw, entry->attrs);
}

static int tar_write_header(struct diff_tar *tar, struct err *err)
{
	return tar_check(tar, archive_write_header(tar->archive, tar->entry), err);
}

int diff_tar_entry(struct diff_tar *tar, const struct diff_entry *entry, struct err *err)
{
	hash_entry(tar, entry);
	tar_fill(tar->entry, entry);
	return tar_write_header(tar, err);
}

int diff_tar_whiteout(struct diff_tar *tar, struct str path, struct err *err)
{
	const struct diff_entry entry = {.path = path, .stat.st_mode = WHITEOUT_MODE};

	return diff_tar_entry(tar, &entry, err);
}

int diff_tar_file(struct diff_tar *tar, const struct diff_entry *entry,
		  const struct extents *extents, struct err *err)
{
	hash_entry(tar, entry);
	tar_fill(tar->entry, entry);
	hash_number(tar, extents->count);
	for (size_t i = 0; i < extents->count; i++) {
		const struct extent *extent = &extents->items[i];

		hash_number(tar, (uint64_t)extent->offset);
		hash_number(tar, (uint64_t)extent->len);
		archive_entry_sparse_add_entry(tar->entry, extent->offset, extent->len);
	}
	if (tar_write_header(tar, err) < 0)
		return -1;
	if ((uint64_t)entry->stat.st_size < LAYER_FILE_CUT || !tar->out->cut)
		return 0;
	return tar->out->cut(tar->out->ctx, err);
}

static int tar_write_data(struct diff_tar *tar, struct str bytes, struct err *err)
{
	while (bytes.len > 0) {
		la_ssize_t n = archive_write_data(tar->archive, bytes.ptr, bytes.len);

		if (tar_check(tar, n, err) < 0)
			return -1;
		if (n <= 0)
			return err_set(err, ERR_OS, "write tar: more bytes than the entry has");
		bytes.ptr += n;
		bytes.len -= (size_t)n;
	}
	return 0;
}

int diff_tar_data(struct diff_tar *tar, struct str bytes, struct err *err)
{
	fingerprinter_add(&tar->data, bytes);
	return tar_write_data(tar, bytes, err);
}

/* libarchive wants the bytes of a hole, but does not look at them. */
int diff_tar_hole(struct diff_tar *tar, int64_t len, struct err *err)
{
	if (!tar->zeros) {
		void *zeros = mmap(NULL, HOLE_SIZE, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (zeros == MAP_FAILED)
			return err_os(err, errno, "map a hole");
		tar->zeros = zeros;
	}
	while (len > 0) {
		size_t n = len < (int64_t)HOLE_SIZE ? (size_t)len : HOLE_SIZE;

		if (tar_write_data(tar, (struct str){tar->zeros, n}, err) < 0)
			return -1;
		len -= (int64_t)n;
	}
	return 0;
}

int diff_tar_finish(struct diff_tar *tar, struct digest *content, struct err *err)
{
	struct fingerprint data;

	if (tar_check(tar, archive_write_close(tar->archive), err) < 0)
		return -1;
	fingerprinter_final(&tar->data, &data);
	hasher_add(&tar->content, (struct str){(const char *)data.bytes, sizeof(data.bytes)});
	hasher_final(&tar->content, content);
	return 0;
}
