/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/source_priv.h"

#include "bake/context.h"
#include "bake/links_priv.h"
#include "layers/base/fd.h"
#include "layers/base/names.h"
#include "layers/base/path.h"

#include <fcntl.h>

#define SOURCE_NAMES_MAX ((size_t)32 << 20) /* of one directory: a million names */
#define SOURCE_OPEN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* A directory on the way to what is visited. */
struct level {
	struct level *above;
	struct source_entry *entry;
	size_t length; /* of its path */
	bool entered;
};

struct walk {
	const struct source_spec *source;
	const struct source_visitor *visitor;
	struct level *level; /* the directory that is being read */
	struct links links;
	struct buf path;
	struct ahead *ahead;
	char *block;
	size_t entries;
	size_t depth;
};

static inline void auto_walk_release(struct walk *walk)
{
	links_done(&walk->links);
	buf_done(&walk->path);
	ahead_free(walk->ahead);
	free(walk->block);
}

void source_entry_done(struct source_entry *entry)
{
	auto_close_release(&entry->fd);
	entry->fd = -1;
	xattrs_done(&entry->xattrs);
}

static inline void auto_entry_release(struct source_entry *entry)
{
	source_entry_done(entry);
}
#define auto_entry AUTO(entry)

static int source_refuse_kind(const struct source_entry *entry, struct err *err)
{
	return err_set(err, ERR_REFUSED, "%s: COPY takes files, directories and links, this is %s",
		       *entry->path ? entry->path : entry->name,
		       S_ISSOCK(entry->st.st_mode) ? "a socket" : "a device");
}

static bool source_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int source_changed(const struct source_entry *entry, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "%s changed while it was read; bake again",
		       *entry->path ? entry->path : entry->name);
}

/* The descriptor is of the very file whose status we hold. */
static int source_verify(struct source_entry *entry, struct err *err)
{
	struct stat st;

	if (fstat(entry->fd, &st) < 0)
		return err_os(err, errno, "stat %s", entry->path);
	if (st.st_dev != entry->st.st_dev || st.st_ino != entry->st.st_ino ||
	    (st.st_mode & S_IFMT) != (entry->st.st_mode & S_IFMT))
		return source_changed(entry, err);
	if (entry->known && !source_same(&st, &entry->st))
		return source_changed(entry, err);
	entry->st = st;
	entry->verified = true;
	return xattrs_read(entry->fd, &entry->xattrs, err) < 0 ? err_ctx(err, "%s", entry->path)
							       : 0;
}

/* Open by name. A failure means that what was there a moment ago has changed. */
static int source_open_name(struct source_entry *entry, struct err *err)
{
	entry->fd = openat(entry->dirfd, entry->name, SOURCE_OPEN);
	if (entry->fd < 0 && (errno == ENOENT || errno == ELOOP))
		return source_changed(entry, err);
	if (entry->fd < 0)
		return err_os(err, errno, "open %s", entry->path);
	return source_verify(entry, err);
}

int source_open_file(struct source_entry *entry, struct err *err)
{
	return entry->verified ? 0 : source_open_name(entry, err);
}

void source_entry_ahead(int dirfd, const char *name, const struct stat *st,
			struct source_entry *out)
{
	*out = (struct source_entry){
		.path = name,
		.name = name,
		.st = *st,
		.dirfd = dirfd,
		.fd = -1,
	};
}

/* Visit a directory, and those above it first; the walk's path is longer meanwhile. */
static int source_enter(struct walk *walk, struct level *level, struct err *err)
{
	const struct source_visitor *visitor = walk->visitor;
	char *end;
	char kept;
	int result;

	if (!level || level->entered)
		return 0;
	if (source_enter(walk, level->above, err) < 0)
		return -1;
	end = walk->path.ptr + level->length;
	kept = *end;
	*end = '\0';
	level->entry->path = walk->path.ptr;
	result = visitor->enter(visitor->ctx, level->entry, err);
	*end = kept;
	level->entered = true;
	return result;
}

