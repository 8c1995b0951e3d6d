/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_hasten() on a directory that looks like /sys/fs/cgroup, cgroup_end() on the real one. */
#include "sandbox/cgroup_priv.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const made[] = {"pids", "pids/a", "systemd", "systemd/b", "c"};

struct tree {
	char path[64];
	int fd;
};

static void tree_open(struct tree *tree)
{
	(void)snprintf(tree->path, sizeof(tree->path), "/tmp/hearth-cgroup-test-%d", (int)getpid());
	assert_int_equal(mkdir(tree->path, 0700), 0);
	tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tree->fd >= 0);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		char file[64];
		int fd;

		assert_int_equal(mkdirat(tree->fd, made[i], 0700), 0);
		(void)snprintf(file, sizeof(file), "%s/cgroup.procs", made[i]);
		fd = openat(tree->fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(close(fd), 0);
	}
}

static void tree_close(struct tree *tree)
{
	for (size_t i = sizeof(made) / sizeof(made[0]); i-- > 0;) {
		char file[64];

		(void)snprintf(file, sizeof(file), "%s/cgroup.procs", made[i]);
		assert_int_equal(unlinkat(tree->fd, file, 0), 0);
		assert_int_equal(unlinkat(tree->fd, made[i], AT_REMOVEDIR), 0);
	}
	assert_int_equal(close(tree->fd), 0);
	assert_int_equal(rmdir(tree->path), 0);
}

static void check_written(const struct tree *tree, const char *dir, const char *text)
{
	char file[64];
	auto_buf struct buf found = BUF_INIT(16);
	struct err err = {0};
	int fd;

	(void)snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	fd = openat(tree->fd, file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	check_ok(fd_read_all(fd, &found, &err), &err);
	assert_true(str_equal(buf_str(&found), str_of(text)));
	assert_int_equal(close(fd), 0);
}

static void our_own_place_is_written_to_once(void **state)
{
	struct tree tree = {.fd = -1};

	(void)state;
	tree_open(&tree);
	assert_true(cgroup_hasten(tree.fd, STR("9:gone:/\n8:pids:/a\n0::/c\n")));
	check_written(&tree, "pids/a", "0");
	check_written(&tree, "pids", "");
	check_written(&tree, "c", "");
	assert_true(cgroup_hasten(tree.fd, STR("9:name=systemd:/b\n")));
	check_written(&tree, "systemd/b", "0");
	assert_true(cgroup_hasten(tree.fd, STR("0::/c\n")));
	check_written(&tree, "c", "0");
	tree_close(&tree);
}

static void lines_that_name_no_place_are_passed_over(void **state)
{
	struct tree tree = {.fd = -1};

	(void)state;
	tree_open(&tree);
	assert_false(cgroup_hasten(tree.fd, STR("")));
	assert_false(cgroup_hasten(tree.fd, STR("\nnonsense\n8:pids\n1:no:/where\n")));
	tree_close(&tree);
}

static void write_controllers(const struct tree *tree, const char *words)
{
	int fd = openat(tree->fd, "cgroup.controllers", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, words, strlen(words)), strlen(words));
	assert_int_equal(close(fd), 0);
}

static void controllers_are_known_by_their_whole_name(void **state)
{
	static const struct {
		const char *words;
		bool cpu;
		bool pids;
	} cases[] = {
		{"cpuset cpu io memory hugetlb pids rdma misc\n", true, true},
		{"cpu\n", true, false},
		{"cpuset memory pids", false, true},
		{"cpuacct mypids pids2\n", false, false},
		{"\n", false, false},
		{"", false, false},
	};
	struct tree tree = {.fd = -1};

	(void)state;
	tree_open(&tree);
	assert_true(cgroup_has_controller(tree.fd, "pids")); /* a directory of version 1 */
	assert_false(cgroup_has_controller(tree.fd, "cpu"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_controllers(&tree, cases[i].words);
		if (cgroup_has_controller(tree.fd, "cpu") != cases[i].cpu ||
		    cgroup_has_controller(tree.fd, "pids") != cases[i].pids)
			fail_msg("%s", cases[i].words);
	}
	assert_int_equal(unlinkat(tree.fd, "cgroup.controllers", 0), 0);
	tree_close(&tree);
}

/* A cgroup with children and grandchildren in one hierarchy, if the host lets us. */
static bool make_nested(int hierarchyfd, const char *name)
{
	static const char *const below[] = {"a", "a/b", "a/c", "d"};
	char path[64];

	if (mkdirat(hierarchyfd, name, 0755) < 0)
		return false;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", name, below[i]);
		assert_int_equal(mkdirat(hierarchyfd, path, 0755), 0);
	}
	return true;
}

/* A process that never ends, moved into the cgroup. */
static pid_t put_process(int hierarchyfd, const char *cgroup)
{
	char text[64];
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	(void)snprintf(text, sizeof(text), "%s/cgroup.procs", cgroup);
	fd = openat(hierarchyfd, text, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	return pid;
}

static void try_end(int rootfd, const char *hierarchy)
{
	auto_close int fd = openat(rootfd, hierarchy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[32];
	char lowest[40];
	struct err err = {0};
	int status = 0;
	pid_t pid;

	(void)snprintf(name, sizeof(name), "hearth-test-%d", (int)getpid());
	(void)snprintf(lowest, sizeof(lowest), "%s/a/b", name);
	if (fd < 0 || faccessat(fd, "cgroup.procs", F_OK, 0) < 0 || !make_nested(fd, name))
		return;
	pid = put_process(fd, lowest);
	check_ok(cgroup_end(rootfd, name, &err), &err);
	assert_int_equal(faccessat(fd, name, F_OK, 0), -1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void cgroups_below_go_with_the_one_above(void **state)
{
	static const char *const hierarchies[] = {".", "unified", "pids", "freezer"};
	auto_close int rootfd = -1;
	struct err err = {0};

	(void)state;
	if (geteuid() != 0)
		skip();
	rootfd = cgroup_open_root(&err);
	check_ok(rootfd, &err);
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++)
		try_end(rootfd, hierarchies[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_place_is_written_to_once),
		cmocka_unit_test(lines_that_name_no_place_are_passed_over),
		cmocka_unit_test(controllers_are_known_by_their_whole_name),
		cmocka_unit_test(cgroups_below_go_with_the_one_above),
	};

	return cmocka_run_group_tests_name("sandbox/cgroup", tests, NULL, NULL);
}
