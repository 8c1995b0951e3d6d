/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/tar_index_priv.h"

#include "layers/base/array.h"
#include "layers/base/fd.h"
#include "layers/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <inttypes.h>
#include <locale.h>

#define TAR_READ_SIZE ((size_t)256 * 1024)
#define TAR_HEADER_SIZE ((size_t)32 * 1024) /* between two files a header is wanted, not data */

struct tar_entry {
	size_t name; /* in names */
	size_t link; /* the name that it stands for; 0 for a file */
	struct tar_file file;
};

struct tar_index {
	struct tar_source source;
	int fd; /* owned: a plain tar */
	uint64_t size;
	struct buf names;          /* each with its NUL; the first is "", which no entry has */
	struct tar_entry *entries; /* owned; sorted by name */
	size_t count;
};

static const char *tar_name(const struct tar_index *index, size_t at)
{
	return index->names.ptr + at;
}

static void tar_cut_names(struct buf *names, size_t len)
{
	names->len = len;
	names->ptr[len] = '\0';
}

/* Put one more part of a path behind what names has since start: 1, 0 it leads out, -1. */
static int tar_add_part(struct buf *names, size_t start, struct str part, struct err *err)
{
	const char *slash;

	if (part.len == 0 || str_equal(part, STR(".")))
		return 1;
	if (!str_equal(part, STR(".."))) {
		if (names->len > start && buf_add(names, STR("/"), err) < 0)
			return -1;
		return buf_add(names, part, err) < 0 ? -1 : 1;
	}
	if (names->len == start)
		return 0;
	slash = memrchr(names->ptr + start, '/', names->len - start);
	tar_cut_names(names, slash ? (size_t)(slash - names->ptr) : start);
	return 1;
}

static int tar_add_path(struct buf *names, size_t start, struct str path, struct err *err)
{
	struct str part;
	int fine = 1;

	while (fine == 1 && str_cut(&path, '/', &part))
		fine = tar_add_part(names, start, part, err);
	return fine;
}

/* Append dir/text in its shortest form; dir may be "". 1 and where it is, 0 it leads out, -1. */
static int tar_add_name(struct tar_index *index, struct str dir, struct str text, size_t *out,
			struct err *err)
{
	struct buf *names = &index->names;
	size_t start = names->len;
	int fine = tar_add_path(names, start, dir, err);

	if (fine == 1)
		fine = tar_add_path(names, start, text, err);
	if (fine == 1 && names->len > start) {
		*out = start;
		return buf_add(names, (struct str){"", 1}, err) < 0 ? -1 : 1;
	}
	tar_cut_names(names, start);
	return fine < 0 ? -1 : 0;
}

static struct str tar_dir_of(struct str name)
{
	const char *slash = name.len ? memrchr(name.ptr, '/', name.len) : NULL;

	return (struct str){name.ptr, slash ? (size_t)(slash - name.ptr) : 0};
}

static bool tar_has_dots(struct str name)
{
	struct str part;

	while (str_cut(&name, '/', &part)) {
		if (str_equal(part, STR("..")))
			return true;
	}
	return false;
}

/* Where a link leads, in index->names. 1, 0 nowhere in the archive, -1. */
static int tar_add_target(struct tar_index *index, struct archive_entry *raw, struct str name,
			  size_t *out, struct err *err)
{
	const char *hard = archive_entry_hardlink(raw);
	const char *soft = archive_entry_symlink(raw);

	if (hard)
		return tar_has_dots(str_of(hard))
			       ? 0
			       : tar_add_name(index, STR(""), str_of(hard), out, err);
	if (!soft || soft[0] == '/')
		return 0;
	return tar_add_name(index, tar_dir_of(name), str_of(soft), out, err);
}

static struct tar_entry *tar_new_entry(struct tar_index *index, struct err *err)
{
	if (array_make_room(&index->entries, sizeof(*index->entries), index->count,
			    TAR_INDEX_ENTRIES_MAX, "entries", err) < 0)
		return NULL;
	return &index->entries[index->count];
}

/* Keep files and links, which can be asked for by name; nothing else of an archive. */
static int tar_add_entry(struct tar_index *index, struct archive *archive,
			 struct archive_entry *raw, struct err *err)
{
	struct str name = str_of(archive_entry_pathname(raw) ? archive_entry_pathname(raw) : "");
	bool link = archive_entry_hardlink(raw) || archive_entry_symlink(raw);
	struct tar_entry *entry = tar_new_entry(index, err);
	struct tar_entry found = {0};
	int kept;

