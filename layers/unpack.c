/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - the pass over a tar.
 *
 * libarchive reads it in the C locale: there, names go through byte for byte,
 * while in a UTF-8 locale it would normalise them. Where it says that a name
 * could not be converted (ARCHIVE_WARN), the bytes are the tar's own; of links
 * see unpack_pax.c.
 */
#include "layers/unpack_priv.h"

#include "layers/base/path.h"
#include "layers/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <locale.h>

static la_ssize_t unpack_fail(struct unpack *unpack)
{
	unpack->source_failed = true;
	archive_set_error(unpack->archive, EIO, "the source failed");
	return ARCHIVE_FATAL;
}

/* While a header is being read, keep all of it. */
static int unpack_keep_lent(struct unpack *unpack)
{
	struct str lent = unpack->lent;

	unpack->lent = (struct str){0};
	if (!unpack->in_header || unpack->before.len + lent.len > HEADERS_MAX)
		buf_clear(&unpack->before);
	if (!unpack->in_header || lent.len > HEADERS_MAX)
		return 0;
	return buf_add(&unpack->before, lent, &unpack->source_err);
}

/* libarchive makes a list of a sparse map, however long that is. */
static int unpack_check_header(struct unpack *unpack)
{
	if (!unpack->in_header || unpack->header_bytes < HEADERS_MAX)
		return 0;
	return err_set(&unpack->source_err, ERR_LIMIT, "the headers of an entry are too large");
}

static la_ssize_t unpack_read(struct archive *archive, void *ctx, const void **out)
{
	struct unpack *unpack = ctx;
	struct str bytes;
	int got;

	assert(archive == unpack->archive);
	if (unpack->source_failed)
		return ARCHIVE_FATAL;
	if (unpack_check_header(unpack) < 0 || unpack_keep_lent(unpack) < 0)
		return unpack_fail(unpack);
	got = unpack->tar->read(unpack->tar, &bytes, &unpack->source_err);
	if (got < 0)
		return unpack_fail(unpack);
	if (got == 0)
		return 0;
	if (bytes.len > unpack->bytes_left) {
		(void)err_set(&unpack->source_err, ERR_LIMIT,
			      "the layer is larger than is allowed when inflated");
		return unpack_fail(unpack);
	}
	unpack->bytes_left -= bytes.len;
	unpack->header_bytes += bytes.len;
	unpack->offset += bytes.len;
	unpack->lent = bytes;
	*out = bytes.ptr;
	return (la_ssize_t)bytes.len;
}

static int unpack_tar_error(const struct unpack *unpack, struct err *err)
{
	const char *text = archive_error_string(unpack->archive);

	if (!unpack->source_failed)
		return err_set(err, ERR_CORRUPT, "tar: %s", text ? text : "damaged");
	*err = unpack->source_err;
	return -1;
}

/* Its first bytes are no header. */
static int unpack_no_tar(const struct unpack *unpack, struct err *err)
{
	const char *other =
		inflater_other(unpack->before.len > 0 ? buf_str(&unpack->before) : unpack->lent);

	if (unpack->source_failed || !other)
		return unpack_tar_error(unpack, err);
	return err_set(err, ERR_UNSUPPORTED, "compressed by %s, which is not read", other);
}

static int unpack_open(struct unpack *unpack, struct err *err)
{
	if (archive_read_support_format_tar(unpack->archive) != ARCHIVE_OK ||
	    archive_read_support_format_empty(unpack->archive) != ARCHIVE_OK ||
	    archive_read_open(unpack->archive, unpack, NULL, unpack_read, NULL) != ARCHIVE_OK)
		return unpack_no_tar(unpack, err);
	return 0;
}

static int unpack_named(struct unpack *unpack, struct archive_entry *raw, struct err *err)
{
	struct tar_name *name = &unpack->name;

	switch (name->kind) {
	case TAR_WHITEOUT:
		return unpack_whiteouts_add(&unpack->whiteouts, name->dir, name->base, err);
	case TAR_OPAQUE:
		return unpack_whiteouts_add(&unpack->whiteouts, name->dir, "", err);
	case TAR_IGNORED:
		return 0;
	case TAR_ROOT:
	case TAR_ENTRY:
		break;
	}
	return unpack_entry(unpack, raw, err);
}

