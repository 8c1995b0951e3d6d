/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/sources_priv.h"

#include "bake/ignore_priv.h"
#include "layers/base/fd.h"
#include "layers/base/names.h"
#include "layers/base/path.h"

#include <fcntl.h>

#define SOURCES_LINKS_MAX 40                 /* as the kernel */
#define SOURCES_REST_MAX ((size_t)64 * 1024) /* links put in front of what is left */

/* All sources of a COPY, and the one that is at hand. */
struct sources {
	const struct context_sources *spec;
	const struct source_visitor *visitor;
	struct ignore ignore;   /* of the context */
	struct ignore excludes; /* --exclude */
	const char *written;
	struct pattern include; /* --parents: what is taken below the pivot */
	bool has_include;
	bool many;
	bool bare;           /* nothing of the directory at hand is taken but itself */
	struct buf resolved; /* where the source at hand is */
	size_t taken;        /* entries of it */
	const struct ignore_rule *hidden_by;
};

static inline void auto_sources_release(struct sources *slot)
{
	ignore_done(&slot->ignore);
	ignore_done(&slot->excludes);
	pattern_done(&slot->include);
	buf_done(&slot->resolved);
}

/* An absolute path in the root as the rules have it. */
static struct str sources_relative(struct str path)
{
	return path.len > 0 ? str_skip(path, 1) : path;
}

static enum source_verdict sources_verdict(enum ignore_verdict verdict)
{
	static const enum source_verdict verdicts[] = {
		[IGNORE_SEEN] = SOURCE_TAKE,
		[IGNORE_HIDDEN] = SOURCE_SKIP,
		[IGNORE_HIDDEN_TOP] = SOURCE_ENTER,
	};

	return verdicts[verdict];
}

static enum source_verdict sources_worse(enum source_verdict a, enum source_verdict b)
{
	return a > b ? a : b;
}

static enum source_verdict sources_judge_include(const struct sources *walk, struct str path)
{
	static const enum source_verdict verdicts[] = {
		[PATTERN_MISS] = SOURCE_SKIP,
		[PATTERN_BELOW] = SOURCE_ENTER,
		[PATTERN_HIT] = SOURCE_TAKE,
	};

	return walk->has_include ? verdicts[pattern_try(&walk->include, path)] : SOURCE_TAKE;
}

/* What the .dockerignore says of a path below the source at hand. */
static enum source_verdict sources_judge_ignore(struct sources *walk, const char *path)
{
	char full[PATH_TEXT_MAX];
	struct str base = sources_relative(buf_str(&walk->resolved));
	int n;

	if (walk->ignore.count == 0)
		return SOURCE_TAKE;
	n = snprintf(full, sizeof(full), STR_FMT "%s%s", STR_ARG(base), base.len ? "/" : "", path);
	if (n < 0 || n >= (int)sizeof(full))
		return SOURCE_TAKE; /* it cannot be opened either */
	return sources_verdict(
		ignore_judge(&walk->ignore, (struct str){full, (size_t)n}, &walk->hidden_by));
}

static enum source_verdict sources_judge(void *ctx, const char *path)
{
	struct sources *walk = ctx;
	struct str text = str_of(path);
	const struct ignore_rule *ignored;
	enum source_verdict verdict = walk->bare ? SOURCE_SKIP : sources_judge_include(walk, text);

	if (verdict != SOURCE_SKIP)
		verdict = sources_worse(
			verdict, sources_verdict(ignore_judge(&walk->excludes, text, &ignored)));
	if (verdict != SOURCE_SKIP)
		verdict = sources_worse(verdict, sources_judge_ignore(walk, path));
	return verdict;
}

static void sources_took(void *ctx)
{
	struct sources *walk = ctx;

	walk->taken++;
}

static bool sources_has_rules(const struct sources *walk)
{
	return walk->has_include || walk->excludes.count > 0 || walk->ignore.count > 0;
}

/* Put a link's target in front of what is left of the path. */
static int sources_follow(int linkfd, int *links, struct buf *path, struct buf *rest,
			  struct err *err)
{
	auto_buf struct buf longer = BUF_INIT(SOURCES_REST_MAX);
	char target[PATH_TEXT_MAX];
	ssize_t n = readlinkat(linkfd, "", target, sizeof(target));

