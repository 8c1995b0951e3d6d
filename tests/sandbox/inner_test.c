/* SPDX-License-Identifier: Apache-2.0 */
/* inner_test.c - what is mounted inside a machine, and that no trace of it stays. */
#include "tests/sandbox/rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int try_open(struct rig *rig, const struct digest *trees, size_t tree_count,
		    const struct machine_mount *mounts, size_t count, struct machine **out,
		    struct err *err)
{
	const struct machine_spec spec = {.store = rig->store,
					  .diff_ids = trees,
					  .diff_id_count = tree_count,
					  .network = NETWORK_NONE,
					  .mounts = mounts,
					  .mount_count = count,
					  .agent_path = AGENT_PATH};

	return machine_open(&spec, out, err);
}

static struct machine *open_with(struct rig *rig, const struct machine_mount *mounts, size_t count)
{
	struct machine *machine = NULL;
	struct err err = {0};

	check_ok(try_open(rig, &rig->base, 1, mounts, count, &machine, &err), &err);
	return machine;
}

static struct machine_mount tmpfs_on(const char *target)
{
	return (struct machine_mount){.kind = MACHINE_MOUNT_TMPFS, .target = target};
}

/* A directory of the store's disk, as a cache is one. */
static int new_directory(struct rig *rig)
{
	char name[32];

	return rig_new_tree(rig, name);
}

static struct machine_mount tree_on(const char *target, int fd)
{
	return (struct machine_mount){.kind = MACHINE_MOUNT_TREE, .target = target, .fd = fd};
}

static void set_secret(struct secret *secret, const char *text)
{
	struct err err = {0};

	check_ok(secret_put(secret, str_of(text), &err), &err);
}

static void a_tmpfs_has_its_size_and_is_anybodys(void **state)
{
	struct machine_mount mounts[] = {tmpfs_on("/scratch")};
	AUTO(machine) struct machine *machine = NULL;

	mounts[0].size = 1 << 20;
	machine = open_with(*state, mounts, 1);
	rig_expect(machine,
		   "ls -dn /scratch | (read m l u g r; echo $m $u $g);"
		   "dd if=/dev/zero of=/scratch/x bs=1024 count=512 2>/dev/null && echo fits;"
		   "dd if=/dev/zero of=/scratch/y bs=1024 count=2048 2>/dev/null || echo full",
		   0, "drwxrwxrwt 0 0\nfits\nfull\n");
	rig_assert_upper_empty(machine);
}

/* The runtime mounts it, since what it lies on is the runtime's. */
static void a_tmpfs_takes_the_place_of_the_shared_memory(void **state)
{
	struct machine_mount mounts[] = {tmpfs_on("/dev/shm"), tmpfs_on("/dev/shm/deep/er")};
	AUTO(machine) struct machine *machine = NULL;

	mounts[0].size = 1 << 20;
	mounts[1].read_only = true;
	machine = open_with(*state, mounts, COUNT(mounts));
	rig_expect(machine,
		   "ls -dn /dev/shm | (read m l u g r; echo $m $u $g);"
		   "dd if=/dev/zero of=/dev/shm/y bs=1024 count=2048 2>/dev/null || echo full;"
		   "touch /dev/shm/deep/er/x 2>/dev/null || echo kept",
		   0, "drwxrwxrwt 0 0\nfull\nkept\n");
	rig_assert_upper_empty(machine);
}

static void a_directory_is_shared_with_natural_owners(void **state)
{
	struct rig *rig = *state;
	auto_close int fd = new_directory(rig);
	struct machine_mount mounts[] = {tree_on("/root/.cache/pip", fd)};
	AUTO(machine) struct machine *one = open_with(rig, mounts, 1);
	AUTO(machine) struct machine *two = open_with(rig, mounts, 1);
	struct stat st;

	rig_expect(one, "echo kept >/root/.cache/pip/wheel; chown 1000:50 /root/.cache/pip/wheel",
		   0, "");
	rig_expect(two,
		   "cat /root/.cache/pip/wheel; ls -n /root/.cache/pip/wheel | "
		   "(read m l u g r; echo $u $g)",
		   0, "kept\n1000 50\n");
	assert_int_equal(fstatat(fd, "wheel", &st, 0), 0);
	assert_int_equal(st.st_uid, 1000);
	rig_assert_upper_empty(one);
	rig_assert_upper_empty(two);
}

