/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/userns_priv.h"

#include "layers/base/buf.h"
#include "layers/base/fd.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define USERNS_FILE_MAX ((size_t)1 << 20) /* of subuid */
#define USERNS_STACK ((size_t)4096)       /* of a process that calls nothing */

static int userns_write_map(pid_t pid, const char *file, uid_t first, struct err *err)
{
	char path[64];
	char map[64];
	auto_close int fd = -1;
	int n = snprintf(map, sizeof(map), "0 %u %u\n", first, USERNS_IDS);

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, (size_t)n) < 0)
		return err_os(err, errno, "map ids %u..%u", first, first + USERNS_IDS - 1);
	return 0;
}

static int userns_open_of(pid_t pid, uid_t first, struct err *err)
{
	char path[64];
	int fd;

	if (userns_write_map(pid, "uid_map", first, err) < 0 ||
	    userns_write_map(pid, "gid_map", first, err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_os(err, errno, "open a user namespace") : fd;
}

/*
 * It shares our memory, errno and what a sanitizer keeps of our thread too, and
 * so only waits for its end, or for ours.
 */
__attribute__((no_sanitize("thread", "address"))) static int userns_hold(void *ctx)
{
	const pid_t *parent = ctx;

	(void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0UL, 0UL, 0UL);
	while (syscall(SYS_getppid) == *parent)
		(void)syscall(SYS_ppoll, NULL, 0UL, NULL, NULL, 0UL);
	return 0;
}

/*
 * It shares our memory, since a copy would take longer than all the rest. All
 * signals but SIGKILL are blocked in it: a handler would run on its small
 * stack, for which the kernel's signal frame alone may be too large.
 */
static pid_t userns_start(char *stack, pid_t *parent)
{
	sigset_t all;
	sigset_t before;
	pid_t pid;
	int saved;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(userns_hold, stack + USERNS_STACK, CLONE_VM | CLONE_NEWUSER | SIGCHLD, parent);
	saved = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

int userns_open(uid_t first, struct err *err)
{
	char stack[USERNS_STACK] __attribute__((aligned(16)));
	pid_t parent = getpid();
	pid_t pid = userns_start(stack, &parent);
	int fd;

	if (pid < 0 && errno == ENOSPC)
		return err_set(err, ERR_UNSUPPORTED,
			       "no more user namespaces: raise user.max_user_namespaces");
	if (pid < 0)
		return err_os(err, errno, "make a user namespace");
	fd = userns_open_of(pid, first, err);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

/* Where a data directory's slots begin: its device and inode, well mixed. */
static unsigned userns_offset(int dirfd)
{
	struct stat st;
	uint64_t mixed;

	if (fstat(dirfd, &st) < 0)
		return 0;
	mixed = ((uint64_t)st.st_dev << 32) ^ (uint64_t)st.st_ino;
	mixed *= 0x9e3779b97f4a7c15U;
	return (unsigned)(mixed >> 32) % USERNS_SLOTS;
}

/* Clear the slots of which one line of a subuid file, NAME:START:COUNT, gives an id away. */
static void userns_clear_line(struct str line, bool is_free[static USERNS_SLOTS])
{
	struct str name;
	struct str field;
	uint64_t start;
	uint64_t count;

	if (!str_cut(&line, ':', &name) || !str_cut(&line, ':', &field) ||
	    !str_take_number(&field, &start) || !str_take_number(&line, &count) ||
	    start > UINT32_MAX || count > UINT32_MAX)
		return;
	for (unsigned slot = 0; slot < USERNS_SLOTS; slot++) {
		uint64_t first = USERNS_FIRST + (uint64_t)slot * USERNS_IDS;

		if (start < first + USERNS_IDS && start + count > first)
			is_free[slot] = false;
	}
}

/* A missing file gives no ids away. */
static void userns_clear_given(const char *file, bool is_free[static USERNS_SLOTS])
{
	auto_close int fd = open(file, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(USERNS_FILE_MAX);
	struct err ignored;
	struct str rest;
	struct str line;

	if (fd < 0 || (fd_read_all(fd, &text, &ignored) < 0 && ignored.kind != ERR_LIMIT))
		return;
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line))
		userns_clear_line(line, is_free);
}

static void userns_find_free(bool is_free[static USERNS_SLOTS])
{
	for (unsigned slot = 0; slot < USERNS_SLOTS; slot++)
		is_free[slot] = true;
	userns_clear_given("/etc/subuid", is_free);
	userns_clear_given("/etc/subgid", is_free);
}

unsigned userns_count_free(void)
{
	bool is_free[USERNS_SLOTS];
	unsigned count = 0;

	userns_find_free(is_free);
	for (unsigned slot = 0; slot < USERNS_SLOTS; slot++)
		count += is_free[slot];
	return count;
}

void userns_slots(int dirfd, uid_t first[static USERNS_SLOTS])
{
	bool is_free[USERNS_SLOTS];
	unsigned offset = userns_offset(dirfd);

	userns_find_free(is_free);
	for (unsigned slot = 0; slot < USERNS_SLOTS; slot++) {
		unsigned at = (offset + slot) % USERNS_SLOTS;

		first[slot] = is_free[at] ? USERNS_FIRST + at * USERNS_IDS : 0;
	}
}
