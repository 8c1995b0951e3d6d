/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.c - hearth-agent, the program that is pid 1 of a machine.
 *
 *	hearth-agent init -- PROGRAM [ARGUMENT...]
 *
 * runs one command: finds it by the step's own PATH, passes signals on to
 * everything in the machine, reaps what others leave behind, and ends as the
 * command ends (128 and the signal's number for a signal), which it reports, with
 * the limits that were run into: the cgroup is gone before others could look.
 * When it ends, the kernel kills whatever else still runs in the pid namespace.
 *
 * It is static and asks for no library of the image, since an image may hold
 * nothing but one program.
 */
#include "sandbox/agent/report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT_USAGE 64
#define AGENT_BROKEN 70
#define AGENT_EVENTS_MAX 512

/* An event that the machine's cgroup counts, in one file or the other by its version. */
struct counter {
	const char *paths[2];
	const char *word; /* before the count */
	enum report_limit limit;
	int fd;
};

static bool counter_has_counted(const struct counter *counter)
{
	char text[AGENT_EVENTS_MAX + 1];
	ssize_t len = pread(counter->fd, text, AGENT_EVENTS_MAX, 0);
	const char *found;

	if (len <= 0)
		return false;
	text[len] = '\0';
	found = strstr(text, counter->word);
	return found && found[strlen(counter->word)] != '0';
}

/* The first reading has the kernel make its buffer, for which no memory may be left later. */
static void counter_open(struct counter *counter)
{
	for (size_t i = 0; i < 2 && counter->fd < 0; i++)
		counter->fd = open(counter->paths[i], O_RDONLY | O_CLOEXEC);
	(void)counter_has_counted(counter);
}

static void agent_report(enum report_event event, int value, int limits)
{
	const struct report report = {(uint8_t)event, (uint8_t)value, (uint8_t)limits};

	while (write(REPORT_FD, &report, sizeof(report)) < 0 && errno == EINTR)
		continue;
}

/*
 * Give the command the machine's /dev/null as input: the runtime's is a pipe,
 * which tools such as rg would read.
 */
static void agent_open_input(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)dup2(fd, STDIN_FILENO);
}

static void agent_exec(char **argv, const sigset_t *mask)
{
	int os;

	(void)setsid();
	agent_open_input();
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execvp(argv[0], argv);
	os = errno;
	(void)dprintf(STDERR_FILENO, "exec: %s: %s\n", argv[0], strerror(os));
	_exit(os == ENOENT || os == ENOTDIR ? 127 : 126);
}

/* Reap all that have ended. The command's status, or -1 while it runs. */
static int agent_reap(pid_t command)
{
	int result = -1;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == command)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return result;
}

static int agent_serve(pid_t command, const sigset_t *waited)
{
	for (;;) {
		int sig = sigwaitinfo(waited, NULL);
		int status;

		if (sig < 0)
			continue;
		if (sig != SIGCHLD) {
			(void)kill(-1, sig);
			continue;
		}
		status = agent_reap(command);
		if (status >= 0)
			return status;
	}
}

static int agent_init(char **argv)
{
	static const int passed[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
	struct counter counters[] = {
		{{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"},
		 "oom_kill ",
		 REPORT_LIMIT_MEMORY,
		 -1},
		{{"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"},
		 "max ",
		 REPORT_LIMIT_PIDS,
		 -1},
	};
	sigset_t waited;
	sigset_t before;
	pid_t command;
	int limits = 0;
	int status;

	/* Nobody in the machine may trace, stop or read us: its end would wait for ours. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* The runtime is our parent: a machine whose owner was killed ends at once. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&waited);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&waited, passed[i]);
	(void)sigprocmask(SIG_BLOCK, &waited, &before);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		counter_open(&counters[i]);
	agent_report(REPORT_STARTED, 0, 0);
	command = fork();
	if (command == 0)
		agent_exec(argv, &before);
	if (command < 0) {
		agent_report(REPORT_BROKEN, errno, 0);
		return AGENT_BROKEN;
	}
	status = agent_serve(command, &waited);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		limits |= counter_has_counted(&counters[i]) ? (int)counters[i].limit : 0;
	agent_report(REPORT_ENDED, status, limits);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 4 || strcmp(argv[1], "init") != 0 || strcmp(argv[2], "--") != 0) {
		(void)dprintf(STDERR_FILENO, "usage: hearth-agent init -- PROGRAM [ARGUMENT...]\n");
		return AGENT_USAGE;
	}
	if (fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)dprintf(STDERR_FILENO, "hearth-agent: nobody reads its reports\n");
		return AGENT_USAGE;
	}
	return agent_init(argv + 3);
}