static void what_is_read_only_cannot_be_written_to(void **state)
{
	struct rig *rig = *state;
	auto_close int fd = new_directory(rig);
	struct machine_mount mounts[] = {tree_on("/a", fd), tmpfs_on("/b")};
	AUTO(machine) struct machine *machine = NULL;

	mounts[0].read_only = true;
	mounts[1].read_only = true;
	machine = open_with(rig, mounts, 2);
	rig_expect(machine,
		   "touch /a/x 2>/dev/null || echo a; touch /b/x 2>/dev/null || echo b; "
		   "mount -o remount,rw /a 2>/dev/null || echo still",
		   0, "a\nb\nstill\n");
	assert_int_equal(rig_count_entries(fd), 0);
}

static void a_secret_is_a_file_that_goes_with_the_machine(void **state)
{
	struct rig *rig = *state;
	auto_secret struct secret token = {0};
	auto_secret struct secret other = {0};
	struct machine_mount mounts[] = {
		{.kind = MACHINE_MOUNT_SECRET,
		 .target = "/etc/passwd",
		 .secret = &other,
		 .mode = 0444},
		{.kind = MACHINE_MOUNT_SECRET,
		 .target = "/run/secrets/token",
		 .secret = &token,
		 .mode = 0400,
		 .uid = 1000,
		 .gid = 50},
	};
	AUTO(machine) struct machine *machine = NULL;

	set_secret(&token, "s3cret");
	set_secret(&other, "root:x:0:0::/:/bin/sh\n");
	machine = open_with(rig, mounts, 2);
	rig_expect(machine,
		   "cat /run/secrets/token; echo; ls -n /run/secrets/token | "
		   "(read m l u g r; echo $m $u $g); cat /etc/passwd;"
		   "(echo x >/run/secrets/token) 2>/dev/null || echo kept;"
		   "rm -r /run/secrets 2>/dev/null || echo busy",
		   0, "s3cret\n-r-------- 1000 50\nroot:x:0:0::/:/bin/sh\nkept\nbusy\n");
	rig_assert_upper_empty(machine);
}

