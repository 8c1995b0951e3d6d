/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - a context and a root to copy into, in a directory that goes away.
 *
 * Paths start with "context/" or "root/". Setting up must work, so it fails
 * the test itself.
 */
#pragma once

#include "layers/base/buf.h"
#include "tests/check.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct scene {
	char path[32];
	int fd;
	int contextfd;
	int rootfd;
};

static inline void scene_dir(const struct scene *scene, const char *path, mode_t mode)
{
	assert_int_equal(mkdirat(scene->fd, path, 0700), 0);
	assert_int_equal(fchmodat(scene->fd, path, mode, 0), 0);
}

static inline void scene_file(const struct scene *scene, const char *path, const char *content,
			      mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	auto_close int fd = openat(scene->fd, path, flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline void scene_link(const struct scene *scene, const char *path, const char *target)
{
	assert_int_equal(symlinkat(target, scene->fd, path), 0);
}

static inline struct stat scene_stat(const struct scene *scene, const char *path)
{
	struct stat st;

	if (fstatat(scene->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return st;
}

static inline bool scene_has(const struct scene *scene, const char *path)
{
	struct stat st;

	return fstatat(scene->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void scene_check_file(const struct scene *scene, const char *path,
				    const char *content, mode_t mode)
{
	auto_close int fd = openat(scene->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char got[256] = "";

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, content);
	assert_int_equal(scene_stat(scene, path).st_mode, S_IFREG | mode);
}

static inline void scene_check_link(const struct scene *scene, const char *path, const char *target)
{
	char got[256] = "";

	assert_true(readlinkat(scene->fd, path, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, target);
}

static inline void scene_open(struct scene *scene)
{
	*scene = (struct scene){.path = "/tmp/hearth-scene-XXXXXX"};
	assert_non_null(mkdtemp(scene->path));
	scene->fd = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scene->fd >= 0);
	scene_dir(scene, "context", 0755);
	scene_dir(scene, "root", 0755);
	scene->contextfd = openat(scene->fd, "context", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scene->rootfd = openat(scene->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scene->contextfd >= 0 && scene->rootfd >= 0);
}

static inline int scene_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void scene_close(struct scene *scene)
{
	(void)close(scene->contextfd);
	(void)close(scene->rootfd);
	(void)close(scene->fd);
	(void)nftw(scene->path, scene_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* For cmocka: one scene a test, as its state. */
static inline int scene_setup(void **state)
{
	static struct scene scene;

	scene_open(&scene);
	*state = &scene;
	return 0;
}

static inline int scene_teardown(void **state)
{
	scene_close(*state);
	return 0;
}
