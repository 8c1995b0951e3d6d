/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_test.c - real machines over a root of one busybox.
 *
 * The first argument, if there is one, is a role: "owner DIR" opens a machine
 * of DIR's store, runs a command that never ends, and is killed by a test.
 */
#include "sandbox/machine.h"

#include "layers/base/clock.h"
#include "layers/base/path.h"
#include "sandbox/host.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define BUSYBOX "/usr/bin/busybox"
#define OUTPUT_MAX 65536

static const char *const plain_env[] = {"PATH=/bin", NULL};

/* One store and what the tests share; cmocka's state. */
struct world {
	char dir[64];
	struct store *store;
	struct digest base; /* busybox and its links */
	unsigned trees;
	int mounts; /* mountinfo of the namespace that we left */
};

struct done {
	int result;
	int status;
	struct err err;
	char output[OUTPUT_MAX];
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void text_at(int dirfd, const char *name, const char *text)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static int new_tree(struct world *world, char name[32])
{
	int tmp = store_dirfd(world->store, STORE_TMP);
	int fd;

	(void)snprintf(name, 32, "tree%u", world->trees++);
	assert_int_equal(mkdirat(tmp, name, 0755), 0);
	fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct digest keep_tree(struct world *world, int fd, const char *name)
{
	struct digest digest;
	struct err err = {0};

	assert_int_equal(close(fd), 0);
	digest_of(str_of(name), &digest);
	check_ok(
		tree_adopt(world->store, &digest, store_dirfd(world->store, STORE_TMP), name, &err),
		&err);
	return digest;
}

static void copy_busybox(int dirfd)
{
	int in = open(BUSYBOX, O_RDONLY | O_CLOEXEC);
	int out = openat(dirfd, "bin/busybox", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	char piece[65536];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, piece, sizeof(piece))) > 0)
		assert_int_equal(write(out, piece, (size_t)n), n);
	assert_int_equal(close(in) + close(out), 0);
}

static struct digest make_base(struct world *world)
{
	static const char *const links[] = {"sh",  "id",    "cat",   "true",   "sleep", "ls",
					    "env", "touch", "chown", "rm",     "mknod", "dd",
					    "pwd", "kill",  "mount", "umount", "chmod"};
	char name[32];
	int fd = new_tree(world, name);

	assert_int_equal(mkdirat(fd, "bin", 0755), 0);
	assert_int_equal(mkdirat(fd, "etc", 0755), 0);
	copy_busybox(fd);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "bin/%s", links[i]);
		assert_int_equal(symlinkat("busybox", fd, path), 0);
	}
	text_at(fd, "etc/passwd",
		"root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n");
	text_at(fd, "etc/group", "root:x:0:\napp:x:1001:\nstaff:x:50:app\n");
	return keep_tree(world, fd, name);
}

static struct machine *open_machine(struct world *world, const struct digest *trees, size_t count,
				    struct machine_limits limits)
{
	struct machine_spec spec = {.store = world->store,
				    .diff_ids = trees,
				    .diff_id_count = count,
				    .network = NETWORK_NONE,
				    .limits = limits,
				    .agent_path = AGENT_PATH};
	struct machine *machine = NULL;
	struct err err = {0};

	check_ok(machine_open(&spec, &machine, &err), &err);
	return machine;
}

static struct machine *plain_machine(struct world *world)
{
	return open_machine(world, &world->base, 1, (struct machine_limits){0});
}

/* Run with output and result kept; the command's empty fields get defaults. */
static struct done *run(struct machine *machine, struct machine_command command)
{
	struct done *done = test_calloc(1, sizeof(*done));
	int fd = memfd_create("output", MFD_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	command.envp = command.envp ? command.envp : plain_env;
	command.cwd = command.cwd ? command.cwd : "/";
	command.hostname = "step";
	command.out_fd = fd;
	done->result = machine_run(machine, &command, &done->status, &done->err);
	n = pread(fd, done->output, sizeof(done->output) - 1, 0);
	assert_true(n >= 0);
	assert_int_equal(close(fd), 0);
	return done;
}

static struct done *shell(struct machine *machine, const char *script)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};

	return run(machine, (struct machine_command){.argv = argv});
}

