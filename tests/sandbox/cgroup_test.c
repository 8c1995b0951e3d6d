/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_hasten() on a directory that looks like /sys/fs/cgroup. */
#include "sandbox/cgroup_priv.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

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
	struct tree tree;

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
	struct tree tree;

	(void)state;
	tree_open(&tree);
	assert_false(cgroup_hasten(tree.fd, STR("")));
	assert_false(cgroup_hasten(tree.fd, STR("\nnonsense\n8:pids\n1:no:/where\n")));
	tree_close(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_place_is_written_to_once),
		cmocka_unit_test(lines_that_name_no_place_are_passed_over),
	};

	return cmocka_run_group_tests_name("sandbox/cgroup", tests, NULL, NULL);
}
