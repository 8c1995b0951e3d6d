/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - where a COPY's sources go in the root, and in what order. */
#include "bake/copy_priv.h"

#include "bake/mode_priv.h"
#include "bake/shortcut_priv.h"
#include "bake/sources_priv.h"

#include <fcntl.h>
#include <stdio.h>

static inline void auto_copy_release(struct copy *copy)
{
	context_hash_done(&copy->hash);
	while (copy->depth > 0) {
		copy->depth--;
		auto_close_release(&copy->levels[copy->depth].fd);
		free(copy->levels[copy->depth].path);
	}
}

/* Takes the descriptor. */
static void copy_push(struct copy *copy, int fd, const char *parent, const char *name)
{
	struct level *level = &copy->levels[copy->depth++];

	level->fd = fd;
	if (asprintf(&level->path, "%s%s%s", parent, *name ? "/" : "", name) < 0)
		abort();
}

static void copy_pop(struct copy *copy)
{
	struct level *level = copy_top(copy);

	auto_close_release(&level->fd);
	free(level->path);
	copy->depth--;
}

/* A symlink in a directory's place is followed inside the root, as in /lib -> usr/lib. */
static int copy_enter_link(struct copy *copy, const char *name, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(2 * PATH_TEXT_MAX);
	auto_place struct place place = PLACE_INIT;

	if (buf_addf(&path, err, "%s/%s", copy_top(copy)->path, name) < 0 ||
	    place_find(copy->rootfd, buf_str(&path), true, &copy->parents, &place, err) < 0)
		return -1;
	copy_push(copy, steal_fd(&place.fd), place.path.ptr ? place.path.ptr : "", "");
	return 0;
}

static int copy_enter_below(struct copy *copy, const struct source_entry *entry, struct err *err)
{
	struct level *parent = copy_top(copy);
	struct stat st;
	int fd;

	if (fstatat(parent->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode))
			return copy_enter_link(copy, entry->name, err);
		if (!S_ISDIR(st.st_mode)) {
			(void)err_set(err, ERR_REFUSED,
				      "is no directory, and the source has one there");
			return copy_wrong(copy, entry->name, err);
		}
	}
	if (place_enter(parent->fd, entry->name, &copy->parents, &fd, err) < 0)
		return copy_wrong(copy, entry->name, err);
	copy_push(copy, fd, parent->path, entry->name);
	return 0;
}

void copy_count(struct copy *copy, const struct source_entry *entry)
{
	struct err ignored;

	context_hash_entry(&copy->hash, entry);
	if (listing_add(&copy->draft, entry, &ignored) == 0)
		return;
	buf_clear(copy->draft.list);
	copy->draft.list = NULL;
}

static int copy_enter(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	copy_count(copy, entry);
	return *entry->path ? copy_enter_below(copy, entry, err) : 0;
}

static int copy_leave(void *ctx, const struct source_entry *entry, struct err *err)
{
	struct copy *copy = ctx;

	if (!*entry->path && !copy->whole)
		return 0;
	if (copy_dress(copy, copy_top(copy)->fd, entry, err) < 0)
		return err_ctx(err, "%s", copy_top(copy)->path);
	if (*entry->path)
		copy_pop(copy);
	else
		copy->time = entry->st.st_mtim;
	return 0;
}

static bool copy_wants_directory(const char *destination)
{
	struct str last = path_base(str_of(destination));

	return last.len == 0 || str_equal(last, STR(".")) || str_equal(last, STR(".."));
}

/* Find where a source goes: level 0, and the name in it for a file. */
static int copy_place(struct copy *copy, const struct source_spec *source, bool is_dir,
		      struct place *place, struct err *err)
{
	const struct copy_spec *spec = copy->spec;
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	bool wants = copy_wants_directory(spec->destination) || is_dir;

	if (path_join(str_of(spec->workdir), str_of(spec->destination), &path, err) < 0 ||
	    place_find(copy->rootfd, buf_str(&path), wants, &copy->parents, place, err) < 0)
		return -1;
	if (source->many && *place->name)
		return err_set(err, ERR_REFUSED,
			       "%s is no directory; end it with / to make one for several sources",
			       spec->destination);
	(void)snprintf(copy->name, sizeof(copy->name), "%s",
		       *place->name ? place->name : source->name);
	return 0;
}

