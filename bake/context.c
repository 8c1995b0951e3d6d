/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c - what the digest of a COPY's sources is made of.
 *
 *	digest  = sha256 of: version, { source }
 *	source  = 'S', { entry }            entries as source_priv.h walks them
 *	        | 'W' name, { entry }       one that a wildcard matched
 *	entry   = 'T'                       the source itself, a directory
 *	        | 'D' path mode xattrs      a directory below it
 *	        | 'F' path mode file        file is the sha256 of: xattrs size
 *	                                    { 'B' offset bytes } 'E'
 *	        | 'N' path mode xattrs type device      a fifo or device
 *	        | 'H' path path             a file visited before, and as what
 *	        | 'L' path target
 *	        | 'O' uid gid entry         in front of each, where owners count
 *	mode    = as --chmod makes it
 *	xattrs  = count, { name value }
 *	Numbers are 8 bytes, little endian; texts and bytes have their length
 *	in front. Blocks of zeros are left out, so holes make no difference.
 *
 * No two lists of entries have the same bytes: each part says where it ends.
 */
#include "bake/context_priv.h"

#include "bake/ignore_priv.h"
#include "bake/listing_priv.h"
#include "bake/mode_priv.h"
#include "bake/shortcut_priv.h"
#include "bake/sources_priv.h"

#include <assert.h>
#include <endian.h>

#define CONTEXT_VERSION 3

static void context_flush(struct context_hash *hash)
{
	hasher_add(&hash->hasher, (struct str){hash->pending, hash->used});
	hash->used = 0;
}

static void context_add(struct context_hash *hash, struct str bytes)
{
	if (bytes.len > sizeof(hash->pending) - hash->used)
		context_flush(hash);
	if (bytes.len > sizeof(hash->pending)) {
		hasher_add(&hash->hasher, bytes);
		return;
	}
	memcpy(hash->pending + hash->used, bytes.ptr, bytes.len);
	hash->used += bytes.len;
}

static void context_add_number(struct context_hash *hash, uint64_t value)
{
	uint64_t bytes = htole64(value);

	context_add(hash, (struct str){(const char *)&bytes, sizeof(bytes)});
}

static void context_add_text(struct context_hash *hash, struct str text)
{
	context_add_number(hash, text.len);
	context_add(hash, text);
}

static void context_add_tag(struct context_hash *hash, char tag)
{
	context_add(hash, (struct str){&tag, 1});
}

void context_hash_init(struct context_hash *hash, const struct context_sources *sources)
{
	hasher_init(&hash->hasher);
	hash->used = 0;
	hash->owners = sources->image;
	hash->chmod = sources->chmod;
	context_add_number(hash, CONTEXT_VERSION);
}

void context_hash_done(struct context_hash *hash)
{
	hasher_done(&hash->hasher);
}

void context_hash_source(struct context_hash *hash, const struct source_spec *source)
{
	hash->whole = source->whole;
	context_add_tag(hash, source->matched ? 'W' : 'S');
	if (source->matched)
		context_add_text(hash, str_of(source->name));
}

static void context_add_attributes(struct context_hash *hash, const struct source_entry *entry)
{
	context_add_number(hash, entry->xattrs.count);
	for (size_t i = 0; i < entry->xattrs.count; i++) {
		context_add_text(hash, str_of(entry->xattrs.at[i].name));
		context_add_text(hash, buf_str(&entry->xattrs.at[i].value));
	}
}

static void context_add_head(struct context_hash *hash, char tag, const struct source_entry *entry)
{
	context_add_tag(hash, tag);
	context_add_text(hash, str_of(entry->path));
	context_add_number(hash, mode_copied(hash->chmod, &entry->st));
	context_add_attributes(hash, entry);
}

static void context_add_file(struct context_hash *hash, const struct source_entry *entry)
{
	assert(entry->known && entry->what.algorithm == DIGEST_SHA256);
	context_add_tag(hash, 'F');
	context_add_text(hash, str_of(entry->path));
	context_add_number(hash, mode_copied(hash->chmod, &entry->st));
	context_add(hash, (struct str){(const char *)entry->what.bytes, 32});
}

static void context_add_names(struct context_hash *hash, char tag, const char *path,
			      const char *other)
{
	context_add_tag(hash, tag);
	context_add_text(hash, str_of(path));
	context_add_text(hash, str_of(other));
}

static void context_add_owner(struct context_hash *hash, const struct stat *st)
{
	context_add_tag(hash, 'O');
	context_add_number(hash, st->st_uid);
	context_add_number(hash, st->st_gid);
}

static void context_add_node(struct context_hash *hash, const struct source_entry *entry)
{
	context_add_head(hash, 'N', entry);
	context_add_number(hash, entry->st.st_mode & S_IFMT);
	context_add_number(hash, entry->st.st_rdev);
}

