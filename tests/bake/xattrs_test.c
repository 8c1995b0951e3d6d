/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/xattrs_priv.h"
#include "tests/bake/scene.h"

#include <fcntl.h>
#include <sys/xattr.h>

struct losses {
	size_t count;
	char name[64];
	int os;
};

static void lose(void *ctx, const struct xattr *xattr, int os)
{
	struct losses *losses = ctx;

	losses->count++;
	(void)snprintf(losses->name, sizeof(losses->name), "%s", xattr->name);
	losses->os = os;
}

static struct xattr make(const char *name, const char *value)
{
	struct xattr xattr = {.name = strdup(name), .value = BUF_INIT((size_t)64)};
	struct err err = {0};

	check_ok(buf_add(&xattr.value, str_of(value), &err), &err);
	return xattr;
}

static int setup(void **state)
{
	static struct scene scene;

	scene_open(&scene);
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	scene_close(*state);
	return 0;
}

static void what_a_file_system_does_not_take_is_told_and_left_out(void **state)
{
	struct scene *scene = *state;
	auto_xattrs struct xattrs xattrs = {.at = calloc(XATTRS_MAX, sizeof(struct xattr))};
	auto_close int fd = openat(scene->contextfd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct losses losses = {0};
	struct err err = {0};
	char got[64];

	assert_non_null(xattrs.at);
	if (fsetxattr(fd, "user.probe", "x", 1, 0) < 0)
		skip(); /* no attributes in /tmp */
	xattrs.at[xattrs.count++] = make("nobodys.a", "1");
	xattrs.at[xattrs.count++] = make("user.b", "kept");
	check_ok(xattrs_write(scene->contextfd, fd, &xattrs, 0, lose, &losses, &err), &err);
	assert_int_equal(losses.count, 1);
	assert_string_equal(losses.name, "nobodys.a");
	assert_int_equal(losses.os, EOPNOTSUPP);
	assert_int_equal(fgetxattr(fd, "user.b", got, sizeof(got)), 4);
}

static void what_is_read_is_written_again(void **state)
{
	struct scene *scene = *state;
	auto_xattrs struct xattrs xattrs = {0};
	auto_close int from = openat(scene->contextfd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	auto_close int to = openat(scene->contextfd, "g", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct losses losses = {0};
	struct err err = {0};
	char got[64];

	if (fsetxattr(from, "user.b", "2", 1, 0) < 0 || fsetxattr(from, "user.a", "1", 1, 0) < 0)
		skip();
	check_ok(xattrs_read(from, &xattrs, &err), &err);
	assert_int_equal(xattrs.count, 2);
	assert_string_equal(xattrs.at[0].name, "user.a"); /* sorted */
	check_ok(xattrs_write(scene->contextfd, to, &xattrs, 0, lose, &losses, &err), &err);
	assert_int_equal(losses.count, 0);
	assert_int_equal(fgetxattr(to, "user.a", got, sizeof(got)), 1);
	assert_int_equal(got[0], '1');
	assert_int_equal(fgetxattr(to, "user.b", got, sizeof(got)), 1);
	assert_int_equal(got[0], '2');
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(what_a_file_system_does_not_take_is_told_and_left_out),
		SCENE_TEST(what_is_read_is_written_again),
	};

	return cmocka_run_group_tests_name("bake/xattrs", tests, NULL, NULL);
}