/* A directory that existed keeps its time, though we work in it. */
static int copy_keep_time(const struct copy *copy, struct err *err)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, copy->time};

	if (futimens(copy->levels[0].fd, times) < 0)
		return err_os(err, errno, "set the time of %s", copy->levels[0].path);
	return 0;
}

static int copy_start(void *ctx, const struct source_spec *source, const struct source_entry *entry,
		      struct err *err)
{
	struct copy *copy = ctx;
	auto_place struct place place = PLACE_INIT;
	struct stat st;

	context_hash_source(&copy->hash, source);
	listing_source(&copy->draft, source);
	if (copy_place(copy, source, S_ISDIR(entry->st.st_mode), &place, err) < 0)
		return -1;
	if (fstat(place.fd, &st) < 0)
		return err_os(err, errno, "stat %s", copy->spec->destination);
	copy->time = st.st_mtim;
	copy->whole = source->whole;
	copy_push(copy, steal_fd(&place.fd), place.path.ptr ? place.path.ptr : "", "");
	return 0;
}

static int copy_finish(void *ctx, struct err *err)
{
	struct copy *copy = ctx;

	if (copy_keep_time(copy, err) < 0)
		return -1;
	copy_pop(copy);
	return 0;
}

/* Directories that no source has can be entered by those who may read them. */
static mode_t copy_parent_mode(const struct copy_spec *spec)
{
	mode_t mode = mode_copied(spec->sources.chmod, &(struct stat){.st_mode = S_IFDIR | 0755});

	return mode | (mode & 0444) >> 2;
}

static int copy_read_flags(struct copy *copy, struct err *err)
{
	const struct copy_spec *spec = copy->spec;
	uid_t uid = 0;
	gid_t gid = 0;

	if (spec->sources.chmod && mode_check(str_of(spec->sources.chmod), err) < 0)
		return -1;
	if (spec->chown && copy_find_owner(copy->rootfd, spec->chown, &uid, &gid, err) < 0)
		return err_ctx(err, "--chown");
	copy->parents = (struct place_new){
		.mode = copy_parent_mode(spec),
		.uid = spec->first_id + uid,
		.gid = spec->first_id + gid,
	};
	return 0;
}

static int copy_verify(struct copy *copy, struct err *err)
{
	struct digest copied;

	context_hash_final(&copy->hash, &copied);
	if (copy->spec->content && !digest_equal(&copied, copy->spec->content))
		return err_set(err, ERR_UNAVAILABLE,
			       "the context changed while it was copied; bake again");
	return 0;
}

static bool copy_look_ahead(void *ctx, int dirfd, const char *name, struct stat *st,
			    struct digest *out)
{
	const struct copy *copy = ctx;

	(void)dirfd;
	(void)name;
	return shortcut_find(copy->spec->shortcut, st, out);
}

int copy_into(int rootfd, const struct copy_spec *spec, struct err *err)
{
	AUTO(copy) struct copy copy = {.spec = spec, .rootfd = rootfd, .outfd = -1};
	const struct source_visitor visitor = {
		.start = copy_start,
		.finish = copy_finish,
		.enter = copy_enter,
		.leave = copy_leave,
		.ahead = copy_look_ahead,
		.file = copy_file,
		.link = copy_link,
		.node = copy_node,
		.left = copy_say_socket,
		.ctx = &copy,
		.cancel = spec->cancel,
	};

	listing_draft_init(&copy.draft, &spec->sources);
	context_hash_init(&copy.hash, &spec->sources);
	if (copy_read_flags(&copy, err) < 0 || sources_walk(&spec->sources, &visitor, err) < 0 ||
	    copy_verify(&copy, err) < 0)
		return spec->sources.whole ? -1 : err_ctx(err, "COPY");
	return 0;
}

int copy_make_workdir(int rootfd, const char *path, const char *user, uint32_t first_id,
		      struct err *err)
{
	auto_place struct place place = PLACE_INIT;
	struct place_new make = {.mode = 0755};
	uid_t uid = 0;
	gid_t gid = 0;

	if (*user && copy_find_owner(rootfd, user, &uid, &gid, err) < 0)
		return err_ctx(err, "WORKDIR");
	make.uid = first_id + uid;
	make.gid = first_id + gid;
	if (place_find(rootfd, str_of(path), true, &make, &place, err) < 0)
		return err_ctx(err, "WORKDIR");
	return 0;
}
