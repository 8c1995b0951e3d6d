/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_whiteouts.c - whiteouts take effect when the tar has ended, ancestors first. */
#include "layers/base/array.h"
#include "layers/base/path.h"
#include "layers/unpack_priv.h"

#include <fcntl.h>

static struct str group_dir(const struct whiteouts *whiteouts, const struct whiteout_group *group)
{
	return str_of(whiteouts->names.ptr + group->dir);
}

static int whiteouts_add_text(struct whiteouts *whiteouts, struct str text, struct err *err)
{
	if (whiteouts->names.max == 0)
		whiteouts->names = BUF_INIT(WHITEOUTS_BYTES_MAX);
	if (buf_add(&whiteouts->names, text, err) < 0 ||
	    buf_add(&whiteouts->names, (struct str){"", 1}, err) < 0)
		return err_ctx(err, "too many whiteouts");
	return 0;
}

static int whiteouts_add_group(struct whiteouts *whiteouts, struct str dir, struct err *err)
{
	size_t at = whiteouts->names.len;

	if (array_make_room(&whiteouts->groups, sizeof(*whiteouts->groups), whiteouts->count,
			    WHITEOUTS_DIRS_MAX, "places that have whiteouts", err) < 0 ||
	    whiteouts_add_text(whiteouts, dir, err) < 0)
		return -1;
	whiteouts->groups[whiteouts->count++] = (struct whiteout_group){
		.dir = at,
		.first = whiteouts->names.len,
	};
	return 0;
}

int unpack_whiteouts_add(struct whiteouts *whiteouts, struct str dir, const char *base,
			 struct err *err)
{
	size_t last = whiteouts->count;

	if (last == 0 || !str_equal(group_dir(whiteouts, &whiteouts->groups[last - 1]), dir)) {
		if (whiteouts_add_group(whiteouts, dir, err) < 0)
			return -1;
	}
	if (whiteouts_add_text(whiteouts, str_of(base), err) < 0)
		return -1;
	whiteouts->groups[whiteouts->count - 1].count++;
	return 0;
}

/* Ancestors first, which a slash sorted below every other byte gives. */
static int compare_groups(const void *a, const void *b, void *names)
{
	const unsigned char *x = (unsigned char *)names + ((const struct whiteout_group *)a)->dir;
	const unsigned char *y = (unsigned char *)names + ((const struct whiteout_group *)b)->dir;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x ? *x + 1 : 0) - (*y == '/' ? 1 : *y ? *y + 1 : 0);
}

/* The layer itself has something of that name. */
static int whiteout_beside(int dirfd, const char *name, mode_t mode, struct err *err)
{
	auto_close int fd = -1;

	if (!S_ISDIR(mode))
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_os(err, errno, "open a directory");
	return overlay_mark_opaque(fd, err);
}

static int whiteout_apply(struct dirs *dirs, const char *name, struct err *err)
{
	struct stat stat;

	if (!*name)
		return overlay_mark_opaque(dirs_fd(dirs), err);
	if (fstatat(dirs_fd(dirs), name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
		return whiteout_beside(dirs_fd(dirs), name, stat.st_mode, err);
	if (errno == ENAMETOOLONG)
		return err_set(err, ERR_CORRUPT, "a whiteout's name is too long");
	if (errno != ENOENT)
		return err_os(err, errno, "stat");
	if (dirs_count(dirs, err) < 0 || dirs_touch(dirs, err) < 0)
		return -1;
	if (overlay_make_whiteout(dirs_fd(dirs), name, err) < 0)
		return -1;
	return overlay_mark_origin(dirs_fd(dirs), err);
}

/*
 * Below a symlink, a file or a whiteout of this layer nothing of a lower layer
 * is to be seen, so there a whiteout is void.
 */
static int group_apply(const struct whiteouts *whiteouts, const struct whiteout_group *group,
		       struct dirs *dirs, struct err *err)
{
	struct str dir = group_dir(whiteouts, group);
	const char *name = whiteouts->names.ptr + group->first;
	char shown[PATH_SHOWN_MAX];
	int found = dirs_enter(dirs, dir, false, err);

	if (found == DIRS_MISSING && !dirs->followed)
		found = dirs_enter(dirs, dir, true, err);
	if (found < 0)
		return err_ctx(err, "whiteouts in %s", path_show(dir, shown));
	if (found != DIRS_THERE || dirs->followed)
		return 0;
	for (size_t i = 0; i < group->count; i++) {
		if (whiteout_apply(dirs, name, err) < 0)
			return -1;
		name += strlen(name) + 1;
	}
	return 0;
}

int unpack_whiteouts_apply(struct whiteouts *whiteouts, struct dirs *dirs, struct err *err)
{
	if (whiteouts->count == 0)
		return 0;
	qsort_r(whiteouts->groups, whiteouts->count, sizeof(*whiteouts->groups), compare_groups,
		whiteouts->names.ptr);
	for (size_t i = 0; i < whiteouts->count; i++) {
		if (group_apply(whiteouts, &whiteouts->groups[i], dirs, err) < 0)
			return -1;
	}
	return 0;
}

void unpack_whiteouts_done(struct whiteouts *whiteouts)
{
	free(whiteouts->groups);
	buf_done(&whiteouts->names);
	*whiteouts = (struct whiteouts){0};
}
