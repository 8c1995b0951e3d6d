/* SPDX-License-Identifier: Apache-2.0 */
/* confinement_test.c - what a machine cannot reach, use up, or be led to. */
#include "tests/sandbox/rig.h"

#include "layers/base/fd.h"
#include "layers/base/path.h"
#include "sandbox/host.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void refuse_link(struct rig *rig, const char *link)
{
	struct digest trees[2] = {rig->base};
	char name[32];
	int fd = rig_new_tree(rig, name);
	AUTO(machine) struct machine *machine = NULL;
	struct done *done;

	assert_int_equal(symlinkat("/etc", fd, link), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	done = rig_shell(machine, "true");
	check_err(done->result, &done->err, ERR_REFUSED);
	assert_non_null(strstr(done->err.text, link));
	test_free(done);
}

static void links_for_mount_points_are_refused(void **state)
{
	refuse_link(*state, "dev");
	refuse_link(*state, "proc");
	refuse_link(*state, "sys");
}

/* Its /dev is covered by the machine's: no link of its own is a device here. */
static void devices_of_an_image_are_covered(void **state)
{
	struct rig *rig = *state;
	struct digest trees[2] = {rig->base};
	char name[32];
	int fd = rig_new_tree(rig, name);
	AUTO(machine) struct machine *machine = NULL;

	assert_int_equal(mkdirat(fd, "dev", 0755), 0);
	assert_int_equal(symlinkat("/etc/passwd", fd, "dev/null"), 0);
	assert_int_equal(symlinkat("/etc/passwd", fd, "dev/console"), 0);
	assert_int_equal(symlinkat("/etc", fd, "dev/pts"), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	rig_expect(machine,
		   "[ -c /dev/null ] && [ ! -L /dev/null ] && [ ! -e /dev/console ] && "
		   "[ ! -e /dev/pts/passwd ] && echo covered; cat /proc/keys",
		   0, "covered\n");
}

static struct digest digest_of_file(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf bytes = BUF_INIT((size_t)64 << 20);
	struct digest digest;
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_read_all(fd, &bytes, &err), &err);
	digest_of(buf_str(&bytes), &digest);
	return digest;
}

/* A program that is run by whoever runs it, and one that writes to who began it. */
static void who_starts_a_command_is_not_overwritten_by_it(void **state)
{
	static const char *const trap[] = {"/trap", NULL};
	struct rig *rig = *state;
	struct digest trees[2] = {rig->base};
	char name[32];
	int fd = rig_new_tree(rig, name);
	AUTO(machine) struct machine *machine = NULL;
	struct digest before[2];
	struct digest after[2];
	char runtime[256];
	struct done *done;
	struct err err = {0};

	check_ok(host_find_runtime(NULL, runtime, &err), &err);
	before[0] = digest_of_file(runtime);
	before[1] = digest_of_file(AGENT_PATH);
	rig_text_at(fd, "trap", "#!/proc/self/exe\n");
	assert_int_equal(fchmodat(fd, "trap", 0755, 0), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	done = rig_run(machine, (struct machine_command){.argv = trap});
	assert_true(done->result < 0 || done->status != 0);
	test_free(done);
	rig_expect(
		machine,
		"for f in /proc/1/exe /dev/.hearth-init; do (echo x >$f) 2>/dev/null && echo $f; "
		"done; rm /dev/.hearth-init 2>/dev/null",
		1, "");
	after[0] = digest_of_file(runtime);
	after[1] = digest_of_file(AGENT_PATH);
	assert_true(digest_equal(&before[0], &after[0]));
	assert_true(digest_equal(&before[1], &after[1]));
	rig_assert_nothing_runs(rig);
}

static void no_path_of_the_host_is_seen(void **state)
{
	struct rig *rig = *state;
	AUTO(machine) struct machine *machine = rig_plain_machine(rig);
	struct done *done = rig_shell(machine, "cat /proc/self/mountinfo /proc/self/cgroup");

	assert_int_equal(done->status, 0);
	assert_non_null(strstr(done->output, " / / "));
	assert_null(strstr(done->output, rig->dir));
	test_free(done);
}

/* Of a signal for all the first process gets none, and so it reports the end. */
static void a_signal_for_all_spares_the_first_process(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine, "sleep 1000 & kill -9 -1; kill -9 1; wait; echo survived", 0,
		   "survived\n");
	rig_expect(machine, "kill -9 $$", 137, "");
	rig_assert_nothing_runs(*state);
}

static int make_directories(void *ctx, int rootfd, struct err *err)
{
	struct str rest = str_of(ctx);
	char path[256] = "";
	struct str part;

	while (path_next(&rest, &part)) {
		size_t used = strlen(path);

		(void)snprintf(path + used, sizeof(path) - used, "%s" STR_FMT, used ? "/" : "",
			       STR_ARG(part));
		if (mkdirat(rootfd, path, 0755) < 0 && errno != EEXIST)
			return err_os(err, errno, "make %s", path);
	}
	return 0;
}

static int make_link(void *ctx, int rootfd, struct err *err)
{
	(void)ctx;
	return symlinkat("/proc/self", rootfd, "via") < 0 ? err_os(err, errno, "make a link") : 0;
}

static void working_directories_outside_the_image_are_refused(void **state)
{
	static const char *const wrong[] = {"/proc/self/fd/7", "/nowhere", "/etc/passwd", "/sys",
					    "/via/fd/8"};
	static const char *const argv[] = {"/bin/true", NULL};
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	char made[] = "proc/self/fd/7";
	struct err err = {0};

	/* As a WORKDIR step would have made it. */
	check_ok(machine_as_root(machine, make_directories, made, NULL, &err), &err);
	check_ok(machine_as_root(machine, make_link, NULL, NULL, &err), &err);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct done *done =
			rig_run(machine, (struct machine_command){.argv = argv, .cwd = wrong[i]});

		check_err(done->result, &done->err, ERR_REFUSED);
		test_free(done);
	}
}