/* The script's output, when it went as it should. */
static void expect(struct machine *machine, const char *script, int status, const char *output)
{
	struct done *done = shell(machine, script);

	if (done->result < 0)
		fail_msg("%s", done->err.text);
	assert_string_equal(done->output, output);
	assert_int_equal(done->status, status);
	test_free(done);
}

static size_t count_entries(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	size_t count = 0;
	const struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	assert_int_equal(closedir(dir), 0);
	return count;
}

/* Detach and lend the upper directory. */
static int upper_of(struct machine *machine)
{
	struct err err = {0};
	const char *name;
	int dirfd;
	int fd;

	check_ok(machine_detach(machine, &dirfd, &name, &err), &err);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void assert_upper_empty(struct machine *machine)
{
	int fd = upper_of(machine);
	char names[256];

	assert_int_equal(count_entries(fd), 0);
	assert_int_equal(flistxattr(fd, names, sizeof(names)), 0);
	assert_int_equal(close(fd), 0);
}

/* What every id of this store's machines begins with. */
static void id_prefix(const struct world *world, char prefix[64])
{
	struct stat st;

	assert_int_equal(fstat(store_dirfd(world->store, STORE_MACHINES), &st), 0);
	(void)snprintf(prefix, 64, "hearth-%jx-%jx-", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

static size_t count_cgroups_in(const char *path, const char *prefix)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	if (dir)
		(void)closedir(dir);
	return count;
}

/* In all hierarchies but the one that is hidden from us. */
static size_t count_cgroups(const struct world *world)
{
	DIR *dir = opendir("/sys/fs/cgroup");
	const struct dirent *entry;
	char path[PATH_MAX];
	char prefix[64];
	size_t count;

	id_prefix(world, prefix);
	count = count_cgroups_in("/sys/fs/cgroup", prefix);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "unified") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", entry->d_name);
		count += count_cgroups_in(path, prefix);
	}
	assert_int_equal(closedir(dir), 0);
	return count;
}

/* How many processes of the host are in one of these cgroups. */
static size_t count_processes(const struct world *world)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	char prefix[64];
	size_t count = 0;

	id_prefix(world, prefix);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char text[8192] = "";
		char path[64];
		int fd;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.16s/cgroup", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
			count += strstr(text, prefix) != NULL;
		if (fd >= 0)
			(void)close(fd);
	}
	assert_int_equal(closedir(dir), 0);
	return count;
}

static void assert_nothing_runs(const struct world *world)
{
	assert_int_equal(count_processes(world), 0);
	assert_int_equal(count_cgroups(world), 0);
}

static size_t count_lines(int fd)
{
	size_t count = 0;
	char piece[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, piece, sizeof(piece), at)) > 0) {
		at += n;
		for (ssize_t i = 0; i < n; i++)
			count += piece[i] == '\n';
	}
	return count;
}

static size_t count_own_mounts(void)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t count = count_lines(fd);

	assert_int_equal(close(fd), 0);
	return count;
}

static void a_command_runs_and_its_status_comes_back(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);

	expect(machine, "true", 0, "");
	expect(machine, "echo out; echo err >&2; exit 7", 7, "out\nerr\n");
	expect(machine, "kill -9 $$", 128 + SIGKILL, "");
	expect(machine, "kill -TERM $$", 128 + SIGTERM, "");
}

static void what_cannot_be_executed_is_said(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);
	static const char *const missing[] = {"/bin/nope", NULL};
	static const char *const searched[] = {"nope", NULL};
	static const char *const data[] = {"/etc/passwd", NULL};
	struct done *done = run(machine, (struct machine_command){.argv = missing});

	assert_int_equal(done->status, 127);
	assert_string_equal(done->output, "exec: /bin/nope: No such file or directory\n");
	test_free(done);
	done = run(machine, (struct machine_command){.argv = searched});
	assert_int_equal(done->status, 127);
	test_free(done);
	done = run(machine, (struct machine_command){.argv = data});
	assert_int_equal(done->status, 126);
	assert_string_equal(done->output, "exec: /etc/passwd: Permission denied\n");
	test_free(done);
}