static int source_visit_file(struct walk *walk, struct source_entry *entry, struct err *err)
{
	struct str path = str_of(entry->path);

	if (links_meet(&walk->links, &entry->st, path, &entry->twin, err) < 0)
		return -1;
	return walk->visitor->file(walk->visitor->ctx, entry, err);
}

static int source_visit_link(struct walk *walk, struct source_entry *entry, struct err *err)
{
	char target[PATH_TEXT_MAX];
	ssize_t n = readlinkat(entry->dirfd, entry->name, target, sizeof(target));

	if (n < 0 || n == (ssize_t)sizeof(target))
		return err_os(err, n < 0 ? errno : ENAMETOOLONG, "read the link %s", entry->path);
	target[n] = '\0';
	entry->target = target;
	return walk->visitor->link(walk->visitor->ctx, entry, err);
}

static int source_visit_node(struct walk *walk, struct source_entry *entry, struct err *err)
{
	bool device = S_ISBLK(entry->st.st_mode) || S_ISCHR(entry->st.st_mode);

	if (S_ISSOCK(entry->st.st_mode) || (device && !walk->source->devices))
		return source_refuse_kind(entry, err);
	return walk->visitor->node(walk->visitor->ctx, entry, err);
}

/* Names of a directory that are looked at together. */
struct chunk {
	size_t cap;
	size_t count;
	const char **names;
	enum source_verdict *verdicts;
	struct ahead_entry *looked;
};

static struct chunk chunk_make(size_t names)
{
	struct chunk chunk = {.cap = names < AHEAD_NAMES ? names : AHEAD_NAMES};

	chunk.names = calloc(chunk.cap + 1, sizeof(*chunk.names));
	chunk.verdicts = calloc(chunk.cap + 1, sizeof(*chunk.verdicts));
	chunk.looked = malloc((chunk.cap + 1) * sizeof(*chunk.looked));
	if (!chunk.names || !chunk.verdicts || !chunk.looked)
		abort();
	return chunk;
}

static inline void auto_chunk_release(struct chunk *chunk)
{
	free(chunk->names);
	free(chunk->verdicts);
	free(chunk->looked);
}

static int source_add_name(struct walk *walk, const char *name, struct err *err)
{
	if (walk->path.len > 0 && buf_add(&walk->path, STR("/"), err) < 0)
		return err_ctx(err, "path");
	return buf_add(&walk->path, str_of(name), err) < 0 ? err_ctx(err, "path") : 0;
}

static void source_cut_path(struct walk *walk, size_t length)
{
	walk->path.len = length;
	walk->path.ptr[length] = '\0';
}

static int source_judge(struct walk *walk, const char *name, enum source_verdict *out,
			struct err *err)
{
	const struct source_filter *filter = walk->source->filter;
	size_t parent = walk->path.len;

	*out = SOURCE_TAKE;
	if (!filter)
		return 0;
	if (source_add_name(walk, name, err) < 0)
		return -1;
	*out = filter->judge(filter->ctx, walk->path.ptr);
	source_cut_path(walk, parent);
	return 0;
}

/* Fill the chunk with names from *at on, without those that are skipped. */
static int source_fill_chunk(struct walk *walk, const struct names *names, size_t *at,
			     struct chunk *chunk, struct err *err)
{
	for (chunk->count = 0; *at < names->count && chunk->count < chunk->cap; (*at)++) {
		enum source_verdict verdict;

		if (source_judge(walk, names->at[*at], &verdict, err) < 0)
			return -1;
		if (verdict == SOURCE_SKIP)
			continue;
		chunk->names[chunk->count] = names->at[*at];
		chunk->verdicts[chunk->count++] = verdict;
	}
	return cancel_check(walk->visitor->cancel, err);
}

static int source_visit_name(struct walk *walk, int dirfd, const struct chunk *chunk, size_t at,
			     struct err *err);

