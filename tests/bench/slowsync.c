/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowsync.c - a disk that takes SLOWSYNC_US longer for every sync, as an
 * LD_PRELOAD: what is durable costs on other machines what it does not here.
 *
 * Delayed are fsync, fdatasync, msync, syncfs, sync_file_range, and writes to
 * a descriptor that was opened O_DSYNC or O_SYNC.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void delay(void)
{
	const char *text = secure_getenv("SLOWSYNC_US");
	long us = text ? strtoll(text, NULL, 10) : 0;
	struct timespec wait = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	(void)nanosleep(&wait, NULL);
}

static void delay_if_synchronous(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & (O_DSYNC | O_SYNC)))
		delay();
}

/* The next definition of the function that this one stands before. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

int fsync(int fd)
{
	delay();
	return NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
	delay();
	return NEXT(fdatasync)(fd);
}

int msync(void *at, size_t len, int flags)
{
	if (flags & MS_SYNC)
		delay();
	return NEXT(msync)(at, len, flags);
}

int syncfs(int fd)
{
	delay();
	return NEXT(syncfs)(fd);
}

int sync_file_range(int fd, off64_t offset, off64_t count, unsigned int flags)
{
	if (flags & SYNC_FILE_RANGE_WAIT_AFTER)
		delay();
	return NEXT(sync_file_range)(fd, offset, count, flags);
}

ssize_t write(int fd, const void *from, size_t len)
{
	delay_if_synchronous(fd);
	return NEXT(write)(fd, from, len);
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t offset)
{
	delay_if_synchronous(fd);
	return NEXT(pwrite)(fd, from, len, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t len, off64_t offset)
{
	delay_if_synchronous(fd);
	return NEXT(pwrite64)(fd, from, len, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	delay_if_synchronous(fd);
	return NEXT(writev)(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	delay_if_synchronous(fd);
	return NEXT(pwritev)(fd, parts, count, offset);
}