	if (n < 0)
		return err_os(err, errno, "read a link");
	if (++*links > SOURCES_LINKS_MAX)
		return err_os(err, ELOOP, "follow links");
	if (n > 0 && target[0] == '/')
		buf_clear(path);
	if (buf_addf(&longer, err, "%.*s/", (int)n, target) < 0 ||
	    buf_add(&longer, buf_str(rest), err) < 0)
		return -1;
	buf_done(rest);
	*rest = longer;
	longer = BUF_INIT(SOURCES_REST_MAX);
	return 0;
}

static void sources_go_up(struct buf *path)
{
	const char *slash = path->len ? memrchr(path->ptr, '/', path->len) : NULL;

	if (!slash)
		return;
	path->len = (size_t)(slash - path->ptr);
	path->ptr[path->len] = '\0';
}

/* Go down one part. A missing one stays as written, and will fail to open. */
static int sources_go_down(int rootfd, struct str part, int *links, struct buf *path,
			   struct buf *rest, struct err *err)
{
	size_t before = path->len;
	auto_close int fd = -1;
	struct stat st;

	if (buf_addf(path, err, "/" STR_FMT, STR_ARG(part)) < 0)
		return -1;
	fd = fd_open_in_root(rootfd, path->ptr, O_PATH | O_NOFOLLOW, 0, err);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	path->len = before;
	path->ptr[before] = '\0';
	return sources_follow(fd, links, path, rest, err);
}

/* Where a clean path leads in a root: the same without symlinks. */
static int sources_resolve(int rootfd, struct str clean, struct buf *out, struct err *err)
{
	auto_buf struct buf rest = BUF_INIT(SOURCES_REST_MAX);
	int links = 0;

	buf_clear(out);
	if (buf_add(out, STR(""), err) < 0 || buf_add(&rest, clean, err) < 0)
		return -1;
	for (;;) {
		auto_buf struct buf name = BUF_INIT(PATH_TEXT_MAX);
		struct str left = buf_str(&rest);
		struct str part;

		if (!path_next(&left, &part))
			return 0;
		if (buf_add(&name, part, err) < 0)
			return -1;
		memmove(rest.ptr, left.ptr, left.len);
		rest.len = left.len;
		rest.ptr[rest.len] = '\0';
		if (str_equal(buf_str(&name), STR("..")))
			sources_go_up(out);
		else if (sources_go_down(rootfd, buf_str(&name), &links, out, &rest, err) < 0)
			return -1;
	}
}

/* Say which rule hides a source; one that does not exist is hidden by none. */
static int sources_refuse_hidden(const struct sources *walk, struct str clean, struct err *err)
{
	const struct ignore_rule *rule = walk->hidden_by;
	char root[PATH_TEXT_MAX];
	struct err missing;
	auto_close int fd = fd_open_in_root(walk->spec->fd, clean.len ? clean.ptr : "/",
					    O_PATH | O_NOFOLLOW, 0, &missing);

	if (fd < 0 && missing.kind == ERR_OS && (missing.os == ENOENT || missing.os == ENOTDIR))
		return sources_refuse_missing(walk->spec, walk->written, clean, err);
	sources_show_root(walk->spec, root);
	return err_set(err, ERR_NOT_FOUND, "%s is hidden by " IGNORE_FILE " line %zu (%s%s)%s",
		       walk->written, rule->line, rule->shows ? "!" : "", rule->pattern.text, root);
}

/* Whether rules hide a path of the context, and show nothing below it. */
static bool sources_hides(struct sources *walk, struct str clean)
{
	struct str path = sources_relative(clean);
	enum ignore_verdict verdict = IGNORE_SEEN;
	auto_close int fd = -1;
	struct err ignored;

	if (path.len > 0)
		verdict = ignore_judge(&walk->ignore, path, &walk->hidden_by);
	if (verdict != IGNORE_HIDDEN_TOP)
		return verdict == IGNORE_HIDDEN;
	fd = fd_open_in_root(walk->spec->fd, clean.ptr, O_PATH | O_DIRECTORY, 0, &ignored);
	return fd < 0;
}

static int sources_fail(const struct sources *walk, struct str clean, struct err *err)
{
	if (err->kind != ERR_OS)
		return -1;
	if (err->os == ENOENT || err->os == ENOTDIR)
		return sources_refuse_missing(walk->spec, walk->written, clean, err);
	if (err->os == ELOOP)
		return err_set(err, ERR_REFUSED, "%s: too many symlinks on the way", walk->written);
	if (err->os == ENAMETOOLONG)
		return err_set(err, ERR_REFUSED, "%s: a name in it is longer than %d bytes",
			       walk->written, NAME_MAX);
	return -1;
}