static void environment_directory_and_user_are_the_commands(void **state)
{
	struct world *world = *state;
	static const char *const argv[] = {
		"sh", "-c", "pwd; id -u; id -g; id -G; echo $HOME $A; cat /etc/hostname", NULL};
	static const char *const env[] = {"PATH=/nowhere:/bin", "A=b c", NULL};
	AUTO(machine) struct machine *machine = plain_machine(world);
	struct done *done =
		run(machine,
		    (struct machine_command){
			    .argv = argv, .envp = env, .cwd = "/etc/../etc", .user = STR("app")});

	if (done->result < 0)
		fail_msg("%s", done->err.text);
	assert_string_equal(done->output, "/etc\n1000\n1001\n1001 50\n/home/app b c\nstep\n");
	test_free(done);
}

static void files_have_natural_owners_on_disk(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);
	struct stat st;
	int fd;

	expect(machine, "touch /mine; touch /theirs; chown 1000:1001 /theirs; rm /etc/group", 0,
	       "");
	fd = upper_of(machine);
	assert_int_equal(fstatat(fd, "mine", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, 0);
	assert_int_equal(fstatat(fd, "theirs", &st, 0), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_gid, 1001);
	assert_int_equal(fstatat(fd, "etc/group", &st, 0), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0));
	assert_int_equal(close(fd), 0);
}

static void a_command_that_changes_nothing_leaves_nothing(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);

	expect(machine, "true", 0, "");
	assert_upper_empty(machine);
}

/* A tree on top of the base, in which resolv.conf is whatever the function makes. */
static void try_resolv_conf(struct world *world, void (*make)(int dirfd))
{
	struct digest trees[2] = {world->base};
	char name[32];
	int fd = new_tree(world, name);
	AUTO(machine) struct machine *machine = NULL;

	make(fd);
	trees[1] = keep_tree(world, fd, name);
	machine = open_machine(world, trees, 2, (struct machine_limits){0});
	expect(machine, "cat /etc/resolv.conf /etc/hostname; echo x >/etc/resolv.conf", 0,
	       "step\n");
	expect(machine, "umount /etc/resolv.conf 2>/dev/null || rm /etc/resolv.conf 2>/dev/null", 1,
	       "");
	machine_close(steal_ptr(&machine));

	machine = open_machine(world, trees, 2, (struct machine_limits){0});
	expect(machine, "true", 0, "");
	fd = upper_of(machine);
	assert_int_equal(faccessat(fd, "run", F_OK, 0), -1);
	assert_int_equal(faccessat(fd, "etc/resolv.conf", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(close(fd), 0);
}

static void resolv_conf_absent(int dirfd)
{
	(void)dirfd;
}

static void resolv_conf_file(int dirfd)
{
	assert_int_equal(mkdirat(dirfd, "etc", 0755), 0);
	text_at(dirfd, "etc/resolv.conf", "nameserver 192.0.2.1\n");
}

static void resolv_conf_dangling(int dirfd)
{
	assert_int_equal(mkdirat(dirfd, "etc", 0755), 0);
	assert_int_equal(
		symlinkat("../run/systemd/resolve/stub-resolv.conf", dirfd, "etc/resolv.conf"), 0);
}

static void resolv_conf_into_the_host(int dirfd)
{
	assert_int_equal(mkdirat(dirfd, "etc", 0755), 0);
	assert_int_equal(symlinkat("/../../../../etc/passwd", dirfd, "etc/resolv.conf"), 0);
}

static void resolv_conf_deleted(int dirfd)
{
	assert_int_equal(mkdirat(dirfd, "etc", 0755), 0);
	assert_int_equal(mknodat(dirfd, "etc/resolv.conf", S_IFCHR, makedev(0, 0)), 0);
}

static void resolv_conf_is_ours_and_leaves_no_trace(void **state)
{
	try_resolv_conf(*state, resolv_conf_absent);
	try_resolv_conf(*state, resolv_conf_file);
	try_resolv_conf(*state, resolv_conf_dangling);
	try_resolv_conf(*state, resolv_conf_into_the_host);
	try_resolv_conf(*state, resolv_conf_deleted);
}

static void an_empty_root_runs_what_is_put_there(void **state)
{
	AUTO(machine)
	struct machine *machine = open_machine(*state, NULL, 0, (struct machine_limits){0});
	static const char *const argv[] = {"/bin/true", NULL};
	struct err err = {0};
	int view = 0;
	struct done *done = run(machine, (struct machine_command){.argv = argv});

	assert_int_equal(done->result, 0);
	assert_int_equal(done->status, 127);
	test_free(done);
	check_ok(machine_lower_view(machine, &view, &err), &err);
	assert_int_equal(view, -1);
	assert_upper_empty(machine);
}

static void refuse_link(struct world *world, const char *link)
{
	struct digest trees[2] = {world->base};
	char name[32];
	int fd = new_tree(world, name);
	AUTO(machine) struct machine *machine = NULL;
	struct done *done;

	assert_int_equal(symlinkat("/etc", fd, link), 0);
	trees[1] = keep_tree(world, fd, name);
	machine = open_machine(world, trees, 2, (struct machine_limits){0});
	done = shell(machine, "true");
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
	AUTO(machine) struct machine *machine = plain_machine(*state);
	char made[] = "proc/self/fd/7";
	struct err err = {0};

	/* As a WORKDIR step would have made it. */
	check_ok(machine_as_root(machine, make_directories, made, &err), &err);
	check_ok(machine_as_root(machine, make_link, NULL, &err), &err);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct done *done =
			run(machine, (struct machine_command){.argv = argv, .cwd = wrong[i]});

		check_err(done->result, &done->err, ERR_REFUSED);
		test_free(done);
	}
}

static void a_child_sees_three_descriptors_and_its_own_processes(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);
	int leaky = open("/etc/passwd", O_RDONLY); /* without O_CLOEXEC, on purpose */

	expect(machine,
	       "n=3; while [ $n -lt 64 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done; "
	       "true",
	       0, "");
	expect(machine, "cd /proc; echo [0-9]*", 0, "1 2\n");
	expect(machine,
	       "cat /proc/self/cgroup | while IFS=: read a b c; do [ $c = / ] || echo $c; done", 0,
	       "");
	assert_int_equal(close(leaky), 0);
}