static int source_visit_names(struct walk *walk, int dirfd, struct err *err)
{
	auto_names struct names names = {0};
	size_t at = 0;

	if (names_read(dirfd, SOURCE_NAMES_MAX, &names, err) < 0)
		return -1;

	AUTO(chunk) struct chunk chunk = chunk_make(names.count);

	while (at < names.count) {
		if (source_fill_chunk(walk, &names, &at, &chunk, err) < 0)
			return -1;
		ahead_look(walk->ahead, dirfd, chunk.names, chunk.count, chunk.looked);
		for (size_t i = 0; i < chunk.count; i++) {
			if (source_visit_name(walk, dirfd, &chunk, i, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int source_visit_dir(struct walk *walk, struct source_entry *entry, bool later,
			    struct err *err)
{
	const struct source_visitor *visitor = walk->visitor;
	struct level level = {walk->level, entry, walk->path.len, false};
	int result;

	if (walk->depth == CONTEXT_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "directories nested deeper than %d, at %.100s",
			       CONTEXT_DEPTH_MAX, entry->path);
	if (!later && source_enter(walk, &level, err) < 0)
		return -1;
	walk->level = &level;
	walk->depth++;
	result = source_visit_names(walk, entry->fd, err);
	walk->depth--;
	walk->level = level.above;
	if (result < 0)
		return -1;
	entry->path = walk->path.ptr; /* it may have moved as it grew */
	return level.entered && visitor->leave ? visitor->leave(visitor->ctx, entry, err) : 0;
}

static int source_visit(struct walk *walk, struct source_entry *entry, enum source_verdict verdict,
			struct err *err)
{
	const struct source_filter *filter = walk->source->filter;
	bool directory = S_ISDIR(entry->st.st_mode);

	if (S_ISSOCK(entry->st.st_mode)) {
		if (verdict == SOURCE_TAKE && walk->visitor->left)
			walk->visitor->left(walk->visitor->ctx, entry);
		return 0;
	}
	if (verdict == SOURCE_ENTER && !directory)
		return 0;
	if (filter && verdict == SOURCE_TAKE)
		filter->took(filter->ctx);
	if (verdict == SOURCE_TAKE && source_enter(walk, walk->level, err) < 0)
		return -1;
	if (S_ISREG(entry->st.st_mode))
		return source_visit_file(walk, entry, err);
	if (S_ISLNK(entry->st.st_mode))
		return source_visit_link(walk, entry, err);
	if (!directory)
		return source_visit_node(walk, entry, err);
	if (source_open_name(entry, err) < 0)
		return -1;
	return source_visit_dir(walk, entry, verdict == SOURCE_ENTER, err);
}

static int source_visit_name(struct walk *walk, int dirfd, const struct chunk *chunk, size_t at,
			     struct err *err)
{
	const struct ahead_entry *looked = &chunk->looked[at];
	auto_entry struct source_entry entry = {
		.name = chunk->names[at],
		.st = looked->st,
		.dirfd = dirfd,
		.fd = -1,
		.known = looked->known,
		.block = walk->block,
	};
	size_t parent = walk->path.len;
	int result;

	if (++walk->entries > CONTEXT_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d files in one COPY",
			       CONTEXT_ENTRIES_MAX);
	if (source_add_name(walk, entry.name, err) < 0)
		return -1;
	entry.path = walk->path.ptr;
	if (looked->os == ENOENT)
		return source_changed(&entry, err);
	if (looked->os)
		return err_os(err, looked->os, "stat %s", entry.path);
	if (looked->known)
		entry.what = looked->what;
	result = source_visit(walk, &entry, chunk->verdicts[at], err);
	source_cut_path(walk, parent);
	return result;
}

/* Status first: opening a device or a fifo could have effects. */
static int source_open(const struct source_spec *source, struct source_entry *entry,
		       struct err *err)
{
	auto_close int fd = fd_open_in_root(source->fd, source->path, O_PATH, 0, err);

	if (fd < 0)
		return -1;
	if (fstat(fd, &entry->st) < 0)
		return err_os(err, errno, "stat %s", source->written);
	if (!S_ISREG(entry->st.st_mode) && !S_ISDIR(entry->st.st_mode))
		return 0;
	entry->fd =
		fd_open_in_root(source->fd, source->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	return entry->fd < 0 ? -1 : 0;
}

static int source_visit_top_entry(struct walk *walk, struct source_entry *entry, struct err *err)
{
	if (entry->fd < 0)
		return source_visit_node(walk, entry, err);
	if (source_verify(entry, err) < 0)
		return -1;
	return S_ISDIR(entry->st.st_mode) ? source_visit_dir(walk, entry, false, err)
					  : source_visit_file(walk, entry, err);
}

static int source_visit_top(struct walk *walk, struct source_entry *entry, struct err *err)
{
	const struct source_visitor *visitor = walk->visitor;

	if (visitor->start(visitor->ctx, walk->source, entry, err) < 0)
		return -1;
	if (source_visit_top_entry(walk, entry, err) < 0)
		return -1;
	return visitor->finish ? visitor->finish(visitor->ctx, err) : 0;
}

int source_walk(struct source_spec *source, const struct source_visitor *visitor, struct err *err)
{
	AUTO(walk)
	struct walk walk = {.source = source, .visitor = visitor, .path = BUF_INIT(PATH_TEXT_MAX)};
	auto_entry struct source_entry entry = {
		.path = "", .name = source->name, .dirfd = -1, .fd = -1};

	walk.ahead = ahead_new(visitor->ahead, visitor->ctx);
	entry.block = walk.block = malloc(SOURCE_BLOCK);
	if (!walk.block)
		abort();
	if (buf_add(&walk.path, STR(""), err) < 0 || source_open(source, &entry, err) < 0)
		return -1;
	source->opened = true;
	return source_visit_top(&walk, &entry, err);
}

/* Where the next data may be, from offset on, at a block's start; size when there is none. */
static off_t source_skip_hole(const struct source_entry *entry, off_t offset)
{
	off_t data;

	if ((off_t)entry->st.st_blocks * 512 >= entry->st.st_size)
		return offset; /* no holes */
	data = lseek(entry->fd, offset, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? entry->st.st_size : offset;
	data -= data % (off_t)SOURCE_BLOCK;
	return data > offset ? data : offset;
}

int source_read(const struct source_entry *entry, const struct cancel *cancel, source_block_fn *fn,
		void *ctx, struct err *err)
{
	size_t size =
		entry->st.st_size < (off_t)SOURCE_BLOCK ? (size_t)entry->st.st_size : SOURCE_BLOCK;
	auto_free char *own = entry->block ? NULL : malloc(size + 1);
	char *block = entry->block ? entry->block : own;
	off_t offset = source_skip_hole(entry, 0);
	struct stat after;

	if (!block)
		abort();
	while (offset < entry->st.st_size) {
		off_t left = entry->st.st_size - offset;
		ssize_t n = fd_pread_all(entry->fd, block, left < (off_t)size ? (size_t)left : size,
					 offset, err);
		struct str bytes = {block, n > 0 ? (size_t)n : 0};

		if (n < 0)
			return err_ctx(err, "%s", entry->path);
		if (n == 0)
			break;
		if (cancel_check(cancel, err) < 0)
			return -1;
		if (!str_is_zero(bytes) && fn(ctx, (uint64_t)offset, bytes, err) < 0)
			return -1;
		offset = source_skip_hole(entry, offset + (off_t)SOURCE_BLOCK);
	}
	if (fstat(entry->fd, &after) < 0)
		return err_os(err, errno, "stat %s", entry->path);
	return source_same(&entry->st, &after) ? 0 : source_changed(entry, err);
}
