/* SPDX-License-Identifier: Apache-2.0 */
/* sources_missing.c - a source that is not there: what is missing, and what is there instead. */
#include "bake/sources_priv.h"

#include "layers/base/fd.h"
#include "layers/base/names.h"
#include "layers/base/nearest.h"
#include "layers/base/path.h"

#include <fcntl.h>
#include <stdio.h>

#define SOURCES_WHERE_MAX (PATH_TEXT_MAX - 64) /* with words around it, a text */

/* Where a directory is, into space; empty where that is not known. */
static struct str sources_where(int fd, char space[static SOURCES_WHERE_MAX])
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, space, SOURCES_WHERE_MAX);
	return (struct str){space, n > 0 ? (size_t)n : 0};
}

/* A tar that was unpacked in the store: nobody knows it by that place. */
static bool sources_is_tar(const struct context_sources *spec, struct str where)
{
	char space[SOURCES_WHERE_MAX];

	return spec->store &&
	       str_starts(where, sources_where(store_dirfd(spec->store, STORE_TREES), space));
}

void sources_show_root(const struct context_sources *spec, char text[static PATH_TEXT_MAX])
{
	char space[SOURCES_WHERE_MAX];
	struct str where = {NULL, 0};

	text[0] = '\0';
	if (!spec->image)
		where = sources_where(spec->fd, space);
	if (where.len > 0)
		(void)snprintf(text, PATH_TEXT_MAX, " (the context is " STR_FMT ")",
			       STR_ARG(sources_is_tar(spec, where) ? STR("a tar") : where));
}

static const char *sources_name_root(const struct context_sources *spec)
{
	return spec->image ? spec->label : "the context";
}

static bool sources_leads_out(int rootfd, const char *path)
{
	struct err err = {0};
	auto_close int fd = fd_open_beneath(rootfd, path, O_PATH, 0, &err);

	return fd < 0 && err.kind == ERR_DENIED;
}

/* The name exists, but is no directory that leads further. */
static int sources_refuse_end(int dirfd, const char *path, const struct context_sources *spec,
			      const char *written, struct err *err)
{
	const char *name = path_base(str_of(path)).ptr;
	const char *why = "is no directory";
	char root[PATH_TEXT_MAX];
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		why = sources_leads_out(spec->fd, path) ? "is a link that leads elsewhere"
							: "is a link whose target is missing";
	sources_show_root(spec, root);
	return err_set(err, ERR_NOT_FOUND, "%s is not in %s: %s %s%s", written,
		       sources_name_root(spec), name, why, root);
}

/* Go as far as there are directories; *part is the first that is missing. */
static int sources_open_last(int rootfd, struct str clean, struct str *part)
{
	auto_close int dirfd = openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_buf struct buf below = BUF_INIT(PATH_TEXT_MAX);
	struct err ignored;

	while (dirfd >= 0 && path_next(&clean, part)) {
		int next = -1;

		if (buf_addf(&below, &ignored, "/" STR_FMT, STR_ARG(*part)) == 0)
			next = fd_open_in_root(rootfd, below.ptr, O_RDONLY | O_DIRECTORY, 0,
					       &ignored);
		if (next < 0)
			break;
		auto_close_release(&dirfd);
		dirfd = next;
	}
	return steal_fd(&dirfd);
}

/* The clean path as far as the part, with that name in its place: relative to the root. */
static void sources_replace(struct str clean, struct str part, const char *name,
			    char text[static PATH_TEXT_MAX])
{
	struct str front = {clean.ptr, (size_t)(part.ptr - clean.ptr)};

	front = str_skip(front, str_starts(front, STR("/")) ? 1 : 0);
	(void)snprintf(text, PATH_TEXT_MAX, STR_FMT "%s", STR_ARG(front), name);
}

/* Append what follows the part, if that exists, too. */
static void sources_complete(int rootfd, struct str rest, char text[static PATH_TEXT_MAX])
{
	auto_buf struct buf whole = BUF_INIT(PATH_TEXT_MAX - 1);
	auto_close int fd = -1;
	struct err ignored;

	if (buf_addf(&whole, &ignored, "%s" STR_FMT, text, STR_ARG(rest)) < 0)
		return;
	fd = fd_open_in_root(rootfd, whole.ptr, O_PATH, 0, &ignored);
	if (fd >= 0)
		memcpy(text, whole.ptr, whole.len + 1);
}

int sources_refuse_missing(const struct context_sources *spec, const char *written,
			   struct str clean, struct err *err)
{
	auto_names struct names names = {0};
	struct nearest nearest;
	struct err ignored;
	struct str part = STR("");
	auto_close int dirfd = sources_open_last(spec->fd, clean, &part);
	char root[PATH_TEXT_MAX];
	char offer[PATH_TEXT_MAX] = "";

	sources_show_root(spec, root);
	nearest_init(&nearest, part);
	if (dirfd >= 0 && names_read(dirfd, SOURCES_NAMES_MAX, &names, &ignored) == 0) {
		for (size_t i = 0; i < names.count; i++)
			nearest_offer(&nearest, str_of(names.at[i]));
	}
	if (part.len > 0)
		sources_replace(clean, part, nearest.name, offer);
	if (str_equal(str_of(nearest.name), part))
		return sources_refuse_end(dirfd, offer, spec, written, err);
	if (*nearest.name)
		sources_complete(spec->fd, str_of(part.ptr + part.len), offer);
	else
		offer[0] = '\0';
	return err_set(err, ERR_NOT_FOUND, "%s is not in %s%s%s%s%s", written,
		       sources_name_root(spec), *offer ? "; did you mean " : "", offer,
		       *offer ? "?" : "", root);
}