static void the_kernel_is_out_of_reach(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);

	expect(machine, "cat /proc/keys /proc/timer_list; ls -A /sys/firmware /proc/acpi", 0,
	       "/proc/acpi:\n\n/sys/firmware:\n");
	expect(machine, "(echo x >/proc/sysrq-trigger) 2>/dev/null", 1, "");
	expect(machine, "(echo x >/proc/sys/kernel/core_pattern) 2>/dev/null", 1, "");
	expect(machine, "(echo 1 >/sys/kernel/mm/ksm/run) 2>/dev/null", 1, "");
	expect(machine, "mount -t tmpfs x /mnt 2>/dev/null || mount -t tmpfs x /etc 2>/dev/null", 1,
	       "");
	expect(machine, "umount /proc/keys 2>/dev/null", 1, "");
	expect(machine, "mknod /zero c 1 5 2>/dev/null", 1, "");
	expect(machine, "ls /dev/mem /dev/kmsg /dev/fuse /dev/net 2>/dev/null", 1, "");
	expect(machine,
	       "while read k v; do case $k in CapEff:|CapBnd:|CapAmb:|Seccomp:) echo $k $v;; esac; "
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
	AUTO(machine) struct machine *machine = plain_machine(*state);
	struct done *done =
		run(machine, (struct machine_command){.argv = argv, .user = STR("1234:1234")});

	assert_string_equal(done->output, "0000000000000000\n0000000000000000\n");
	assert_int_equal(done->status, 1);
	test_free(done);
}

static void devices_of_an_image_do_not_open(void **state)
{
	struct world *world = *state;
	struct digest trees[2] = {world->base};
	char name[32];
	int fd = new_tree(world, name);
	AUTO(machine) struct machine *machine = NULL;

	assert_int_equal(mknodat(fd, "zero", S_IFCHR | 0666, makedev(1, 5)), 0);
	trees[1] = keep_tree(world, fd, name);
	machine = open_machine(world, trees, 2, (struct machine_limits){0});
	expect(machine, "dd if=/zero bs=1 count=1 2>&1", 1,
	       "dd: can't open '/zero': Permission denied\n");
	expect(machine, "dd if=/dev/zero bs=1 count=1 of=/dev/null 2>/dev/null", 0, "");
}