/* A source, or a match of one, by its clean path. */
static int sources_visit(struct sources *walk, struct str clean, bool matched, struct err *err)
{
	const struct source_filter filter = {sources_judge, sources_took, walk};
	const struct ignore_rule *top;
	struct source_spec source = {
		.fd = walk->spec->fd,
		.written = walk->written,
		.name = path_base(clean).ptr,
		.matched = matched,
		.many = walk->many,
		.devices = walk->spec->image,
		.whole = walk->spec->whole,
		.filter = sources_has_rules(walk) ? &filter : NULL,
	};

	walk->taken = 0;
	walk->hidden_by = NULL;
	if (sources_resolve(walk->spec->fd, clean, &walk->resolved, err) < 0)
		return sources_fail(walk, clean, err);
	if (sources_hides(walk, clean) || sources_hides(walk, buf_str(&walk->resolved)))
		return matched ? 0 : sources_refuse_hidden(walk, clean, err);
	top = walk->hidden_by;
	source.path = walk->resolved.len ? walk->resolved.ptr : "/";
	source.whole &= walk->resolved.len > 0;
	if (source_walk(&source, walk->visitor, err) < 0)
		return source.opened ? -1 : sources_fail(walk, clean, err);
	if (!top || walk->taken > 0 || matched)
		return 0;
	walk->hidden_by = top;
	return sources_refuse_hidden(walk, clean, err);
}

/* Called for what a wildcard matches; 1 ends the search. */
typedef int sources_match_fn(struct sources *walk, struct str clean, struct err *err);

static int sources_match_name(struct sources *walk, int dirfd, const char *name, struct str rest,
			      struct buf *path, sources_match_fn *fn, struct err *err);

