/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/runtime_priv.h"

#include "layers/base/fd.h"
#include "layers/base/json.h"
#include "layers/base/path.h"
#include "sandbox/cgroup_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define RUNTIME_LOG_MAX ((size_t)64 << 10)
#define RUNTIME_END_MS 5000

/*
 * Standard input of the runtime, at its end at once. A pipe of its own: a
 * runtime makes its standard descriptors the machine's, whatever they are.
 */
static int runtime_open_input(struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_os(err, errno, "make a pipe");
	(void)close(fds[1]);
	return fds[0];
}

static int runtime_spawn(const struct runtime *runtime, int reportfd, struct proc *out,
			 struct err *err)
{
	/* crun runs from a copy of itself, which would stay in /tmp when it is killed. */
	char copies[PATH_TEXT_MAX];
	const char *const envp[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
				    "/sbin:/bin",
				    copies, NULL};
	char state[PATH_TEXT_MAX];
	char log[PATH_TEXT_MAX];
	const char *const argv[] = {runtime->path,    "--root", state, "--log",    log,
				    "--log-format",   "json",   "run", "--bundle", runtime->dir,
				    "--preserve-fds", "1", /* REPORT_FD */
				    runtime->id,      NULL};
	auto_close int input = runtime_open_input(err);
	struct proc_spec spec = {
		.path = runtime->path,
		.argv = argv,
		.envp = envp,
		.fds = {input, runtime->out_fd, runtime->out_fd, [REPORT_FD] = reportfd},
		.fd_count = REPORT_FD + 1,
		.new_session = true,
		.die_with_parent = true};

	if (input < 0)
		return -1;
	(void)snprintf(copies, sizeof(copies), "_LIBCONTAINER_STATEDIR=%s", runtime->dir);
	(void)snprintf(state, sizeof(state), "%s/state", runtime->dir);
	(void)snprintf(log, sizeof(log), "%s/log", runtime->dir);
	return proc_spawn(&spec, out, err);
}

/* Ask nicely, wait, and kill all that is left. The reason in *err is kept. */
static void runtime_end(const struct runtime *runtime, struct proc *proc, int cgroupfd)
{
	struct err ignored;
	int status;

	(void)kill(proc->pid, SIGTERM); /* runtimes pass it on to the container's pid 1 */
	if (proc_wait(proc, runtime->grace_ms, NULL, &status, &ignored) == 0)
		return;
	if (cgroup_end(cgroupfd, runtime->id, &ignored) < 0 ||
	    proc_wait(proc, RUNTIME_END_MS, NULL, &status, &ignored) < 0)
		proc_done(proc);
}

static int runtime_wait(const struct runtime *runtime, struct proc *proc, int cgroupfd,
			int *out_status, struct err *err)
{
	int timeout = runtime->timeout_ms <= 0        ? -1
		      : runtime->timeout_ms > INT_MAX ? INT_MAX
						      : (int)runtime->timeout_ms;

	if (proc_wait(proc, timeout, runtime->cancel, out_status, err) == 0)
		return 0;
	runtime_end(runtime, proc, cgroupfd);
	if (err->kind == ERR_TIMEOUT)
		return err_set(err, ERR_TIMEOUT, "not ended after %.1f s (timeoutMs)",
			       timeout / 1e3);
	return -1;
}

/* The last error in the runtime's log; false when it complained about nothing. */
static bool runtime_complaint(struct str log, struct err *err)
{
	struct str line;
	bool found = false;

	while (str_cut(&log, '\n', &line)) {
		AUTO(json) json_t *entry = NULL;
		struct err ignored;
		struct str level;
		struct str message;

		if (json_parse(line, RUNTIME_LOG_MAX, &entry, &ignored) < 0 ||
		    json_get_string(entry, "", "level", &level, &ignored) != 1 ||
		    json_get_string(entry, "", "msg", &message, &ignored) != 1 ||
		    !str_equal(level, STR("error")))
			continue;
		(void)err_set(err, ERR_UNSUPPORTED, STR_FMT, STR_ARG(message));
		found = true;
	}
	return found;
}

/* Why no command was started: the runtime's own words, where it has any. */
static int runtime_not_started(const struct runtime *runtime, int status, struct err *err)
{
	auto_close int fd = openat(runtime->dirfd, "log", O_RDONLY | O_CLOEXEC);
	auto_buf struct buf log = BUF_INIT(RUNTIME_LOG_MAX);

	if (fd >= 0 && fd_read_all(fd, &log, err) < 0)
		return err_ctx(err, "log of %s", runtime->path);
	if (runtime_complaint(buf_str(&log), err))
		return err_ctx(err, "%s", runtime->path);
	if (status > 128)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s was killed by signal %d before it had started the command",
			       runtime->path, status - 128);
	return err_set(err, ERR_UNSUPPORTED, "%s ended with exit code %d and started no command",
		       runtime->path, status);
}

static int runtime_broken(int os, struct err *err)
{
	if (os == EAGAIN)
		return err_set(err, ERR_LIMIT,
			       "no process is left for the command: raise resources.pids");
	return err_os(err, os, "start the command");
}

/* What the machine reported, once nobody is left who could report more. */
static int runtime_judge(const struct runtime *runtime, int reportfd, int status,
			 struct report *out, struct err *err)
{
	struct report last = {0};
	struct report next;

	while (read(reportfd, &next, sizeof(next)) == (ssize_t)sizeof(next))
		last = next;
	switch (last.event) {
	case REPORT_ENDED:
		*out = last;
		return 0;
	case REPORT_BROKEN:
		return runtime_broken(last.value, err);
	case REPORT_STARTED:
		return err_set(err, ERR_UNAVAILABLE,
			       "the machine was killed before its command had ended");
	default:
		return runtime_not_started(runtime, status, err);
	}
}

/* Spawn it, with the writing end of a pipe whose reading end never blocks. */
static int runtime_start(const struct runtime *runtime, struct proc *out, int *out_reportfd,
			 struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_os(err, errno, "make a pipe");
	auto_close int theirs = fds[1];

	*out_reportfd = fds[0];
	return runtime_spawn(runtime, theirs, out, err);
}

int runtime_run(const struct runtime *runtime, struct report *out, struct err *err)
{
	auto_close int cgroupfd = cgroup_open_root(err);
	auto_proc struct proc proc = PROC_INIT;
	auto_close int reportfd = -1;
	struct err end;
	int status = 0;
	int result;

	if (cgroupfd < 0 || runtime_start(runtime, &proc, &reportfd, err) < 0)
		return -1;
	result = runtime_wait(runtime, &proc, cgroupfd, &status, err);
	if (cgroup_end(cgroupfd, runtime->id, &end) < 0 && result == 0) {
		*err = end;
		return -1;
	}
	if (result < 0)
		return -1;
	return runtime_judge(runtime, reportfd, status, out, err);
}