static void processes_have_a_ceiling(void **state)
{
	struct world *world = *state;
	AUTO(machine)
	struct machine *machine =
		open_machine(world, &world->base, 1, (struct machine_limits){.pids = 12});
	struct done *done = shell(
		machine, "for i in 1 2 3 4 5 6 7 8 9 a b c d e f; do sleep 1000 & done; echo all");

	assert_null(strstr(done->output, "all"));
	assert_non_null(strstr(done->output, "can't fork"));
	assert_int_not_equal(done->status, 0);
	test_free(done);
	assert_nothing_runs(world);
}

static void memory_has_a_ceiling(void **state)
{
	struct world *world = *state;
	AUTO(machine)
	struct machine *machine = open_machine(world, &world->base, 1,
					       (struct machine_limits){.memory_bytes = 24 << 20});

	expect(machine, "dd if=/dev/zero of=/dev/shm/x bs=1M count=60 2>/dev/null; echo $?", 0,
	       "137\n");
}

static void processor_time_has_a_ceiling(void **state)
{
	struct world *world = *state;
	AUTO(machine)
	struct machine *machine =
		open_machine(world, &world->base, 1, (struct machine_limits){.cpu_millis = 500});

	expect(machine,
	       "cd /sys/fs/cgroup; cat cpu.max cpu/cpu.cfs_quota_us 2>/dev/null | (read n rest; "
	       "echo $n);"
	       "cd cpu 2>/dev/null; busybox mkdir x 2>/dev/null",
	       1, "50000\n");
}

/* A server that answers one request and ends. */
static void *answer_once(void *arg)
{
	static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
	const int *listener = arg;
	int fd = accept4(*listener, NULL, NULL, SOCK_CLOEXEC);
	char request[1024];

	if (fd < 0 || read(fd, request, sizeof(request)) <= 0 ||
	    write(fd, answer, sizeof(answer) - 1) < 0 || close(fd) < 0)
		return arg;
	return NULL;
}

static void a_command_reaches_the_operators_host(void **state)
{
	struct world *world = *state;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct network_host host;
	struct machine_spec spec = {.store = world->store,
				    .diff_ids = &world->base,
				    .diff_id_count = 1,
				    .network = NETWORK_OPEN,
				    .hosts = &host,
				    .host_count = 1,
				    .agent_path = AGENT_PATH};
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};
	pthread_t thread;
	void *failed;
	char text[64];

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	(void)snprintf(text, sizeof(text), "server.test=127.0.0.1:%d", ntohs(address.sin_port));
	check_ok(network_host_parse(str_of(text), &host, &err), &err);
	check_ok(machine_open(&spec, &machine, &err), &err);
	assert_int_equal(pthread_create(&thread, NULL, answer_once, &listener), 0);
	expect(machine, "busybox wget -q -O - http://server.test/", 0, "hello\n");
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(close(listener), 0);
}

static void orphans_are_reaped_and_end_with_the_command(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);

	expect(machine,
	       "i=0; while [ $i -lt 50 ]; do (true & true); i=$((i+1)); done;"
	       "n=99; while [ $n -gt 9 ]; do n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; "
	       "done; echo few",
	       0, "few\n");
	expect(machine, "sleep 1000 & sleep 1000 & exit 3", 3, "");
	assert_nothing_runs(*state);
}

static void time_runs_out(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & sleep 1000", NULL};
	AUTO(machine) struct machine *machine = plain_machine(*state);
	struct done *done = run(machine, (struct machine_command){.argv = argv, .timeout_ms = 100});

	check_err(done->result, &done->err, ERR_TIMEOUT);
	test_free(done);
	assert_nothing_runs(*state);
}

struct canceller {
	struct cancel cancel;
	int readfd;
	char seen[256];
};