	if (!entry)
		return -1;
	if (name.len > TAR_INDEX_NAME_MAX)
		return err_set(err, ERR_LIMIT, "a name of more than %zu bytes", TAR_INDEX_NAME_MAX);
	if (tar_has_dots(name) || archive_entry_sparse_count(raw) > 0 ||
	    (!link && archive_entry_filetype(raw) != AE_IFREG))
		return 0;
	found.file.offset = (uint64_t)archive_filter_bytes(archive, 0);
	found.file.size = link ? 0 : (uint64_t)archive_entry_size(raw);
	if (found.file.size > index->size || found.file.offset > index->size - found.file.size)
		return err_set(err, ERR_CORRUPT, "the archive ends early");
	kept = tar_add_name(index, STR(""), name, &found.name, err);
	if (kept == 1 && link)
		kept = tar_add_target(index, raw, name, &found.link, err);
	if (kept == 1) {
		*entry = found;
		index->count++;
	}
	return kept < 0 ? -1 : 0;
}

/* What libarchive reads: headers, for data is skipped. */
struct tar_headers {
	const struct tar_index *index;
	uint64_t at;
	bool failed;
	struct err err;
	char piece[TAR_HEADER_SIZE];
};

static la_ssize_t tar_headers_read(struct archive *archive, void *ctx, const void **out)
{
	struct tar_headers *headers = ctx;
	ssize_t n = -1;

	if (tar_source_check_cancel(&headers->index->source, &headers->err) == 0)
		n = fd_pread_all(headers->index->fd, headers->piece, sizeof(headers->piece),
				 (off_t)headers->at, &headers->err);
	if (n < 0) {
		headers->failed = true;
		archive_set_error(archive, EIO, "the archive cannot be read");
		return ARCHIVE_FATAL;
	}
	headers->at += (uint64_t)n;
	*out = headers->piece;
	return n;
}

static la_int64_t tar_headers_skip(struct archive *archive, void *ctx, la_int64_t request)
{
	struct tar_headers *headers = ctx;
	uint64_t left = headers->index->size - headers->at;
	uint64_t n = (uint64_t)request < left ? (uint64_t)request : left;

	assert(archive && request >= 0);
	headers->at += n;
	return (la_int64_t)n;
}

/* It is no tar: tell a compression that others read from damage. */
static int tar_refuse(const struct tar_index *index, struct err *err)
{
	char bytes[6];
	ssize_t n = pread(index->fd, bytes, sizeof(bytes), 0);
	const char *other = inflater_other((struct str){bytes, n > 0 ? (size_t)n : 0});

	if (other)
		return err_set(err, ERR_UNSUPPORTED,
			       "compressed by %s, which is not read; inflate it first: "
			       "%s -dc FILE | hearth import -",
			       other, other);
	return err_set(err, ERR_CORRUPT, "not a tar, or a damaged one");
}

static int tar_read_entries(struct tar_index *index, struct archive *archive,
			    struct tar_headers *headers, struct err *err)
{
	struct archive_entry *raw;
	int got = ARCHIVE_FATAL;

	if (archive_read_support_format_tar(archive) == ARCHIVE_OK &&
	    archive_read_support_format_empty(archive) == ARCHIVE_OK &&
	    archive_read_open2(archive, headers, NULL, tar_headers_read, tar_headers_skip, NULL) ==
		    ARCHIVE_OK) {
		while ((got = archive_read_next_header(archive, &raw)) == ARCHIVE_OK ||
		       got == ARCHIVE_WARN) {
			if (tar_add_entry(index, archive, raw, err) < 0)
				return -1;
		}
	}
	if (got == ARCHIVE_EOF)
		return 0;
	if (headers->failed) {
		*err = headers->err;
		return -1;
	}
	return tar_refuse(index, err);
}

static int tar_read_headers(struct tar_index *index, struct err *err)
{
	auto_free struct tar_headers *headers = calloc(1, sizeof(*headers));
	struct archive *archive = archive_read_new();
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before;
	int result;

	if (!headers || !archive || plain == (locale_t)0)
		abort();
	headers->index = index;
	before = uselocale(plain);
	result = tar_read_entries(index, archive, headers, err);
	(void)uselocale(before);
	freelocale(plain);
	(void)archive_read_free(archive);
	return result;
}