static void a_child_sees_three_descriptors_and_its_own_processes(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	int leaky = open("/etc/passwd", O_RDONLY); /* without O_CLOEXEC, on purpose */

	rig_expect(
		machine,
		"n=3; while [ $n -lt 64 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done; "
		"true",
		0, "");
	rig_expect(machine, "cd /proc; echo [0-9]*", 0, "1 2\n");
	rig_expect(machine,
		   "cat /proc/self/cgroup | while IFS=: read a b c; do [ $c = / ] || echo $c; done",
		   0, "");
	assert_int_equal(close(leaky), 0);
}

static void the_kernel_is_out_of_reach(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine, "cat /proc/keys /proc/timer_list; ls -A /sys/firmware /proc/acpi", 0,
		   "/proc/acpi:\n\n/sys/firmware:\n");
	rig_expect(machine, "(echo x >/proc/sysrq-trigger) 2>/dev/null", 1, "");
	rig_expect(machine, "(echo x >/proc/sys/kernel/core_pattern) 2>/dev/null", 1, "");
	rig_expect(machine, "(echo 1 >/sys/kernel/mm/ksm/run) 2>/dev/null", 1, "");
	rig_expect(machine,
		   "mount -t tmpfs x /mnt 2>/dev/null || mount -t tmpfs x /etc 2>/dev/null", 1, "");
	rig_expect(machine, "umount /proc/keys 2>/dev/null", 1, "");
	rig_expect(machine, "mknod /zero c 1 5 2>/dev/null", 1, "");
	rig_expect(machine, "ls /dev/mem /dev/kmsg /dev/fuse /dev/net 2>/dev/null", 1, "");
	rig_expect(machine,
		   "while read k v; do case $k in CapEff:|CapBnd:|CapAmb:|Seccomp:) echo $k $v;; "
		   "esac; "
		   "done </proc/self/status",
		   0,
		   "CapEff: 00000000a00405fb\nCapBnd: 00000000a00405fb\nCapAmb: 0000000000000000\n"
		   "Seccomp: 2\n");
}

static void another_user_has_no_capabilities(void **state)
{
	static const char *const argv[] = {
		"/bin/sh", "-c",
		"while read k v; do case $k in CapEff:|CapPrm:) echo $v;; "
		"esac; done </proc/self/status; touch /etc/x 2>/dev/null",
		NULL};
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct done *done =
		rig_run(machine, (struct machine_command){.argv = argv, .user = STR("1234:1234")});

	assert_string_equal(done->output, "0000000000000000\n0000000000000000\n");
	assert_int_equal(done->status, 1);
	test_free(done);
}

static void devices_of_an_image_do_not_open(void **state)
{
	struct rig *rig = *state;
	struct digest trees[2] = {rig->base};
	char name[32];
	int fd = rig_new_tree(rig, name);
	AUTO(machine) struct machine *machine = NULL;

	assert_int_equal(mknodat(fd, "zero", S_IFCHR | 0666, makedev(1, 5)), 0);
	trees[1] = rig_keep_tree(rig, fd, name);
	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	rig_expect(machine, "dd if=/zero bs=1 count=1 2>&1", 1,
		   "dd: can't open '/zero': Permission denied\n");
	rig_expect(machine, "dd if=/dev/zero bs=1 count=1 of=/dev/null 2>/dev/null", 0, "");
}

