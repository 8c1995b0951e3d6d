/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/child_priv.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int child_keep_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}}; /* all that we keep are in the first word */

	data[0].effective = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER |
			    1U << CAP_FSETID | 1U << CAP_MKNOD | 1U << CAP_SETFCAP;
	data[0].permitted = data[0].effective;
	return (int)syscall(SYS_capset, &header, data);
}

static int child_become(uint32_t id, struct err *err)
{
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
		return err_os(err, errno, "become the machine's root");
	(void)setfsgid(id);
	(void)setfsuid(id);
	if (child_keep_capabilities() < 0)
		return err_os(err, errno, "become the machine's root");
	(void)umask(0);
	return 0;
}

/* Wait for the answer. What has been answered is not cancelled any more. */
static int child_await(int fd, const struct cancel *cancel, struct err *err)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
				{.fd = cancel_fd(cancel), .events = POLLIN}};
	int n;

	do {
		n = poll(fds, 2, -1);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_os(err, errno, "wait for the machine's writer");
	return fds[0].revents ? 0 : cancel_check(cancel, err);
}

static int child_reap(pid_t pid)
{
	pid_t ended;

	do {
		ended = waitpid(pid, NULL, 0);
	} while (ended < 0 && errno == EINTR);
	return ended < 0 ? -1 : 0;
}

/* The answer comes over the pipe: an error that nobody set means success. */
static int child_collect(pid_t pid, int fd, const struct cancel *cancel, struct err *err)
{
	struct err answer;
	ssize_t n;

	if (child_await(fd, cancel, err) < 0) {
		(void)kill(pid, SIGKILL);
		(void)child_reap(pid);
		return -1;
	}
	do {
		n = read(fd, &answer, sizeof(answer));
	} while (n < 0 && errno == EINTR);
	if (child_reap(pid) < 0 || n != (ssize_t)sizeof(answer))
		return err_set(err, ERR_OS, "the machine's writer ended unexpectedly");
	if (answer.kind == ERR_NONE)
		return 0;
	*err = answer;
	return -1;
}

int child_call(child_call_fn *fn, void *ctx, const struct cancel *cancel, struct err *err)
{
	auto_close int readfd = -1;
	auto_close int writefd = -1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_os(err, errno, "make a pipe");
	readfd = fds[0];
	writefd = fds[1];
	pid = fork();
	if (pid < 0)
		return err_os(err, errno, "fork");
	if (pid == 0) {
		struct err answer = {0};

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fn(ctx, &answer) == 0)
			answer.kind = ERR_NONE;
		_exit(write(writefd, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
	}
	auto_close_release(&writefd);
	writefd = -1;
	return child_collect(pid, readfd, cancel, err);
}

struct child_root {
	uint32_t id;
	int rootfd;
	child_fn *fn;
	void *ctx;
};

static int child_call_as_root(void *ctx, struct err *err)
{
	const struct child_root *root = ctx;

	if (child_become(root->id, err) < 0)
		return -1;
	return root->fn(root->ctx, root->rootfd, err);
}

int child_run(uint32_t id, int rootfd, child_fn *fn, void *ctx, const struct cancel *cancel,
	      struct err *err)
{
	struct child_root root = {id, rootfd, fn, ctx};

	return child_call(child_call_as_root, &root, cancel, err);
}