/* The parent that the image has stays as the image has it, also where it is written to. */
static void a_command_that_writes_beside_a_target_leaves_only_that(void **state)
{
	struct rig *rig = *state;
	char name[32];
	int fd = rig_new_tree(rig, name);
	struct digest trees[2] = {rig->base};
	auto_secret struct secret token = {0};
	struct machine_mount mounts[] = {{.kind = MACHINE_MOUNT_SECRET,
					  .target = "/srv/app/conf/token",
					  .secret = &token,
					  .mode = 0400}};
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};
	struct stat st;
	int up;

	assert_int_equal(mkdirat(fd, "srv", 0755), 0);
	assert_int_equal(mkdirat(fd, "srv/app", 0750), 0);
	assert_int_equal(fchownat(fd, "srv/app", 7, 8, 0), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	set_secret(&token, "x");
	check_ok(try_open(rig, trees, 2, mounts, 1, &machine, &err), &err);
	rig_expect(machine, "cat /srv/app/conf/token; touch /srv/app/mine", 0, "x");
	up = rig_upper_of(machine);
	assert_int_equal(fstatat(up, "srv/app", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0750);
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(st.st_gid, 8);
	assert_int_equal(faccessat(up, "srv/app/mine", F_OK, 0), 0);
	assert_int_equal(faccessat(up, "srv/app/conf", F_OK, 0), -1);
	assert_int_equal(rig_count_entries(up), 1);
	assert_int_equal(close(up), 0);
}

/* An image's own whiteouts and opaque directories do not hide a target. */
static void a_target_that_the_image_has_deleted_has_a_place_again(void **state)
{
	struct rig *rig = *state;
	char name[32];
	int fd = rig_new_tree(rig, name);
	struct digest trees[2] = {rig->base};
	struct machine_mount mounts[] = {tmpfs_on("/bin/id"), tmpfs_on("/etc/new/deep")};
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};
	int etcfd;

	assert_int_equal(mkdirat(fd, "bin", 0755), 0);
	assert_int_equal(mknodat(fd, "bin/id", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(mkdirat(fd, "etc", 0711), 0);
	etcfd = openat(fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fsetxattr(etcfd, "trusted.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(close(etcfd), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	check_ok(try_open(rig, trees, 2, mounts, COUNT(mounts), &machine, &err), &err);
	rig_expect(machine,
		   "touch /bin/id/x /etc/new/deep/x && echo there; ls -dn /etc | (read m r; "
		   "echo $m); ls /etc/passwd 2>/dev/null || echo hidden",
		   0, "there\ndrwx--x--x\nhidden\n");
}

static void links_of_the_image_are_followed_inside_it(void **state)
{
	struct rig *rig = *state;
	char name[32];
	int fd = rig_new_tree(rig, name);
	struct digest trees[2] = {rig->base};
	struct machine_mount mounts[] = {tmpfs_on("/var/run/a"), tmpfs_on("/var/up/b"),
					 tmpfs_on("/var/way/c")};
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};

	assert_int_equal(mkdirat(fd, "var", 0755), 0);
	assert_int_equal(symlinkat("/run", fd, "var/run"), 0); /* dangling */
	assert_int_equal(symlinkat("../../../etc", fd, "var/up"), 0);
	assert_int_equal(symlinkat("run/../x", fd, "var/way"), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	check_ok(try_open(rig, trees, 2, mounts, COUNT(mounts), &machine, &err), &err);
	rig_expect(machine, "touch /run/a/x /etc/b/x /x/c/x; ls /var/run/a /var/up/b", 0,
		   "/var/run/a:\nx\n\n/var/up/b:\nx\n");
	rig_assert_upper_empty(machine);
}

static void mounts_lie_in_one_another(void **state)
{
	struct rig *rig = *state;
	auto_close int fd = new_directory(rig);
	auto_secret struct secret token = {0};
	struct machine_mount mounts[] = {tree_on("/c", fd),
					 tmpfs_on("/c/d/e"),
					 {.kind = MACHINE_MOUNT_SECRET,
					  .target = "/c/d/e/f/token",
					  .secret = &token,
					  .mode = 0400}};
	AUTO(machine) struct machine *machine = NULL;
	AUTO(machine) struct machine *again = NULL;
	struct stat st;
	struct done *done;

	set_secret(&token, "inside");
	machine = open_with(rig, mounts, COUNT(mounts));
	rig_expect(machine, "cat /c/d/e/f/token; touch /c/d/beside", 0, "inside");
	assert_int_equal(fstatat(fd, "d/beside", &st, 0), 0);
	rig_assert_upper_empty(machine);
	/* What a step left in the cache does not lead the next one's mount out of it. */
	machine_close(steal_ptr(&machine));
	assert_int_equal(unlinkat(fd, "d/beside", 0), 0);
	assert_int_equal(unlinkat(fd, "d/e", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(fd, "d", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/etc", fd, "d"), 0);
	again = open_with(rig, mounts, COUNT(mounts));
	done = rig_shell(again, "true");
	check_err(done->result, &done->err, ERR_REFUSED);
	assert_non_null(strstr(done->err.text, "/c/d/e"));
	test_free(done);
}

static void no_place_is_made_in_what_is_read_only(void **state)
{
	struct rig *rig = *state;
	auto_close int fd = new_directory(rig);
	struct machine_mount mounts[] = {tree_on("/c", fd), tmpfs_on("/c/d")};
	AUTO(machine) struct machine *machine = NULL;
	struct done *done;

	mounts[0].read_only = true;
	machine = open_with(rig, mounts, COUNT(mounts));
	done = rig_shell(machine, "true");
	check_err(done->result, &done->err, ERR_REFUSED);
	assert_non_null(strstr(done->err.text, "mount on /c/d: /c/d is not in what is mounted"));
	test_free(done);
}

static void what_has_no_place_is_refused(void **state)
{
	struct rig *rig = *state;
	auto_secret struct secret token = {0};
	static const struct {
		enum machine_mount_kind kind;
		const char *target;
		const char *says;
	} cases[] = {
		{MACHINE_MOUNT_TMPFS, "/proc/x", "nothing is mounted in /proc, /sys and /dev"},
		{MACHINE_MOUNT_TMPFS, "/dev", "nothing is mounted in /proc, /sys and /dev"},
		{MACHINE_MOUNT_TMPFS, "/dev/shmoo", "but a tmpfs on /dev/shm"},
		{MACHINE_MOUNT_SECRET, "/dev/shm/s", "but a tmpfs on /dev/shm"},
		{MACHINE_MOUNT_TMPFS, "/etc/passwd", "it is a file"},
		{MACHINE_MOUNT_TMPFS, "/etc/passwd/x", "/etc/passwd is no directory"},
		{MACHINE_MOUNT_SECRET, "/etc", "it is a directory"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct machine_mount mount = {
			.kind = cases[i].kind, .target = cases[i].target, .secret = &token};
		AUTO(machine) struct machine *machine = NULL;
		struct err err = {0};

		check_err(try_open(rig, &rig->base, 1, &mount, 1, &machine, &err), &err,
			  ERR_REFUSED);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].target, err.text);
	}
}

static void a_link_loop_leads_nowhere(void **state)
{
	struct rig *rig = *state;
	char name[32];
	int fd = rig_new_tree(rig, name);
	struct digest trees[2] = {rig->base};
	const struct machine_mount mount = tmpfs_on("/a/x");
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};

	assert_int_equal(symlinkat("b", fd, "a"), 0);
	assert_int_equal(symlinkat("/a", fd, "b"), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	check_err(try_open(rig, trees, 2, &mount, 1, &machine, &err), &err, ERR_REFUSED);
	assert_non_null(strstr(err.text, "links lead nowhere"));
}

static void an_empty_root_has_mounts_too(void **state)
{
	struct rig *rig = *state;
	const struct machine_mount mount = tmpfs_on("/a/b");
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};
	static const char *const argv[] = {"/bin/true", NULL};
	struct done *done;

	check_ok(try_open(rig, NULL, 0, &mount, 1, &machine, &err), &err);
	done = rig_run(machine, (struct machine_command){.argv = argv});
	assert_int_equal(done->result, 0);
	assert_int_equal(done->status, 127);
	test_free(done);
	rig_assert_upper_empty(machine);
}

static void nothing_stays_mounted(void **state)
{
	struct rig *rig = *state;
	auto_close int fd = new_directory(rig);
	struct machine_mount mounts[] = {tree_on("/a", fd), tmpfs_on("/a/b")};
	size_t before = rig_count_own_mounts();
	AUTO(machine) struct machine *machine = open_with(rig, mounts, 2);

	rig_expect(machine, "true", 0, "");
	rig_expect(machine, "touch /a/b/x", 0, "");
	machine_close(steal_ptr(&machine));
	assert_int_equal(rig_count_own_mounts(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tmpfs_has_its_size_and_is_anybodys),
		cmocka_unit_test(a_tmpfs_takes_the_place_of_the_shared_memory),
		cmocka_unit_test(a_directory_is_shared_with_natural_owners),
		cmocka_unit_test(what_is_read_only_cannot_be_written_to),
		cmocka_unit_test(a_secret_is_a_file_that_goes_with_the_machine),
		cmocka_unit_test(a_command_that_writes_beside_a_target_leaves_only_that),
		cmocka_unit_test(a_target_that_the_image_has_deleted_has_a_place_again),
		cmocka_unit_test(links_of_the_image_are_followed_inside_it),
		cmocka_unit_test(mounts_lie_in_one_another),
		cmocka_unit_test(no_place_is_made_in_what_is_read_only),
		cmocka_unit_test(what_has_no_place_is_refused),
		cmocka_unit_test(a_link_loop_leads_nowhere),
		cmocka_unit_test(an_empty_root_has_mounts_too),
		cmocka_unit_test(nothing_stays_mounted),
	};

	if (!rig_is_possible())
		return RIG_SKIP;
	return cmocka_run_group_tests_name("sandbox/inner", tests, rig_make, rig_end);
}