/* The runtime binds the host's own devices in, and makes its standard input its user's. */
static void devices_of_the_host_stay_the_hosts(void **state)
{
	static const char *const names[] = {"/dev/null", "/dev/zero",    "/dev/full",
					    "/dev/tty",  "/dev/urandom", "/dev/random"};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct stat before[COUNT];
	struct stat after[COUNT];
	struct done *done;

	for (int i = 0; i < COUNT; i++)
		assert_int_equal(stat(names[i], &before[i]), 0);
	done = rig_shell(machine,
			 "exec 2>/dev/shm/refusals; for f in /dev/null /dev/zero /dev/full "
			 "/dev/tty /dev/urandom /dev/random /proc/self/fd/0; do "
			 "chmod 0600 $f && echo $f; chown 12345 $f && echo $f; done");
	/* The host gets its devices back before anything here may fail. */
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(stat(names[i], &after[i]), 0);
		assert_int_equal(chown(names[i], before[i].st_uid, before[i].st_gid), 0);
		assert_int_equal(chmod(names[i], before[i].st_mode & 07777), 0);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(after[i].st_mode, before[i].st_mode);
		assert_int_equal(after[i].st_uid, before[i].st_uid);
		assert_int_equal(after[i].st_gid, before[i].st_gid);
	}
	assert_int_equal(done->result, 0);
	assert_string_equal(done->output, "");
	test_free(done);
}

static void a_command_reads_nothing(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine, "cat; cat /dev/stdin; [ -c /proc/self/fd/0 ]; echo $?", 0, "0\n");
}

/* What reading these asks the kernel for is what ptrace() asks: a traced pid 1 never ends. */
static void the_first_process_cannot_be_traced(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine,
		   "for f in environ auxv maps mem; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; "
		   "done; (echo x >/proc/1/fd/1) 2>/dev/null && echo x; cat /proc/$$/environ "
		   ">/dev/null && echo own",
		   0, "own\n");
}

static void processes_have_a_ceiling(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine =
		rig_open_machine(rig, &rig->base, 1, (struct machine_limits){.pids = 12});
	struct done *done = rig_shell(
		machine, "for i in 1 2 3 4 5 6 7 8 9 a b c d e f; do sleep 1000 & done; echo all");

	assert_null(strstr(done->output, "all"));
	assert_non_null(strstr(done->output, "can't fork"));
	assert_int_not_equal(done->status, 0);
	assert_true(machine_hit_pids(machine));
	test_free(done);
	rig_expect(machine, "true", 0, "");
	assert_false(machine_hit_pids(machine));
	rig_assert_nothing_runs(rig);
}

/* Who asks for none has one far below the 32,768 of a host, which a fork bomb would use up. */
static void processes_have_a_ceiling_unasked(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine = rig_open_machine(rig, &rig->base, 1, (struct machine_limits){0});

	rig_expect(machine, "cd /sys/fs/cgroup; cat pids.max pids/pids.max 2>/dev/null; :", 0,
		   "4096\n");
}

static void memory_has_a_ceiling(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine = rig_open_machine(
		rig, &rig->base, 1, (struct machine_limits){.memory_bytes = 24 << 20});

	rig_expect(machine, "dd if=/dev/zero of=/dev/shm/x bs=1M count=60 2>/dev/null; echo $?", 0,
		   "137\n");
	assert_true(machine_hit_memory(machine));
	rig_expect(machine, "true", 0, "");
	assert_false(machine_hit_memory(machine));
	assert_false(machine_hit_pids(machine));
}

static void processor_time_has_a_ceiling(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine =
		rig_open_machine(rig, &rig->base, 1, (struct machine_limits){.cpu_millis = 500});

	rig_expect(
		machine,
		"cd /sys/fs/cgroup; cat cpu.max cpu/cpu.cfs_quota_us 2>/dev/null | (read n rest; "
		"echo $n);"
		"cd cpu 2>/dev/null; busybox mkdir x 2>/dev/null",
		1, "50000\n");
}

