/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/volume_priv.h"

#include "layers/base/proc.h"
#include "layers/base/room.h"
#include "sandbox/host.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLUME_BLOCK 4096
#define VOLUME_OWN_PART 24 /* one of so many bytes is for inodes and bitmaps, if it is large */
#define VOLUME_OWN_BYTES ((uint64_t)1024 * 1024)
#define VOLUME_LOOP_TRIES 100 /* others take devices as well */
#define VOLUME_MKFS_MS 60000
#define VOLUME_IMAGE_FD 3

static int volume_make_image(int homefd, uint64_t bytes, struct err *err)
{
	auto_close int fd = openat(homefd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	uint64_t size = bytes + bytes / VOLUME_OWN_PART + VOLUME_OWN_BYTES + VOLUME_ROOM_BYTES;

	if (fd < 0)
		return err_os(err, errno, "make a volume");
	if (ftruncate(fd, (off_t)(size - size % VOLUME_BLOCK)) < 0)
		return err_os(err, errno, "make a volume of %ju bytes", (uintmax_t)size);
	return steal_fd(&fd);
}

/* Inode tables are left as they are: zeros, in a new file. */
static int volume_format(int imagefd, struct err *err)
{
	static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	static const char *const argv[] = {"mkfs.ext4",
					   "-q",
					   "-F",
					   "-b",
					   "4096",
					   "-i",
					   "8192",
					   "-m",
					   "0",
					   "-O",
					   "^has_journal,^resize_inode",
					   "-E",
					   "nodiscard,lazy_itable_init=1",
					   "/proc/self/fd/3", /* VOLUME_IMAGE_FD */
					   NULL};
	char path[HOST_PROGRAM_MAX];
	auto_proc struct proc proc = PROC_INIT;
	struct proc_spec spec = {.path = path,
				 .argv = argv,
				 .envp = envp,
				 .fds = {-1, -1, -1, [VOLUME_IMAGE_FD] = imagefd},
				 .fd_count = VOLUME_IMAGE_FD + 1,
				 .die_with_parent = true};
	int status;

	if (!host_find_program("mkfs.ext4", path))
		return err_set(err, ERR_UNSUPPORTED,
			       "mkfs.ext4 is not installed: install e2fsprogs");
	if (proc_spawn(&spec, &proc, err) < 0 ||
	    proc_wait(&proc, VOLUME_MKFS_MS, NULL, &status, err) < 0)
		return err_ctx(err, "%s", path);
	if (status != 0)
		return err_set(err, ERR_UNSUPPORTED, "%s ended with exit code %d", path, status);
	return 0;
}

static int volume_no_loop(int os, const char *path, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "%s: %s", path, strerror(os));
}

/*
 * 1 attached, 0 somebody else was first, -1. The loop device is freed with its
 * last user, which will be the mount.
 */
static int volume_try_loop(const char *path, int imagefd, int *out_fd, struct err *err)
{
	const struct loop_config config = {
		.fd = (uint32_t)imagefd,
		.block_size = VOLUME_BLOCK,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
	};
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return volume_no_loop(errno, path, err);
	if (ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		return errno == EBUSY ? 0 : volume_no_loop(errno, path, err);
	*out_fd = steal_fd(&fd);
	return 1;
}

static int volume_attach(int imagefd, char path[static 32], struct err *err)
{
	static const char control[] = "/dev/loop-control";
	auto_close int controlfd = open(control, O_RDWR | O_CLOEXEC);

	if (controlfd < 0)
		return volume_no_loop(errno, control, err);
	for (int i = 0; i < VOLUME_LOOP_TRIES; i++) {
		int number = ioctl(controlfd, LOOP_CTL_GET_FREE);
		int fd = -1;
		int attached;

		if (number < 0)
			return volume_no_loop(errno, control, err);
		(void)snprintf(path, 32, "/dev/loop%d", number);
		attached = volume_try_loop(path, imagefd, &fd, err);
		if (attached != 0)
			return attached < 0 ? -1 : fd;
	}
	return volume_no_loop(EBUSY, control, err);
}

/* The open device alone keeps it attached until the mount does. */
static int volume_mount_image(int imagefd, int scratchfd, struct err *err)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOATIME;
	char device[32];
	char target[64];
	auto_close int loopfd = volume_attach(imagefd, device, err);

	if (loopfd < 0)
		return -1;
	(void)snprintf(target, sizeof(target), "/proc/self/fd/%d/volume", scratchfd);
	if (mount(device, target, "ext4", flags, "noinit_itable,discard") < 0)
		return errno == ENODEV ? err_set(err, ERR_UNSUPPORTED, "this kernel has no ext4")
				       : err_os(err, errno, "mount %s", device);
	return 0;
}

int volume_mount(int homefd, uint64_t bytes, int scratchfd, struct err *err)
{
	auto_close int imagefd = volume_make_image(homefd, bytes, err);
	int fd;

	if (imagefd < 0 || volume_format(imagefd, err) < 0)
		return -1;
	if (mkdirat(scratchfd, "volume", 0700) < 0)
		return err_os(err, errno, "make volume");
	if (volume_mount_image(imagefd, scratchfd, err) < 0)
		return -1;
	fd = openat(scratchfd, "volume", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_os(err, errno, "open volume") : fd;
}

bool volume_is_full(int rootfd)
{
	struct err why;

	return room_check(rootfd, VOLUME_ROOM_BYTES, &why) < 0 && why.kind == ERR_FULL;
}

int volume_sync(int rootfd, struct err *err)
{
	return syncfs(rootfd) < 0 ? err_os(err, errno, "write what the machine wrote") : 0;
}
