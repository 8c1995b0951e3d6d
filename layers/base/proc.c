/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/proc.h"

#include "layers/base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What a shell's status is for a program that could not be started. */
#define PROC_NOT_EXECUTABLE 126
#define PROC_NOT_FOUND 127

/*
 * The child, between vfork-like clone and exec: async-signal-safe calls only.
 * Descriptors are first moved above the range in which they must end, so that
 * none is overwritten before it was placed.
 */
static int proc_place_fds(const struct proc_spec *spec)
{
	int high[PROC_FDS_MAX];

	for (int i = 0; i < spec->fd_count; i++) {
		int fd = spec->fds[i];

		if (fd < 0)
			fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -1;
		high[i] = fcntl(fd, F_DUPFD_CLOEXEC, PROC_FDS_MAX);
		if (high[i] < 0)
			return -1;
	}
	for (int i = 0; i < spec->fd_count; i++) {
		if (dup2(high[i], i) < 0)
			return -1;
	}
	return (int)syscall(SYS_close_range, (unsigned)spec->fd_count, ~0U, 0U);
}

static void proc_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* An error that is not the program's is left in *why. */
static void proc_child(const struct proc_spec *spec, pid_t parent, volatile int *why)
{
	char *const *argv;
	char *const *envp;

	if (spec->new_session)
		(void)setsid();
	if (spec->die_with_parent) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(PROC_NOT_FOUND);
	}
	proc_reset_signals();
	if (proc_place_fds(spec) < 0) {
		*why = errno;
		_exit(PROC_NOT_FOUND);
	}
	memcpy(&argv, &spec->argv, sizeof(argv));
	memcpy(&envp, spec->envp ? (const void *)&spec->envp : (const void *)&environ,
	       sizeof(envp));
	(void)execve(spec->path, argv, envp);
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		*why = errno;
	_exit(errno == ENOENT ? PROC_NOT_FOUND : PROC_NOT_EXECUTABLE);
}

int proc_spawn(const struct proc_spec *spec, struct proc *out, struct err *err)
{
	pid_t parent = getpid();
	sigset_t all;
	sigset_t before;
	pid_t pid;
	volatile int why = 0;
	int pidfd;
	int saved;

	assert(spec->fd_count >= 3 && spec->fd_count <= PROC_FDS_MAX);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The child shares our memory until execve, and writes nothing but why. */
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0)
		proc_child(spec, parent, &why); /* NOLINT(clang-analyzer-unix.Vfork) */
	saved = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_os(err, saved, "start %s", spec->path);
	if (why != 0) {
		(void)waitpid(pid, NULL, 0);
		return err_os(err, why, "start %s", spec->path);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
	if (pidfd < 0) {
		saved = errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_os(err, saved, "watch %s", spec->path);
	}
	*out = (struct proc){.pid = pid, .pidfd = pidfd};
	return 0;
}

void proc_forget(struct proc *proc)
{
	auto_close_release(&proc->pidfd);
	*proc = PROC_INIT;
}

static int proc_reap(struct proc *proc, int *out_status, struct err *err)
{
	int status;
	pid_t pid;

	do {
		pid = waitpid(proc->pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return err_os(err, errno, "wait for process %d", (int)proc->pid);
	proc_forget(proc);
	*out_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

int proc_wait(struct proc *proc, int timeout_ms, const struct cancel *cancel, int *out_status,
	      struct err *err)
{
	int64_t end = timeout_ms < 0 ? 0 : clock_monotonic_ms() + timeout_ms;

	for (;;) {
		struct pollfd fds[] = {{.fd = proc->pidfd, .events = POLLIN},
				       {.fd = cancel_fd(cancel), .events = POLLIN}};
		int64_t left = timeout_ms < 0 ? -1 : end - clock_monotonic_ms();
		int n = poll(fds, 2, timeout_ms < 0 ? -1 : left < 0 ? 0 : (int)left);

		if (n < 0 && errno != EINTR)
			return err_os(err, errno, "wait for process %d", (int)proc->pid);
		if (n > 0 && fds[0].revents)
			return proc_reap(proc, out_status, err);
		if (cancel_check(cancel, err) < 0)
			return -1;
		if (n == 0)
			return err_set(err, ERR_TIMEOUT, "not ended after %d ms", timeout_ms);
	}
}

int proc_check_started(int status, const char *path, struct err *err)
{
	if (status != PROC_NOT_EXECUTABLE && status != PROC_NOT_FOUND)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		       "cannot start %s: is hearth installed whole, and is no limit "
		       "(ulimit) too low for it?",
		       path);
}

void proc_done(struct proc *proc)
{
	struct err ignored;
	int saved = errno;
	int status;

	if (proc->pid > 0) {
		(void)kill(proc->pid, SIGKILL);
		(void)proc_reap(proc, &status, &ignored);
	}
	errno = saved;
}