/* Those whose file lies in the rig's store. */
static size_t count_loop_devices(const struct rig *rig)
{
	size_t count = 0;
	glob_t found;

	if (glob("/sys/block/loop*/loop/backing_file", 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		auto_close int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		char path[4096] = "";

		count += fd >= 0 && read(fd, path, sizeof(path) - 1) > 0 &&
			 strncmp(path, rig->dir, strlen(rig->dir)) == 0;
	}
	globfree(&found);
	return count;
}

static struct machine *open_limited(struct rig *rig, uint64_t disk_bytes)
{
	struct machine *machine = rig_open_machine(
		rig, &rig->base, 1, (struct machine_limits){.disk_bytes = disk_bytes});

	if (!machine_disk_unlimited(machine))
		return machine;
	print_message("this host cannot limit a disk: %s\n", machine_disk_unlimited(machine));
	machine_close(machine);
	skip();
	return NULL;
}

static void a_disk_has_a_ceiling(void **state)
{
	struct rig *rig = *state;
	AUTO(machine) struct machine *machine = open_limited(rig, 16 << 20);

	assert_true(machine_has_volume(machine));
	assert_int_equal(count_loop_devices(rig), 1);
	rig_expect(machine, "dd if=/dev/zero of=/x bs=1M count=15 2>/dev/null", 0, "");
	assert_false(machine_hit_disk(machine));
	rig_expect(machine, "dd if=/dev/zero of=/y bs=64k 2>&1 | (read m; echo $m)", 0,
		   "dd: error writing '/y': No space left on device\n");
	assert_true(machine_hit_disk(machine));
	machine_close(steal_ptr(&machine));
	assert_int_equal(count_loop_devices(rig), 0);
}

/* Owners are mapped there as they are on the disk of the store. */
static void a_limited_disk_keeps_natural_owners(void **state)
{
	struct rig *rig = *state;
	AUTO(machine) struct machine *machine = open_limited(rig, 1 << 20);
	struct stat st;
	int fd;

	rig_expect(machine,
		   "echo kept >/kept; chown 7:9 /kept; chmod 4711 /kept; rm /bin/id; "
		   "ls -n /kept /etc/passwd | while read m l u g r; do echo $m $u $g; done",
		   0, "-rw-r--r-- 0 0\n-rws--x--x 7 9\n");
	fd = rig_upper_of(machine);
	assert_int_equal(fstatat(fd, "kept", &st, 0), 0);
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(st.st_gid, 9);
	assert_int_equal(st.st_mode, S_IFREG | 04711);
	assert_int_equal(fstatat(fd, "bin/id", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISCHR(st.st_mode)); /* a whiteout */
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(close(fd), 0);
}

static void nothing_of_a_limited_disk_is_left_by_a_failure(void **state)
{
	struct rig *rig = *state;
	struct digest trees[2] = {rig->base};
	const struct machine_spec spec = {.store = rig->store,
					  .diff_ids = trees,
					  .diff_id_count = 2,
					  .network = NETWORK_NONE,
					  .limits = {.disk_bytes = 16 << 20},
					  .agent_path = AGENT_PATH};
	size_t mounts = rig_count_own_mounts();
	struct machine *machine = NULL;
	struct err err = {0};

	digest_of(STR("a tree that is not there"), &trees[1]);
	assert_int_equal(machine_open(&spec, &machine, &err), -1);
	assert_int_equal(count_loop_devices(rig), 0);
	assert_int_equal(rig_count_own_mounts(), mounts);
}

static void more_than_the_disk_has_is_no_limit(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine = rig_open_machine(
		rig, &rig->base, 1, (struct machine_limits){.disk_bytes = (uint64_t)1 << 50});

	assert_false(machine_has_volume(machine));
	assert_null(machine_disk_unlimited(machine));
	assert_int_equal(count_loop_devices(rig), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_for_mount_points_are_refused),
		cmocka_unit_test(devices_of_an_image_are_covered),
		cmocka_unit_test(who_starts_a_command_is_not_overwritten_by_it),
		cmocka_unit_test(no_path_of_the_host_is_seen),
		cmocka_unit_test(a_signal_for_all_spares_the_first_process),
		cmocka_unit_test(working_directories_outside_the_image_are_refused),
		cmocka_unit_test(a_child_sees_three_descriptors_and_its_own_processes),
		cmocka_unit_test(the_kernel_is_out_of_reach),
		cmocka_unit_test(another_user_has_no_capabilities),
		cmocka_unit_test(devices_of_an_image_do_not_open),
		cmocka_unit_test(devices_of_the_host_stay_the_hosts),
		cmocka_unit_test(a_command_reads_nothing),
		cmocka_unit_test(the_first_process_cannot_be_traced),
		cmocka_unit_test(processes_have_a_ceiling),
		cmocka_unit_test(processes_have_a_ceiling_unasked),
		cmocka_unit_test(memory_has_a_ceiling),
		cmocka_unit_test(processor_time_has_a_ceiling),
		cmocka_unit_test(a_disk_has_a_ceiling),
		cmocka_unit_test(a_limited_disk_keeps_natural_owners),
		cmocka_unit_test(nothing_of_a_limited_disk_is_left_by_a_failure),
		cmocka_unit_test(more_than_the_disk_has_is_no_limit),
	};

	if (!rig_is_possible())
		return RIG_SKIP;
	return cmocka_run_group_tests(tests, rig_make, rig_end);
}