void context_hash_entry(struct context_hash *hash, const struct source_entry *entry)
{
	bool content = !*entry->path && S_ISDIR(entry->st.st_mode) && !hash->whole;

	if (hash->owners && !content)
		context_add_owner(hash, &entry->st);
	if (S_ISLNK(entry->st.st_mode)) {
		context_add_names(hash, 'L', entry->path, entry->target);
	} else if (entry->twin) {
		context_add_names(hash, 'H', entry->path, entry->twin);
	} else if (S_ISREG(entry->st.st_mode)) {
		context_add_file(hash, entry);
	} else if (!S_ISDIR(entry->st.st_mode)) {
		context_add_node(hash, entry);
	} else if (!content) {
		context_add_head(hash, 'D', entry);
	} else {
		context_add_tag(hash, 'T');
	}
}

void context_hash_final(struct context_hash *hash, struct digest *out)
{
	context_flush(hash);
	hasher_final(&hash->hasher, out);
}

void context_file_begin(struct context_hash *hash, const struct source_entry *entry)
{
	hasher_init(&hash->hasher);
	hash->used = 0;
	context_add_attributes(hash, entry);
	context_add_number(hash, (uint64_t)entry->st.st_size);
}

void context_file_block(struct context_hash *hash, uint64_t offset, struct str bytes)
{
	context_add_tag(hash, 'B');
	context_add_number(hash, offset);
	context_add_text(hash, bytes);
}

void context_file_end(struct context_hash *hash, struct source_entry *entry)
{
	context_add_tag(hash, 'E');
	context_hash_final(hash, &entry->what);
	entry->known = true;
}

/* The digest as a visitor. */
struct context_reader {
	struct context_hash hash;
	struct shortcut *shortcut;
	const struct cancel *cancel;
	struct listing_draft draft;
};

static int context_start(void *ctx, const struct source_spec *source,
			 const struct source_entry *entry, struct err *err)
{
	struct context_reader *reader = ctx;

	(void)entry;
	(void)err;
	listing_source(&reader->draft, source);
	context_hash_source(&reader->hash, source);
	return 0;
}

static int context_visit(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct context_reader *reader = ctx;

	context_hash_entry(&reader->hash, entry);
	return listing_add(&reader->draft, entry, err);
}

static int context_take_block(void *ctx, uint64_t offset, struct str bytes, struct err *err)
{
	(void)err;
	context_file_block(ctx, offset, bytes);
	return 0;
}

static int context_read_file(const struct context_reader *reader, struct source_entry *entry,
			     struct err *err)
{
	AUTO(context_hash) struct context_hash hash = {.used = 0};
	int64_t read_at = shortcut_now();

	if (source_open_file(entry, err) < 0)
		return -1;
	context_file_begin(&hash, entry);
	if (source_read(entry, reader->cancel, context_take_block, &hash, err) < 0)
		return -1;
	context_file_end(&hash, entry);
	shortcut_add(reader->shortcut, &entry->st, read_at, &entry->what);
	return 0;
}

/* The digest of a file, remembered or by reading it. An error is reported when its turn comes. */
static bool context_look_ahead(void *ctx, int dirfd, const char *name, struct stat *st,
			       struct digest *out)
{
	const struct context_reader *reader = ctx;
	struct source_entry entry;
	struct err ignored;
	int result;

	if (shortcut_find(reader->shortcut, st, out))
		return true;
	source_entry_ahead(dirfd, name, st, &entry);
	result = context_read_file(reader, &entry, &ignored);
	*st = entry.st;
	*out = entry.what;
	source_entry_done(&entry);
	return result == 0;
}

static int context_visit_file(void *ctx, struct source_entry *entry, struct err *err)
{
	struct context_reader *reader = ctx;

	if (!entry->twin && !entry->known)
		entry->known = shortcut_find(reader->shortcut, &entry->st, &entry->what);
	if (!entry->twin && !entry->known && context_read_file(reader, entry, err) < 0)
		return -1;
	context_hash_entry(&reader->hash, entry);
	if (reader->draft.list && !entry->twin && source_open_file(entry, err) < 0)
		return -1; /* a list has attributes, which are not remembered */
	return listing_add(&reader->draft, entry, err);
}

int context_check(int contextfd, struct err *err)
{
	auto_ignore struct ignore ignore = {0};

	return ignore_read(contextfd, &ignore, err);
}

static inline void auto_context_reader_release(struct context_reader *reader)
{
	context_hash_done(&reader->hash);
	shortcut_close(reader->shortcut);
}

int context_digest(const struct context_sources *sources, const struct cancel *cancel,
		   struct digest *out, struct err *err)
{
	AUTO(context_reader)
	struct context_reader reader = {.cancel = cancel};
	const struct source_visitor visitor = {
		.start = context_start,
		.enter = context_visit,
		.ahead = context_look_ahead,
		.file = context_visit_file,
		.link = context_visit,
		.node = context_visit,
		.ctx = &reader,
		.cancel = cancel,
	};

	int result;

	listing_draft_init(&reader.draft, sources);
	context_hash_init(&reader.hash, sources);
	reader.shortcut = shortcut_open(sources->image ? NULL : sources->store, sources->fd);
	result = sources_walk(sources, &visitor, err);
	(void)shortcut_keep(reader.shortcut); /* keep what was read, even after a failure */
	if (result < 0)
		return sources->whole ? -1 : err_ctx(err, "COPY");
	context_hash_final(&reader.hash, out);
	return 0;
}