/* All that the first part of `rest` matches in a directory. */
static int sources_match(struct sources *walk, int dirfd, struct str rest, struct buf *path,
			 sources_match_fn *fn, struct err *err)
{
	auto_pattern struct pattern pattern = {0};
	auto_names struct names names = {0};
	size_t before = path->len;
	struct str part;
	int result = 0;

	if (!path_next(&rest, &part))
		return fn(walk, buf_str(path), err);
	if (pattern_parse(part, &pattern, err) < 0 ||
	    names_read(dirfd, SOURCES_NAMES_MAX, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < names.count && result == 0; i++) {
		if (!pattern_matches_name(&pattern, str_of(names.at[i])))
			continue;
		result = sources_match_name(walk, dirfd, names.at[i], rest, path, fn, err);
		path->len = before;
		path->ptr[before] = '\0';
	}
	return result;
}

static int sources_match_name(struct sources *walk, int dirfd, const char *name, struct str rest,
			      struct buf *path, sources_match_fn *fn, struct err *err)
{
	struct str after = rest;
	struct str part;
	auto_close int fd = -1;

	if (cancel_check(walk->visitor->cancel, err) < 0 || buf_addf(path, err, "/%s", name) < 0)
		return -1;
	if (!path_next(&after, &part))
		return fn(walk, buf_str(path), err);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? 0 : sources_match(walk, fd, rest, path, fn, err);
}

/* The parts in front of the first wildcard, and the rest. */
static void sources_divide(struct str clean, struct str *out_base, struct str *out_rest)
{
	struct str rest = clean;
	struct str part;

	*out_rest = clean;
	while (path_next(&rest, &part) && !pattern_has_wildcard(part))
		*out_rest = rest;
	*out_base = (struct str){clean.ptr, (size_t)(out_rest->ptr - clean.ptr)};
	while (out_base->len > 0 && out_base->ptr[out_base->len - 1] == '/')
		out_base->len--;
}

static int sources_count_match(struct sources *walk, struct str clean, struct err *err)
{
	(void)clean;
	(void)err;
	return walk->taken++ > 0; /* to know that there are several, two are enough */
}

static bool sources_is_directory(const struct sources *walk, struct str clean)
{
	struct err ignored;
	auto_close int fd =
		fd_open_in_root(walk->spec->fd, clean.ptr, O_PATH | O_DIRECTORY, 0, &ignored);

	return fd >= 0;
}

/* What is excluded by its own name is left out; a directory still makes the destination. */
static int sources_visit_match(struct sources *walk, struct str clean, struct err *err)
{
	const struct ignore_rule *rule;
	enum ignore_verdict verdict = ignore_judge(&walk->excludes, path_base(clean), &rule);
	int result;

	if (verdict != IGNORE_SEEN && !sources_is_directory(walk, clean))
		return 0;
	walk->bare = verdict == IGNORE_HIDDEN;
	result = sources_visit(walk, clean, true, err);
	walk->bare = false;
	return result;
}

/* No match is no error: patterns say what there may be. */
static int sources_visit_matches(struct sources *walk, struct str clean, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	auto_close int dirfd = -1;
	struct str base;
	struct str rest;

	sources_divide(clean, &base, &rest);
	if (buf_add(&path, base, err) < 0)
		return -1;
	dirfd = fd_open_in_root(walk->spec->fd, path.len ? path.ptr : "/", O_RDONLY | O_DIRECTORY,
				0, err);
	if (dirfd < 0)
		return err->kind == ERR_OS && (err->os == ENOENT || err->os == ENOTDIR) ? 0 : -1;
	walk->taken = 0;
	if (sources_match(walk, dirfd, rest, &path, sources_count_match, err) < 0)
		return -1;
	walk->many |= walk->taken > 1;
	return sources_match(walk, dirfd, rest, &path, sources_visit_match, err);
}

/* --parents: divide at the pivot, "/./"; without one it is the root. */
static int sources_take_pivot(struct sources *walk, const char *written, struct buf *out_pivot,
			      struct err *err)
{
	const char *pivot = strstr(written, "/./");
	struct str below = str_of(pivot ? pivot + 3 : written);

	if (pivot && buf_add(out_pivot, (struct str){written, (size_t)(pivot - written)}, err) < 0)
		return -1;
	pattern_done(&walk->include);
	walk->has_include = true;
	if (pattern_parse(below, &walk->include, err) < 0)
		return -1;
	walk->has_include = *walk->include.text != '\0';
	return buf_add(out_pivot, STR("/"), err);
}

static int sources_check_taken(struct sources *walk, struct err *err)
{
	auto_buf struct buf clean = BUF_INIT(PATH_TEXT_MAX);

	if (walk->taken > 0 || !walk->has_include || !walk->include.literal)
		return 0;
	if (path_join(STR("/"), str_of(walk->written), &clean, err) < 0)
		return -1;
	if (walk->hidden_by)
		return sources_refuse_hidden(walk, buf_str(&clean), err);
	if (sources_resolve(walk->spec->fd, buf_str(&clean), &walk->resolved, err) < 0)
		return -1;
	if (!str_equal(buf_str(&clean), buf_str(&walk->resolved)))
		return err_set(err, ERR_REFUSED,
			       "%s: a directory in it is a symlink, and --parents follows none "
			       "below /./; name where it leads",
			       walk->written);
	return sources_refuse_missing(walk->spec, walk->written, buf_str(&clean), err);
}

static int sources_visit_path(struct sources *walk, const char *written, struct err *err)
{
	auto_buf struct buf pivot = BUF_INIT(PATH_TEXT_MAX);
	auto_buf struct buf clean = BUF_INIT(PATH_TEXT_MAX);

	walk->written = written;
	walk->many = walk->spec->count > 1;
	walk->has_include = false;
	if (walk->spec->parents ? sources_take_pivot(walk, written, &pivot, err) < 0
				: buf_add(&pivot, str_of(written), err) < 0)
		return -1;
	if (path_join(STR("/"), buf_str(&pivot), &clean, err) < 0)
		return -1;
	if (pattern_has_wildcard(buf_str(&clean)))
		return sources_visit_matches(walk, buf_str(&clean), err);
	if (sources_visit(walk, buf_str(&clean), false, err) < 0)
		return -1;
	return sources_check_taken(walk, err);
}

int sources_walk(const struct context_sources *spec, const struct source_visitor *visitor,
		 struct err *err)
{
	AUTO(sources)
	struct sources walk = {
		.spec = spec, .visitor = visitor, .resolved = BUF_INIT(PATH_TEXT_MAX)};

	if (spec->fd < 0)
		return err_set(err, ERR_INVALID, "COPY needs a context, and none was given");
	if (!spec->image && ignore_read(spec->fd, &walk.ignore, err) < 0)
		return -1;
	if (ignore_from_words(spec->excludes, spec->exclude_count, &walk.excludes, err) < 0)
		return -1;
	for (size_t i = 0; i < spec->count; i++) {
		if (sources_visit_path(&walk, spec->paths[i], err) < 0)
			return -1;
	}
	return 0;
}