/* The headers of the entry that was just read, as far as they are in memory. */
static int unpack_headers(struct unpack *unpack, struct buf *out, struct err *err)
{
	uint64_t start = (uint64_t)archive_read_header_position(unpack->archive);
	uint64_t lent = unpack->offset - unpack->lent.len;
	uint64_t before = lent - unpack->before.len;
	struct str head = buf_str(&unpack->before);
	struct str rest = unpack->lent;

	if (start < before || start > unpack->offset)
		return err_set(err, ERR_CORRUPT, "its headers are too large");
	if (start < lent) {
		head.ptr += start - before;
		head.len -= start - before;
		if (buf_add(out, head, err) < 0)
			return -1;
	} else {
		rest.ptr += start - lent;
		rest.len -= start - lent;
	}
	if (rest.len > HEADERS_MAX)
		rest.len = HEADERS_MAX;
	return buf_add(out, rest, err);
}

/* A link whose target libarchive could not convert gets it back. */
static int unpack_repair_link(struct unpack *unpack, struct archive_entry *raw, struct err *err)
{
	auto_buf struct buf headers = BUF_INIT(2 * HEADERS_MAX);
	struct pax_link link;

	if (unpack_headers(unpack, &headers, err) < 0)
		return -1;
	unpack_pax_find_link(buf_str(&headers), &link);
	if (!link.target.ptr || (link.type != '1' && link.type != '2'))
		return 0;
	buf_clear(&unpack->link);
	if (buf_add(&unpack->link, link.target, err) < 0)
		return -1;
	if (link.type == '1') {
		archive_entry_copy_hardlink(raw, unpack->link.ptr);
	} else {
		archive_entry_set_filetype(raw, AE_IFLNK);
		archive_entry_copy_symlink(raw, unpack->link.ptr);
	}
	return 0;
}

/* It forgets one that stands in pax alone, too, and says nothing. */
static bool unpack_lost_link(struct archive_entry *raw)
{
	const char *target = archive_entry_symlink(raw);

	if (archive_entry_hardlink(raw))
		return false;
	return archive_entry_filetype(raw) == 0 ||
	       (archive_entry_filetype(raw) == AE_IFLNK && (!target || !*target));
}

static int unpack_one(struct unpack *unpack, struct archive_entry *raw, struct err *err)
{
	const char *text = archive_entry_pathname(raw);
	char shown[PATH_SHOWN_MAX];

	if (!text)
		return err_set(err, ERR_CORRUPT, "tar: an entry without a name");
	if (unpack_name_parse(&unpack->name, text, err) < 0 || unpack_named(unpack, raw, err) < 0)
		return err_ctx(err, "entry %s", path_show(str_of(text), shown));
	return 0;
}

static int unpack_next(struct unpack *unpack, struct archive_entry **out)
{
	int got;

	unpack->header_bytes = 0;
	unpack->in_header = true;
	got = archive_read_next_header(unpack->archive, out);
	unpack->in_header = false;
	return got;
}

/* Read over unwanted data, or it would count as part of the next header. */
static int unpack_skip_data(struct unpack *unpack, struct err *err)
{
	if (archive_read_data_skip(unpack->archive) < ARCHIVE_WARN)
		return unpack_tar_error(unpack, err);
	return 0;
}

static int unpack_entries(struct unpack *unpack, uint64_t max_entries, struct err *err)
{
	struct archive_entry *raw;
	uint64_t count = 0;
	int got;

	while ((got = unpack_next(unpack, &raw)) == ARCHIVE_OK || got == ARCHIVE_WARN) {
		if ((got == ARCHIVE_WARN || unpack_lost_link(raw)) &&
		    unpack_repair_link(unpack, raw, err) < 0)
			return err_ctx(err, "tar");
		if (count++ == max_entries)
			return err_set(err, ERR_LIMIT, "more entries than are allowed");
		if (unpack_one(unpack, raw, err) < 0 || unpack_skip_data(unpack, err) < 0)
			return -1;
	}
	if (got != ARCHIVE_EOF)
		return unpack_tar_error(unpack, err);
	return 0;
}

