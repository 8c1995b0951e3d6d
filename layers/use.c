/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/use.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LOG_MODULE "layers"
#include "layers/base/log.h"

#define USE_DIR "used"
#define USE_PATH_MAX (sizeof(USE_DIR "/") + DIGEST_HEX_MAX)

static const char *use_path(const struct digest *digest, char path[static USE_PATH_MAX])
{
	char hex[DIGEST_HEX_MAX];

	(void)snprintf(path, USE_PATH_MAX, USE_DIR "/%s", digest_hex(digest, hex));
	return path;
}

static int use_make(int rootfd, const char *path)
{
	auto_close int fd = -1;

	if (mkdirat(rootfd, USE_DIR, 0700) < 0 && errno != EEXIST)
		return -1;
	fd = openat(rootfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : 0;
}

void use_note(struct store *store, const struct digest *digest)
{
	int rootfd = store_dirfd(store, STORE_ROOT);
	char path[USE_PATH_MAX];

	use_path(digest, path);
	if (utimensat(rootfd, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (errno != ENOENT || use_make(rootfd, path) < 0)
		log_debug("use not noted errno=%d", errno);
}

int use_find(struct store *store, const struct digest *digest, int64_t *out_ms, struct err *err)
{
	char path[USE_PATH_MAX];
	struct stat st;

	if (fstatat(store_dirfd(store, STORE_ROOT), use_path(digest, path), &st,
		    AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0;
		return err_os(err, errno, "look at %s/%s", store_path(store), path);
	}
	*out_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return 1;
}

void use_forget(struct store *store, const struct digest *digest)
{
	char path[USE_PATH_MAX];

	if (unlinkat(store_dirfd(store, STORE_ROOT), use_path(digest, path), 0) < 0 &&
	    errno != ENOENT)
		log_debug("use not forgotten errno=%d", errno);
}