/* Wait for the command's word, then cancel it, and read on to the end. */
static void *cancel_when_ready(void *arg)
{
	struct canceller *canceller = arg;
	size_t used = 0;
	ssize_t n;

	while (used < sizeof(canceller->seen) - 1 &&
	       (n = read(canceller->readfd, canceller->seen + used,
			 sizeof(canceller->seen) - 1 - used)) > 0) {
		used += (size_t)n;
		if (strstr(canceller->seen, "ready"))
			cancel_raise(&canceller->cancel);
	}
	return NULL;
}

static void try_cancel(struct world *world, const char *script, const char *wanted)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	AUTO(machine) struct machine *machine = plain_machine(world);
	struct canceller canceller = {0};
	struct machine_command command = {
		.argv = argv, .envp = plain_env, .cwd = "/", .hostname = "step"};
	struct err err = {0};
	pthread_t thread;
	int status;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	check_ok(cancel_init(&canceller.cancel, &err), &err);
	canceller.readfd = fds[0];
	command.out_fd = fds[1];
	command.cancel = &canceller.cancel;
	assert_int_equal(pthread_create(&thread, NULL, cancel_when_ready, &canceller), 0);
	check_err(machine_run(machine, &command, &status, &err), &err, ERR_CANCELLED);
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(close(fds[0]), 0);
	cancel_done(&canceller.cancel);
	assert_string_equal(canceller.seen, wanted);
	assert_nothing_runs(world);
}

static void cancelling_ends_background_children_too(void **state)
{
	try_cancel(*state, "sleep 1000 & echo ready; wait", "ready\n");
	try_cancel(*state, "trap 'echo told; exit 0' TERM; sleep 1000 & echo ready; wait",
		   "ready\ntold\n");
	try_cancel(*state, "trap '' TERM; sleep 1000 & echo ready; wait; wait", "ready\n");
}

static void machines_side_by_side_have_ids_of_their_own(void **state)
{
	AUTO(machine) struct machine *one = plain_machine(*state);
	AUTO(machine) struct machine *two = plain_machine(*state);

	assert_int_not_equal(machine_first_id(one), machine_first_id(two));
	assert_true(machine_first_id(one) % MACHINE_IDS == 0 &&
		    machine_first_id(one) >= MACHINE_IDS);
	expect(one, "echo one >/f", 0, "");
	expect(two, "cat /f 2>/dev/null; cat /proc/self/uid_map >/dev/null", 0, "");
	expect(one, "cat /f", 0, "one\n");
}

/*
 * A file capability, version 3: whose root it belongs to must be said, or the
 * kernel takes the host's, which the mapping does not have.
 */
static int set_capability(int fd, uint32_t root, struct err *err)
{
	unsigned char value[24] = {1, 0, 0, 3, 0, 4}; /* effective; net_bind_service permitted */

	for (int i = 0; i < 4; i++)
		value[20 + i] = (unsigned char)(root >> 8 * i);
	if (fsetxattr(fd, "security.capability", value, sizeof(value), 0) < 0)
		return err_os(err, errno, "set a capability");
	return 0;
}

