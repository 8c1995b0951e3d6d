/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/rendezvous.h"

#include "layers/base/fd.h"
#include "layers/base/hold.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RENDEZVOUS_DIR "step"
#define RENDEZVOUS_BACKLOG 64
#define RENDEZVOUS_NAME_MAX (DIGEST_HEX_MAX + sizeof(".lock"))

/* A socket's address is short, so the directory is named by its descriptor, in /proc. */
static void rendezvous_address(int dirfd, const struct digest *key, struct sockaddr_un *out)
{
	char hex[DIGEST_HEX_MAX];

	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s", dirfd,
		       digest_hex(key, hex));
}

static const char *rendezvous_lock_name(const struct digest *key,
					char name[static RENDEZVOUS_NAME_MAX])
{
	char hex[DIGEST_HEX_MAX];

	(void)snprintf(name, RENDEZVOUS_NAME_MAX, "%s.lock", digest_hex(key, hex));
	return name;
}

int rendezvous_join(struct store *store, const struct digest *key, int *out_fd, struct err *err)
{
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_RUN), RENDEZVOUS_DIR, err);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	if (dirfd < 0)
		return -1;
	if (fd < 0)
		return err_os(err, errno, "make a socket");
	rendezvous_address(dirfd, key, &address);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		*out_fd = steal_fd(&fd);
		return 1;
	}
	if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN)
		return 0;
	return err_os(err, errno, "join a running step");
}

/* Made where it is missing: its last owner removes it. As hold_try(). */
static int rendezvous_lock(int dirfd, const char *name, int *out, struct err *err)
{
	auto_close int made = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (made < 0)
		return err_os(err, errno, "open a step's lock");
	return hold_try(dirfd, name, out, err);
}

static int rendezvous_listen(int dirfd, const struct digest *key, struct err *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char hex[DIGEST_HEX_MAX];
	struct sockaddr_un address;

	if (fd < 0)
		return err_os(err, errno, "make a socket");
	/* We have the lock, so an existing socket belongs to a worker that died. */
	if (unlinkat(dirfd, digest_hex(key, hex), 0) < 0 && errno != ENOENT)
		return err_os(err, errno, "remove a dead worker's socket");
	rendezvous_address(dirfd, key, &address);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, RENDEZVOUS_BACKLOG) < 0)
		return err_os(err, errno, "listen for a step's askers");
	return steal_fd(&fd);
}

int rendezvous_claim(struct store *store, const struct digest *key, int *out_lockfd,
		     int *out_listener, struct err *err)
{
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_RUN), RENDEZVOUS_DIR, err);
	auto_close int lockfd = -1;
	char name[RENDEZVOUS_NAME_MAX];
	int listener;
	int locked;

	if (dirfd < 0)
		return -1;
	locked = rendezvous_lock(dirfd, rendezvous_lock_name(key, name), &lockfd, err);
	if (locked != 1)
		return locked;
	listener = rendezvous_listen(dirfd, key, err);
	if (listener < 0)
		return -1;
	*out_lockfd = steal_fd(&lockfd);
	*out_listener = listener;
	return 1;
}

static void rendezvous_remove(struct store *store, const char *name)
{
	struct err ignored;
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_RUN), RENDEZVOUS_DIR, &ignored);

	if (dirfd >= 0 && unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return; /* the next claim removes it */
}

void rendezvous_close(struct store *store, const struct digest *key)
{
	char hex[DIGEST_HEX_MAX];

	rendezvous_remove(store, digest_hex(key, hex));
}

void rendezvous_leave(struct store *store, const struct digest *key)
{
	char name[RENDEZVOUS_NAME_MAX];

	rendezvous_remove(store, rendezvous_lock_name(key, name));
}

/* Whoever holds the lock owns both names; the socket goes first, as with the living. */
static void rendezvous_sweep_one(int dirfd, const char *lock_name)
{
	char hex[RENDEZVOUS_NAME_MAX];
	struct err ignored;
	auto_close int lockfd = -1;

	if (hold_try(dirfd, lock_name, &lockfd, &ignored) != 1)
		return;
	(void)snprintf(hex, sizeof(hex), "%.*s", (int)strcspn(lock_name, "."), lock_name);
	if (unlinkat(dirfd, hex, 0) == 0 || errno == ENOENT)
		(void)unlinkat(dirfd, lock_name, 0);
}

void rendezvous_sweep(struct store *store)
{
	struct err ignored;
	auto_close int dirfd = fd_make_dir(store_dirfd(store, STORE_RUN), RENDEZVOUS_DIR, &ignored);
	auto_dir DIR *list = NULL;
	const struct dirent *entry;

	if (dirfd < 0 || fd_open_dir(dirfd, ".", &list, &ignored) < 0)
		return;
	while ((entry = readdir(list))) {
		const char *dot = strchr(entry->d_name, '.');

		if (dot && strcmp(dot, ".lock") == 0)
			rendezvous_sweep_one(dirfd, entry->d_name);
	}
}