/* What follows the end of the archive counts for the digest that the source takes. */
static int unpack_drain(struct unpack *unpack, struct err *err)
{
	const void *bytes;
	la_ssize_t n;

	do {
		n = unpack_read(unpack->archive, unpack, &bytes);
	} while (n > 0);
	return n < 0 ? unpack_tar_error(unpack, err) : 0;
}

/* Without an entry of its own the root is like any implied directory. */
static int unpack_prepare_root(struct unpack *unpack, struct err *err)
{
	int fd = dirs_fd(&unpack->dirs);

	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0755) < 0)
		return err_os(err, errno, "set the root's owner");
	dirs_set_mtime(&unpack->dirs, (struct timespec){0});
	return overlay_mark_implied(fd, err);
}

static int unpack_all(struct unpack *unpack, uint64_t max_entries, struct err *err)
{
	if (unpack_prepare_root(unpack, err) < 0 || unpack_open(unpack, err) < 0)
		return -1;
	if (unpack_entries(unpack, max_entries, err) < 0 || unpack_drain(unpack, err) < 0)
		return -1;
	if (unpack_whiteouts_apply(&unpack->whiteouts, &unpack->dirs, err) < 0)
		return -1;
	return dirs_finish(&unpack->dirs, err);
}

static void unpack_done(struct unpack *unpack)
{
	(void)archive_read_free(unpack->archive);
	dirs_done(&unpack->dirs);
	buf_done(&unpack->name.path);
	buf_done(&unpack->target.path);
	buf_done(&unpack->before);
	buf_done(&unpack->link);
	unpack_whiteouts_done(&unpack->whiteouts);
	free(unpack);
}

DEFINE_AUTO(unpack, struct unpack *, unpack_done);

static struct unpack *unpack_new(int treefd, struct source *tar, uint64_t max_bytes,
				 uint64_t max_entries)
{
	struct unpack *unpack = calloc(1, sizeof(*unpack));

	if (!unpack)
		abort();
	unpack->archive = archive_read_new();
	if (!unpack->archive)
		abort();
	unpack->tar = tar;
	unpack->bytes_left = max_bytes;
	unpack->in_header = true; /* opening looks at the first one */
	unpack->name.path = BUF_INIT(TAR_NAME_MAX);
	unpack->target.path = BUF_INIT(TAR_NAME_MAX);
	unpack->before = BUF_INIT(HEADERS_MAX);
	unpack->link = BUF_INIT(HEADERS_MAX);
	dirs_init(&unpack->dirs, treefd, max_entries);
	return unpack;
}

/* How a tar is unpacked. */
struct unpack_mode {
	bool files; /* it is no layer */
	struct twin *twin;
};

static int unpack_as(int dirfd, struct source *tar, const struct unpack_limits *limits,
		     const struct unpack_mode *mode, struct err *err)
{
	uint64_t bytes = limits && limits->max_bytes ? limits->max_bytes : UNPACK_BYTES_MAX;
	uint64_t entries = limits && limits->max_entries ? limits->max_entries : UNPACK_ENTRIES_MAX;
	AUTO(unpack) struct unpack *unpack = unpack_new(dirfd, tar, bytes, entries);
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before;
	int result;

	if (plain == (locale_t)0)
		abort();
	unpack->name.plain = mode->files;
	unpack->twin = mode->twin;
	before = uselocale(plain);
	result = unpack_all(unpack, entries, err);
	(void)uselocale(before);
	freelocale(plain);
	return result;
}

int unpack_tar(int treefd, struct source *tar, const struct unpack_limits *limits, struct err *err)
{
	const struct unpack_mode mode = {.files = false};

	return unpack_as(treefd, tar, limits, &mode, err);
}

int unpack_files(int dirfd, struct source *tar, const struct unpack_limits *limits, struct err *err)
{
	const struct unpack_mode mode = {.files = true};

	return unpack_as(dirfd, tar, limits, &mode, err);
}

int unpack_outline(int treefd, struct source *tar, const struct unpack_limits *limits,
		   struct twin *twin, struct err *err)
{
	const struct unpack_mode mode = {.twin = twin};

	return unpack_as(treefd, tar, limits, &mode, err);
}
