/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/place_priv.h"

#include "layers/base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

#define PLACE_OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PLACE_REST_MAX ((size_t)64 * 1024) /* links put in front of what is left */

/* A walk in progress. */
struct search {
	int rootfd;
	const struct place_new *make;
	struct place at;
	struct buf rest; /* what is still to go */
	int links;
};

static inline void auto_search_release(struct search *search)
{
	place_done(&search->at);
	buf_done(&search->rest);
}

void place_done(struct place *place)
{
	auto_close_release(&place->fd);
	buf_done(&place->path);
	*place = PLACE_INIT;
}

/* Go to the root, or to what at.path says. */
static int place_reopen(struct search *search, struct err *err)
{
	const char *path = search->at.path.len ? search->at.path.ptr : "/";
	int fd = fd_open_in_root(search->rootfd, path, PLACE_OPEN, 0, err);

	if (fd < 0)
		return -1;
	auto_close_release(&search->at.fd);
	search->at.fd = fd;
	return 0;
}

static int place_go_up(struct search *search, struct err *err)
{
	struct buf *path = &search->at.path;
	const char *slash = path->len ? memrchr(path->ptr, '/', path->len) : NULL;

	if (!slash)
		return 0; /* above the root is the root */
	path->len = (size_t)(slash - path->ptr);
	path->ptr[path->len] = '\0';
	return place_reopen(search, err);
}

/* A link's target goes in front of what is left. */
static int place_follow(struct search *search, const char *name, struct err *err)
{
	auto_buf struct buf rest = BUF_INIT(PLACE_REST_MAX);
	char target[PATH_TEXT_MAX];
	ssize_t n = readlinkat(search->at.fd, name, target, sizeof(target));

	if (n < 0)
		return err_os(err, errno, "read the link %s", name);
	if (++search->links > PLACE_LINKS_MAX)
		return err_set(err, ERR_REFUSED, "%s: too many symlinks on the way", name);
	if (buf_add(&rest, (struct str){target, (size_t)n}, err) < 0 ||
	    buf_add(&rest, STR("/"), err) < 0 || buf_add(&rest, buf_str(&search->rest), err) < 0)
		return -1;
	buf_done(&search->rest);
	search->rest = rest;
	rest = BUF_INIT(PLACE_REST_MAX);
	if (n == 0 || target[0] != '/')
		return 0;
	buf_clear(&search->at.path);
	return place_reopen(search, err);
}

/* The owner is set before the mode, which it would take bits from. */
static int place_dress(int fd, const struct place_new *make, struct err *err)
{
	if (fchown(fd, make->uid, make->gid) < 0)
		return err_os(err, errno, "set the owner");
	if (fchmod(fd, make->mode) < 0)
		return err_os(err, errno, "set the mode");
	return 0;
}

int place_enter(int dirfd, const char *name, const struct place_new *make, int *out,
		struct err *err)
{
	bool made = mkdirat(dirfd, name, 0700) == 0;
	auto_close int fd = -1;

	if (!made && errno != EEXIST)
		return err_os(err, errno, "make the directory %s", name);
	fd = openat(dirfd, name, PLACE_OPEN);
	if (fd < 0)
		return err_os(err, errno, "open the directory %s", name);
	if (made && place_dress(fd, make, err) < 0)
		return err_ctx(err, "%s", name);
	*out = steal_fd(&fd);
	return 0;
}

static int place_go_down(struct search *search, const char *name, struct err *err)
{
	int fd = -1;

	if (place_enter(search->at.fd, name, search->make, &fd, err) < 0)
		return -1;
	auto_close_release(&search->at.fd);
	search->at.fd = fd;
	return buf_addf(&search->at.path, err, "/%s", name);
}

/* Take the next part of what is left. False when there is none. */
static bool place_next(struct search *search, char name[static NAME_MAX + 1], bool *out_fits)
{
	struct str rest = buf_str(&search->rest);
	struct str part;
	size_t left;

	if (!path_next(&rest, &part))
		return false;
	*out_fits = part.len <= NAME_MAX;
	if (*out_fits) {
		memcpy(name, part.ptr, part.len);
		name[part.len] = '\0';
	}
	left = rest.len;
	memmove(search->rest.ptr, rest.ptr, left);
	search->rest.ptr[left] = '\0';
	search->rest.len = left;
	return true;
}

static bool place_is_last(const struct search *search)
{
	struct str rest = buf_str(&search->rest);
	struct str part;

	return !path_next(&rest, &part);
}

/* One part of the path. 1 when it is the end and no directory. */
static int place_step(struct search *search, const char *name, bool directory, struct err *err)
{
	struct stat st;
	bool there = fstatat(search->at.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	bool last = place_is_last(search);

	if (!there && errno != ENOENT)
		return err_os(err, errno, "stat %s", name);
	if (there && S_ISLNK(st.st_mode))
		return place_follow(search, name, err);
	if (last && !directory && (!there || !S_ISDIR(st.st_mode))) {
		memcpy(search->at.name, name, strlen(name) + 1);
		return 1;
	}
	if (there && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_REFUSED, "%s/%s is no directory",
			       search->at.path.len ? search->at.path.ptr : "", name);
	return place_go_down(search, name, err);
}

static int place_walk(struct search *search, bool directory, struct err *err)
{
	char name[NAME_MAX + 1];
	bool fits;

	while (place_next(search, name, &fits)) {
		int result;

		if (!fits)
			return err_set(err, ERR_REFUSED, "a name in it is longer than %d bytes",
				       NAME_MAX);
		result = strcmp(name, "..") == 0 ? place_go_up(search, err)
						 : place_step(search, name, directory, err);
		if (result != 0)
			return result < 0 ? -1 : 0;
	}
	return 0;
}

int place_find(int rootfd, struct str path, bool directory, const struct place_new *make,
	       struct place *out, struct err *err)
{
	AUTO(search)
	struct search search = {
		.rootfd = rootfd, .make = make, .at = PLACE_INIT, .rest = BUF_INIT(PLACE_REST_MAX)};

	if (buf_add(&search.rest, path, err) < 0 || place_reopen(&search, err) < 0 ||
	    place_walk(&search, directory, err) < 0)
		return err_ctx(err, STR_FMT, STR_ARG(path));
	place_done(out);
	*out = search.at;
	search.at = PLACE_INIT;
	return 0;
}
