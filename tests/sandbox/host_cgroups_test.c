/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cgroups_test.c - hosts unlike this one, as far as cgroups go.
 *
 * Each is a view of /sys/fs/cgroup that is mounted over the host's own, in a
 * namespace of the test's, of hierarchies that the host has: a new one would be
 * in /proc/PID/cgroup of every process, and confuse runtimes.
 */
#include "layers/base/fd.h"
#include "sandbox/cgroup_priv.h"
#include "sandbox/host.h"
#include "tests/check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ROOT "/sys/fs/cgroup"
#define OWN_MAX ((size_t)65536)

/* What is mounted over the host's own view, last to go first. */
struct view {
	const char *mounts[4];
	size_t count;
};

static void view_add(struct view *view, const char *type, const char *path, const char *options)
{
	assert_int_equal(mount(type, path, type, 0, options), 0);
	view->mounts[view->count++] = path;
}

static void view_add_in(struct view *view, const char *type, const char *path, const char *options)
{
	assert_int_equal(mkdir(path, 0755), 0);
	view_add(view, type, path, options);
}

/* The host's own controllers are in version 1, so that it can be shown. */
static void need_version_1(void)
{
	if (host_cgroups() != HOST_CGROUPS_V1 && host_cgroups() != HOST_CGROUPS_HYBRID)
		skip();
}

static int view_begin(void **state)
{
	static struct view view;

	view = (struct view){0};
	*state = &view;
	return 0;
}

static int view_end(void **state)
{
	struct view *view = *state;
	int result = 0;

	while (view->count > 0)
		result |= umount2(view->mounts[--view->count], MNT_DETACH);
	return result;
}

/* A process that never ends, in NAME/below of a hierarchy. */
static pid_t start_below(const char *hierarchy, const char *name)
{
	char path[128];
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	(void)snprintf(path, sizeof(path), "%s/%s", hierarchy, name);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/%s/below", hierarchy, name);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/%s/below/cgroup.procs", hierarchy, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0 && dprintf(fd, "%d", (int)pid) > 0);
	assert_int_equal(close(fd), 0);
	return pid;
}

/* What a machine needs of its cgroup: that it ends, with all in it, and that it hastens. */
static void check_cgroups_work(const char *hierarchy)
{
	auto_buf struct buf own = BUF_INIT(OWN_MAX);
	auto_close int ownfd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	struct err err = {0};
	auto_close int rootfd = cgroup_open_root(&err);
	char name[64];
	int status = 0;
	pid_t pid;

	check_ok(rootfd, &err);
	check_ok(fd_read_all(ownfd, &own, &err), &err);
	assert_true(cgroup_hasten(rootfd, buf_str(&own)));
	(void)snprintf(name, sizeof(name), "hearth-test-%d", (int)getpid());
	pid = start_below(hierarchy, name);
	check_ok(cgroup_end(rootfd, name, &err), &err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)snprintf(name, sizeof(name), "%s/hearth-test-%d", hierarchy, (int)getpid());
	assert_int_equal(faccessat(AT_FDCWD, name, F_OK, 0), -1);
}

static void version_2_alone(void **state)
{
	view_add(*state, "tmpfs", ROOT, NULL); /* one cannot be mounted on itself */
	view_add(*state, "cgroup2", ROOT, NULL);
	assert_int_equal(host_cgroups(), HOST_CGROUPS_V2);
	check_cgroups_work(ROOT);
}

static void version_1_alone(void **state)
{
	need_version_1();
	view_add(*state, "tmpfs", ROOT, NULL);
	view_add_in(*state, "cgroup", ROOT "/pids", "pids");
	assert_int_equal(host_cgroups(), HOST_CGROUPS_V1);
	check_cgroups_work(ROOT "/pids");
}

static void version_1_beside_an_empty_version_2(void **state)
{
	need_version_1();
	view_add(*state, "tmpfs", ROOT, NULL);
	view_add_in(*state, "cgroup", ROOT "/pids", "pids");
	view_add_in(*state, "cgroup2", ROOT "/unified", NULL);
	assert_int_equal(host_cgroups(), HOST_CGROUPS_HYBRID);
	check_cgroups_work(ROOT "/pids");
	check_cgroups_work(ROOT "/unified");
}

static void check_verdict(enum host_verdict verdict, const char *words)
{
	struct host_check checks[HOST_CHECKS_MAX];
	size_t count = host_examine("/tmp", checks);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(checks[i].name, "cgroups") != 0)
			continue;
		assert_int_equal(checks[i].verdict, verdict);
		assert_non_null(strstr(checks[i].advice, words));
		return;
	}
	fail_msg("nothing is said about cgroups");
}

static void no_cgroups_at_all(void **state)
{
	view_add(*state, "tmpfs", ROOT, NULL);
	assert_int_equal(host_cgroups(), HOST_CGROUPS_NONE);
	check_verdict(HOST_FAIL, "mount cgroups");
}

/* Each machine has a limit of processes, so nothing runs without that controller. */
static void version_1_without_processes(void **state)
{
	need_version_1();
	view_add(*state, "tmpfs", ROOT, NULL);
	view_add_in(*state, "cgroup", ROOT "/memory", "memory");
	assert_int_equal(mkdir(ROOT "/cpu", 0755), 0);
	assert_int_equal(host_cgroups(), HOST_CGROUPS_V1);
	check_verdict(HOST_FAIL, "the pids controller is missing");
}

static void version_1_without_memory(void **state)
{
	need_version_1();
	view_add(*state, "tmpfs", ROOT, NULL);
	view_add_in(*state, "cgroup", ROOT "/pids", "pids");
	assert_int_equal(mkdir(ROOT "/cpu", 0755), 0);
	check_verdict(HOST_WARN, "the memory controller is missing");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, view_begin, view_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(version_2_alone),
		TEST(version_1_alone),
		TEST(version_1_beside_an_empty_version_2),
		TEST(no_cgroups_at_all),
		TEST(version_1_without_processes),
		TEST(version_1_without_memory),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125;
	return cmocka_run_group_tests_name("sandbox/host_cgroups", tests, NULL, NULL);
}