static int tar_compare(const void *a, const void *b, void *names)
{
	const struct tar_entry *left = a;
	const struct tar_entry *right = b;

	return strcmp((const char *)names + left->name, (const char *)names + right->name);
}

static int tar_sort(struct tar_index *index, struct err *err)
{
	if (index->count > 0)
		qsort_r(index->entries, index->count, sizeof(*index->entries), tar_compare,
			index->names.ptr);
	for (size_t i = 1; i < index->count; i++) {
		const char *name = tar_name(index, index->entries[i].name);

		if (strcmp(tar_name(index, index->entries[i - 1].name), name) == 0)
			return err_set(err, ERR_CORRUPT, "the archive has %s twice", name);
	}
	return 0;
}

void tar_index_close(struct tar_index *index)
{
	if (!index)
		return;
	auto_close_release(&index->fd);
	buf_done(&index->names);
	free(index->entries);
	free(index);
}

int tar_index_open(const struct tar_source *source, struct tar_index **out, struct err *err)
{
	AUTO(tar_index) struct tar_index *index = calloc(1, sizeof(*index));

	if (!index)
		abort();
	index->source = *source;
	index->fd = -1;
	index->names = BUF_INIT(TAR_INDEX_NAMES_MAX);
	if (buf_add(&index->names, (struct str){"", 1}, err) < 0 ||
	    tar_source_open(source, &index->fd, &index->size, err) < 0 ||
	    tar_read_headers(index, err) < 0 || tar_sort(index, err) < 0)
		return -1;
	*out = steal_ptr(&index);
	return 0;
}

static const struct tar_entry *tar_lookup(const struct tar_index *index, const char *name)
{
	size_t low = 0;
	size_t high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, tar_name(index, index->entries[middle].name));

		if (order == 0)
			return &index->entries[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

int tar_index_find(const struct tar_index *index, struct str name, struct tar_file *out,
		   struct err *err)
{
	auto_buf struct buf text = BUF_INIT(TAR_INDEX_NAME_MAX);
	const struct tar_entry *entry;

	/* A name with "..", or longer than any that is kept, is not found. */
	if (tar_has_dots(name) || tar_add_path(&text, 0, name, err) < 1 || text.len == 0)
		return 0;
	entry = tar_lookup(index, text.ptr);
	for (int links = 0; entry && entry->link; links++) {
		if (links == TAR_INDEX_LINKS_MAX)
			return err_set(err, ERR_CORRUPT, "the archive's %s is a link without end",
				       text.ptr);
		entry = tar_lookup(index, tar_name(index, entry->link));
	}
	if (!entry)
		return 0;
	*out = entry->file;
	return 1;
}

int tar_index_read(const struct tar_index *index, struct str name, struct buf *out, struct err *err)
{
	struct buf_sink sink = BUF_SINK(out);
	struct tar_file file;
	int found = tar_index_find(index, name, &file, err);

	if (found < 0)
		return -1;
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "the archive has no " STR_FMT, STR_ARG(name));
	if (tar_index_copy(index, &file, &sink.sink, err) < 0)
		return err_ctx(err, STR_FMT, STR_ARG(name));
	return 0;
}

ssize_t tar_index_peek(const struct tar_index *index, const struct tar_file *file, void *bytes,
		       size_t len, struct err *err)
{
	if (len > file->size)
		len = (size_t)file->size;
	return fd_pread_all(index->fd, bytes, len, (off_t)file->offset, err);
}

/* A file that shrinks meanwhile ends early; the caller finds one that changes by its digest. */
int tar_index_copy(const struct tar_index *index, const struct tar_file *file, struct sink *out,
		   struct err *err)
{
	auto_free char *piece = malloc(TAR_READ_SIZE);
	uint64_t done = 0;

	if (!piece)
		abort();
	while (done < file->size) {
		uint64_t left = file->size - done;
		size_t want = left < TAR_READ_SIZE ? (size_t)left : TAR_READ_SIZE;
		ssize_t n = fd_pread_all(index->fd, piece, want, (off_t)(file->offset + done), err);

		if (n < 0 || tar_source_check_cancel(&index->source, err) < 0)
			return -1;
		if ((size_t)n < want)
			return err_set(err, ERR_CORRUPT, "the archive ends early");
		if (out->write(out, (struct str){piece, want}, err) < 0)
			return -1;
		done += want;
	}
	return 0;
}