static int write_as_root(void *ctx, int rootfd, struct err *err)
{
	const struct machine *machine = ctx;
	uint32_t first = machine_first_id(machine);
	int fd = openat(rootfd, "etc/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		return err_os(err, errno, "make etc/new");
	if (fchown(fd, first + 1000, first + 1001) < 0 || fchmod(fd, 04755) < 0)
		return err_os(err, errno, "chown");
	return set_capability(fd, first, err) < 0 ? -1 : close(fd);
}

static int fail_as_root(void *ctx, int rootfd, struct err *err)
{
	(void)ctx;
	(void)rootfd;
	return err_set(err, ERR_NOT_FOUND, "no such source");
}

static ssize_t capability_size(int dirfd, const char *name)
{
	unsigned char value[64];
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fgetxattr(fd, "security.capability", value, sizeof(value));

	assert_int_equal(close(fd), 0);
	return n;
}

static void a_child_writes_as_the_machines_root(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);
	struct err err = {0};
	struct stat st;
	int fd;

	check_ok(machine_as_root(machine, write_as_root, machine, &err), &err);
	check_err(machine_as_root(machine, fail_as_root, NULL, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text, "no such source");
	expect(machine, "ls -n /etc/new | (read m l u g r; echo $m $u $g)", 0,
	       "-rwsr-xr-x 1000 1001\n");
	fd = upper_of(machine);
	assert_int_equal(fstatat(fd, "etc/new", &st, 0), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_mode & 07777, 04755);
	assert_int_equal(capability_size(fd, "etc/new"), 20); /* version 2, as in any image */
	assert_int_equal(close(fd), 0);
}

static void the_lower_view_has_natural_owners_and_no_targets_of_ours(void **state)
{
	AUTO(machine) struct machine *machine = plain_machine(*state);
	struct err err = {0};
	struct stat st;
	int view;

	expect(machine, "rm /etc/group", 0, "");
	assert_int_equal(close(upper_of(machine)), 0);
	check_ok(machine_lower_view(machine, &view, &err), &err);
	assert_int_equal(fstatat(view, "etc/group", &st, 0), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(faccessat(view, "etc/hosts", F_OK, 0), -1);
	assert_int_equal(faccessat(view, "proc", F_OK, 0), -1);
	assert_int_equal(mkdirat(view, "x", 0755), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(close(view), 0);
}

static void an_upper_directory_becomes_the_next_machines_tree(void **state)
{
	struct world *world = *state;
	AUTO(machine) struct machine *first = plain_machine(world);
	AUTO(machine) struct machine *second = NULL;
	struct digest trees[2] = {world->base};
	struct err err = {0};
	const char *name;
	int dirfd;

	expect(first, "echo kept >/kept; chown 7 /kept; rm /bin/id", 0, "");
	check_ok(machine_detach(first, &dirfd, &name, &err), &err);
	digest_of(STR("an upper directory"), &trees[1]);
	check_ok(tree_adopt(world->store, &trees[1], dirfd, name, &err), &err);
	machine_close(steal_ptr(&first));
	second = open_machine(world, trees, 2, (struct machine_limits){0});
	expect(second, "cat /kept; ls -n /kept | (read m l u r; echo $u); ls /bin/id 2>/dev/null",
	       1, "kept\n7\n");
}

/* The role: a machine that runs until its owner is killed. */
static int own_forever(const char *dir)
{
	struct store_options options = {.path = dir};
	static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & echo ready; wait", NULL};
	struct world world = {0};
	struct err err = {0};
	struct machine_command command = {
		.argv = argv, .envp = plain_env, .cwd = "/", .hostname = "step", .out_fd = 1};
	struct machine_spec spec = {.diff_ids = &world.base,
				    .diff_id_count = 1,
				    .network = NETWORK_NONE,
				    .agent_path = AGENT_PATH};
	struct machine *machine;
	int status;

	digest_of(STR("tree0"), &world.base);
	if (store_open(&options, &world.store, &err) < 0 || machine_enter_private(&err) < 0)
		return 1;
	spec.store = world.store;
	if (machine_open(&spec, &machine, &err) < 0 ||
	    machine_run(machine, &command, &status, &err) < 0)
		(void)dprintf(1, "%s\n", err.text);
	return 1;
}

static void what_a_killed_owner_leaves_is_swept(void **state)
{
	struct world *world = *state;
	const char *const argv[] = {"machine_test", "owner", world->dir, NULL};
	auto_proc struct proc proc = PROC_INIT;
	struct err err = {0};
	char said[64] = "";
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	check_ok(proc_spawn(&(struct proc_spec){.path = "/proc/self/exe",
						.argv = argv,
						.fds = {-1, fds[1], 2},
						.fd_count = 3,
						.die_with_parent = true},
			    &proc, &err),
		 &err);
	assert_int_equal(close(fds[1]), 0);
	assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
	assert_string_equal(said, "ready\n");

	/* Alive, it is left alone. */
	check_ok(machine_sweep(world->store, &err), &err);
	assert_int_equal(count_processes(world), 3); /* init, sh, sleep */
	proc_done(&proc);
	check_ok(machine_sweep(world->store, &err), &err);
	assert_nothing_runs(world);
	assert_int_equal(count_entries(store_dirfd(world->store, STORE_MACHINES)), 0);
	assert_int_equal(read(fds[0], said, sizeof(said)), 0); /* nobody holds its output */
	assert_int_equal(close(fds[0]), 0);
}

static void nothing_is_left_and_the_host_sees_nothing(void **state)
{
	struct world *world = *state;
	size_t host = count_lines(world->mounts);
	size_t own = count_own_mounts();
	struct machine *machine = plain_machine(world);

	expect(machine, "sleep 1000 &", 0, "");
	assert_int_equal(count_lines(world->mounts), host);
	machine_close(machine);
	assert_int_equal(count_own_mounts(), own);
	assert_nothing_runs(world);
	assert_int_equal(count_entries(store_dirfd(world->store, STORE_MACHINES)), 0);
}

static void many_trees_stack(void **state)
{
	struct world *world = *state;
	struct digest trees[60] = {world->base};
	AUTO(machine) struct machine *machine = NULL;

	for (size_t i = 1; i < 60; i++) {
		char name[32];
		char text[16];
		int fd = new_tree(world, name);

		(void)snprintf(text, sizeof(text), "%zu\n", i);
		text_at(fd, "top", text);
		trees[i] = keep_tree(world, fd, name);
	}
	machine = open_machine(world, trees, 60, (struct machine_limits){0});
	expect(machine, "cat /top", 0, "59\n");
}

static int make_world(void **state)
{
	static struct world world;
	struct store_options options = {.path = world.dir, .create = true};
	struct err err = {0};

	(void)snprintf(world.dir, sizeof(world.dir), "/tmp/hearth-machine-test-%d", (int)getpid());
	world.mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (machine_enter_private(&err) < 0 || store_open(&options, &world.store, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	world.base = make_base(&world);
	*state = &world;
	return 0;
}

static int end_world(void **state)
{
	struct world *world = *state;

	store_close(world->store);
	(void)close(world->mounts);
	return nftw(world->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_runs_and_its_status_comes_back),
		cmocka_unit_test(what_cannot_be_executed_is_said),
		cmocka_unit_test(environment_directory_and_user_are_the_commands),
		cmocka_unit_test(files_have_natural_owners_on_disk),
		cmocka_unit_test(a_command_that_changes_nothing_leaves_nothing),
		cmocka_unit_test(resolv_conf_is_ours_and_leaves_no_trace),
		cmocka_unit_test(an_empty_root_runs_what_is_put_there),
		cmocka_unit_test(links_for_mount_points_are_refused),
		cmocka_unit_test(working_directories_outside_the_image_are_refused),
		cmocka_unit_test(a_child_sees_three_descriptors_and_its_own_processes),
		cmocka_unit_test(the_kernel_is_out_of_reach),
		cmocka_unit_test(another_user_has_no_capabilities),
		cmocka_unit_test(devices_of_an_image_do_not_open),
		cmocka_unit_test(processes_have_a_ceiling),
		cmocka_unit_test(memory_has_a_ceiling),
		cmocka_unit_test(processor_time_has_a_ceiling),
		cmocka_unit_test(a_command_reaches_the_operators_host),
		cmocka_unit_test(orphans_are_reaped_and_end_with_the_command),
		cmocka_unit_test(time_runs_out),
		cmocka_unit_test(cancelling_ends_background_children_too),
		cmocka_unit_test(machines_side_by_side_have_ids_of_their_own),
		cmocka_unit_test(a_child_writes_as_the_machines_root),
		cmocka_unit_test(the_lower_view_has_natural_owners_and_no_targets_of_ours),
		cmocka_unit_test(an_upper_directory_becomes_the_next_machines_tree),
		cmocka_unit_test(what_a_killed_owner_leaves_is_swept),
		cmocka_unit_test(nothing_is_left_and_the_host_sees_nothing),
		cmocka_unit_test(many_trees_stack),
	};
	struct err err;
	char path[256];

	if (argc == 3 && strcmp(argv[1], "owner") == 0)
		return own_forever(argv[2]);
	if (geteuid() != 0 || host_find_runtime(NULL, path, &err) < 0 ||
	    faccessat(AT_FDCWD, BUSYBOX, X_OK, 0) < 0)
		return 125;
	return cmocka_run_group_tests(tests, make_world, end_world);
}
