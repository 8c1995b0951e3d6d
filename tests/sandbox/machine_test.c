/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_test.c - what a machine does, from opening to sweeping.
 *
 * The first argument, if there is one, is a role: "owner DIR" opens a machine
 * of DIR's store, runs a command that never ends, and is killed by a test.
 */
#include "sandbox/userns_priv.h"
#include "tests/layers/adopting.h"
#include "tests/sandbox/rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static void a_command_runs_and_its_status_comes_back(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine, "true", 0, "");
	rig_expect(machine, "echo out; echo err >&2; exit 7", 7, "out\nerr\n");
	rig_expect(machine, "kill -9 $$", 128 + SIGKILL, "");
	rig_expect(machine, "kill -TERM $$", 128 + SIGTERM, "");
}

static void what_cannot_be_executed_is_said(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	static const char *const missing[] = {"/bin/nope", NULL};
	static const char *const searched[] = {"nope", NULL};
	static const char *const data[] = {"/etc/passwd", NULL};
	struct done *done = rig_run(machine, (struct machine_command){.argv = missing});

	assert_int_equal(done->status, 127);
	assert_string_equal(done->output, "exec: /bin/nope: No such file or directory\n");
	test_free(done);
	done = rig_run(machine, (struct machine_command){.argv = searched});
	assert_int_equal(done->status, 127);
	test_free(done);
	done = rig_run(machine, (struct machine_command){.argv = data});
	assert_int_equal(done->status, 126);
	assert_string_equal(done->output, "exec: /etc/passwd: Permission denied\n");
	test_free(done);
}

static void environment_directory_and_user_are_the_commands(void **state)
{
	struct rig *rig = *state;
	static const char *const argv[] = {
		"sh", "-c", "pwd; id -u; id -g; id -G; echo $HOME $A; cat /etc/hostname", NULL};
	static const char *const env[] = {"PATH=/nowhere:/bin", "A=b c", NULL};
	AUTO(machine) struct machine *machine = rig_plain_machine(rig);
	struct done *done = rig_run(machine, (struct machine_command){.argv = argv,
								      .envp = env,
								      .cwd = "/etc/../etc",
								      .user = STR("app")});

	if (done->result < 0)
		fail_msg("%s", done->err.text);
	assert_string_equal(done->output, "/etc\n1000\n1001\n1001 50\n/home/app b c\nstep\n");
	test_free(done);
}

static void files_have_natural_owners_on_disk(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct stat st;
	int fd;

	rig_expect(machine, "touch /mine; touch /theirs; chown 1000:1001 /theirs; rm /etc/group", 0,
		   "");
	fd = rig_upper_of(machine);
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
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine, "true", 0, "");
	rig_assert_upper_empty(machine);
}

/* A tree on top of the base, in which resolv.conf is whatever the function makes. */
static void try_resolv_conf(struct rig *rig, void (*make)(int dirfd))
{
	struct digest trees[2] = {rig->base};
	char name[32];
	int fd = rig_new_tree(rig, name);
	AUTO(machine) struct machine *machine = NULL;

	make(fd);
	trees[1] = rig_keep_tree(rig, fd, name);
	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	rig_expect(machine, "cat /etc/resolv.conf /etc/hostname; echo x >/etc/resolv.conf", 0,
		   "step\n");
	rig_expect(machine,
		   "umount /etc/resolv.conf 2>/dev/null || rm /etc/resolv.conf 2>/dev/null", 1, "");
	machine_close(steal_ptr(&machine));

	machine = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	rig_expect(machine, "true", 0, "");
	fd = rig_upper_of(machine);
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
	rig_text_at(dirfd, "etc/resolv.conf", "nameserver 192.0.2.1\n");
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
	struct machine *machine = rig_open_machine(*state, NULL, 0, (struct machine_limits){0});
	static const char *const argv[] = {"/bin/true", NULL};
	struct err err = {0};
	int view = 0;
	struct done *done = rig_run(machine, (struct machine_command){.argv = argv});

	assert_int_equal(done->result, 0);
	assert_int_equal(done->status, 127);
	test_free(done);
	check_ok(machine_lower_view(machine, &view, &err), &err);
	assert_int_equal(view, -1);
	rig_assert_upper_empty(machine);
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
	struct rig *rig = *state;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct network_host host;
	struct machine_spec spec = {.store = rig->store,
				    .diff_ids = &rig->base,
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
	rig_expect(machine, "busybox wget -q -O - http://server.test/", 0, "hello\n");
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(close(listener), 0);
}

static void orphans_are_reaped_and_end_with_the_command(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);

	rig_expect(machine,
		   "i=0; while [ $i -lt 50 ]; do (true & true); i=$((i+1)); done;"
		   "n=99; while [ $n -gt 9 ]; do n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; "
		   "done; echo few",
		   0, "few\n");
	rig_expect(machine, "sleep 1000 & sleep 1000 & exit 3", 3, "");
	rig_assert_nothing_runs(*state);
}

static void time_runs_out(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & sleep 1000", NULL};
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct done *done =
		rig_run(machine, (struct machine_command){.argv = argv, .timeout_ms = 100});

	check_err(done->result, &done->err, ERR_TIMEOUT);
	test_free(done);
	rig_assert_nothing_runs(*state);
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

static void try_cancel(struct rig *rig, const char *script, const char *wanted)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	AUTO(machine) struct machine *machine = rig_plain_machine(rig);
	struct canceller canceller = {0};
	struct machine_command command = {
		.argv = argv, .envp = rig_env, .cwd = "/", .hostname = "step"};
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
	rig_assert_nothing_runs(rig);
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
	AUTO(machine) struct machine *one = rig_plain_machine(*state);
	AUTO(machine) struct machine *two = rig_plain_machine(*state);

	assert_int_not_equal(machine_first_id(one), machine_first_id(two));
	assert_true(machine_first_id(one) % USERNS_IDS == 0 && machine_first_id(one) >= USERNS_IDS);
	rig_expect(one, "echo one >/f", 0, "");
	rig_expect(two, "cat /f 2>/dev/null; cat /proc/self/uid_map >/dev/null", 0, "");
	rig_expect(one, "cat /f", 0, "one\n");
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
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct err err = {0};
	struct stat st;
	int fd;

	check_ok(machine_as_root(machine, write_as_root, machine, NULL, &err), &err);
	check_err(machine_as_root(machine, fail_as_root, NULL, NULL, &err), &err, ERR_NOT_FOUND);
	assert_string_equal(err.text, "no such source");
	rig_expect(machine, "ls -n /etc/new | (read m l u g r; echo $m $u $g)", 0,
		   "-rwsr-xr-x 1000 1001\n");
	fd = rig_upper_of(machine);
	assert_int_equal(fstatat(fd, "etc/new", &st, 0), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_mode & 07777, 04755);
	assert_int_equal(capability_size(fd, "etc/new"), 20); /* version 2, as in any image */
	assert_int_equal(close(fd), 0);
}

static void the_lower_view_has_natural_owners_and_no_targets_of_ours(void **state)
{
	AUTO(machine) struct machine *machine = rig_plain_machine(*state);
	struct err err = {0};
	struct stat st;
	int view;

	rig_expect(machine, "rm /etc/group", 0, "");
	assert_int_equal(close(rig_upper_of(machine)), 0);
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
	struct rig *rig = *state;
	AUTO(machine) struct machine *first = rig_plain_machine(rig);
	AUTO(machine) struct machine *second = NULL;
	struct digest trees[2] = {rig->base};
	struct err err = {0};
	const char *name;
	int dirfd;

	rig_expect(first, "echo kept >/kept; chown 7 /kept; rm /bin/id", 0, "");
	check_ok(machine_detach(first, &dirfd, &name, &err), &err);
	digest_of(STR("an upper directory"), &trees[1]);
	adopt_tree(rig->store, &trees[1], dirfd, name);
	machine_close(steal_ptr(&first));
	second = rig_open_machine(rig, trees, 2, (struct machine_limits){0});
	rig_expect(second,
		   "cat /kept; ls -n /kept | (read m l u r; echo $u); ls /bin/id 2>/dev/null", 1,
		   "kept\n7\n");
}

static void another_runtime_runs_the_same_machine(void **state)
{
	struct rig *rig = *state;
	struct machine_spec spec = {.store = rig->store,
				    .diff_ids = &rig->base,
				    .diff_id_count = 1,
				    .network = NETWORK_NONE,
				    .runtime = "runc",
				    .agent_path = AGENT_PATH};
	AUTO(machine) struct machine *machine = NULL;
	struct err err = {0};
	char path[256];

	if (host_find_runtime("runc", path, &err) < 0)
		skip();
	check_ok(machine_open(&spec, &machine, &err), &err);
	rig_expect(machine,
		   "while read k v; do case $k in CapBnd:|Seccomp:) echo $v;; esac; done "
		   "</proc/self/status; cat /etc/hostname; exit 4",
		   4, "00000000a00405fb\n2\nstep\n");
	rig_assert_upper_empty(machine);
	rig_assert_nothing_runs(rig);
}

static void a_runtime_that_fails_says_why(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine =
		rig_open_machine(rig, &rig->base, 1, (struct machine_limits){.memory_bytes = 1});
	struct done *done = rig_shell(machine, "true");

	check_err(done->result, &done->err, ERR_UNSUPPORTED);
	assert_non_null(strstr(done->err.text, "run"));
	test_free(done);
	rig_assert_nothing_runs(rig);
}

/* Its exit code is no result, whatever it is. */
static void a_runtime_that_starts_nothing_has_no_result(void **state)
{
	static const char *const liars[] = {"/bin/true", "/bin/false"};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(liars) / sizeof(liars[0]); i++) {
		struct machine_spec spec = {.store = rig->store,
					    .diff_ids = &rig->base,
					    .diff_id_count = 1,
					    .network = NETWORK_NONE,
					    .runtime = liars[i],
					    .agent_path = AGENT_PATH};
		AUTO(machine) struct machine *machine = NULL;
		struct done *done;
		struct err err = {0};

		check_ok(machine_open(&spec, &machine, &err), &err);
		done = rig_shell(machine, "echo lied");
		check_err(done->result, &done->err, ERR_UNSUPPORTED);
		assert_non_null(strstr(done->err.text, "started no command"));
		test_free(done);
	}
	rig_assert_nothing_runs(rig);
}

/* What it leaves when it is killed is swept with the machine. */
static void a_runtime_keeps_its_copies_beside_its_bundle(void **state)
{
	static const char script[] =
		"#!/bin/sh\ntest -e \"$_LIBCONTAINER_STATEDIR/config.json\" && echo beside\n";
	struct rig *rig = *state;
	char path[] = "/tmp/hearth-runtime-test-XXXXXX";
	struct machine_spec spec = {.store = rig->store,
				    .diff_ids = &rig->base,
				    .diff_id_count = 1,
				    .network = NETWORK_NONE,
				    .runtime = path,
				    .agent_path = AGENT_PATH};
	AUTO(machine) struct machine *machine = NULL;
	int fd = mkstemp(path);
	struct done *done;
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, script, strlen(script), &err), &err);
	assert_int_equal(fchmod(fd, 0700), 0);
	assert_int_equal(close(fd), 0);
	check_ok(machine_open(&spec, &machine, &err), &err);
	done = rig_shell(machine, "true");
	assert_int_equal(unlink(path), 0);
	assert_string_equal(done->output, "beside\n");
	test_free(done);
}

static void a_command_without_a_process_left_says_so(void **state)
{
	struct rig *rig = *state;
	AUTO(machine)
	struct machine *machine =
		rig_open_machine(rig, &rig->base, 1, (struct machine_limits){.pids = 1});
	struct done *done = rig_shell(machine, "true");

	assert_int_equal(done->result, -1);
	assert_non_null(strstr(done->err.text, "pids"));
	test_free(done);
	rig_assert_nothing_runs(rig);
}

static void a_command_cannot_write_its_own_report(void **state)
{
	struct rig *rig = *state;
	AUTO(machine) struct machine *machine = rig_plain_machine(rig);

	rig_expect(machine,
		   "for fd in /proc/self/fd/3 /proc/1/fd/3; do printf '\\002\\000' >$fd; done "
		   "2>/dev/null; exit 5",
		   5, "");
	rig_assert_nothing_runs(rig);
}

/* The role: a machine that runs until its owner is killed. */
static int own_forever(const char *dir)
{
	struct store_options options = {.path = dir, .map_bytes = RIG_MAP};
	static const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & echo ready; wait", NULL};
	struct rig rig = {0};
	struct err err = {0};
	struct machine_command command = {
		.argv = argv, .envp = rig_env, .cwd = "/", .hostname = "step", .out_fd = 1};
	struct machine_spec spec = {.diff_ids = &rig.base,
				    .diff_id_count = 1,
				    .network = NETWORK_NONE,
				    .agent_path = AGENT_PATH};
	struct machine *machine;
	int status;

	digest_of(STR("tree0"), &rig.base);
	if (store_open(&options, &rig.store, &err) < 0 || machine_enter_private(&err) < 0)
		return 1;
	spec.store = rig.store;
	if (machine_open(&spec, &machine, &err) < 0 ||
	    machine_run(machine, &command, &status, &err) < 0)
		(void)dprintf(1, "%s\n", err.text);
	return 1;
}

static void what_a_killed_owner_leaves_is_swept(void **state)
{
	struct rig *rig = *state;
	const char *const argv[] = {"machine_test", "owner", rig->dir, NULL};
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
	check_ok(machine_sweep(rig->store, &err), &err);
	assert_int_equal(rig_count_processes(rig), 3); /* init, sh, sleep */
	proc_done(&proc);
	check_ok(machine_sweep(rig->store, &err), &err);
	rig_assert_nothing_runs(rig);
	assert_int_equal(rig_count_entries(store_dirfd(rig->store, STORE_MACHINES)), 0);
	assert_int_equal(read(fds[0], said, sizeof(said)), 0); /* nobody holds its output */
	assert_int_equal(close(fds[0]), 0);
}

/* What a mount lies on cannot be moved away. */
static void one_that_stays_keeps_no_other_from_being_swept(void **state)
{
	struct rig *rig = *state;
	int machinesfd = store_dirfd(rig->store, STORE_MACHINES);
	char path[128];
	struct err err = {0};

	(void)snprintf(path, sizeof(path), "%s/machines/001", rig->dir);
	for (int i = 0; i < 3; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "%03x", i);
		assert_int_equal(mkdirat(machinesfd, name, 0700), 0);
	}
	rig_text_at(machinesfd, "file", "no machine");
	assert_int_equal(mount("tmpfs", path, "tmpfs", 0, NULL), 0);
	check_ok(machine_sweep(rig->store, &err), &err);
	assert_int_equal(rig_count_entries(machinesfd), 2);
	assert_int_equal(umount2(path, UMOUNT_NOFOLLOW), 0);
	check_ok(machine_sweep(rig->store, &err), &err);
	assert_int_equal(faccessat(machinesfd, "001", F_OK, 0), -1);
	assert_int_equal(unlinkat(machinesfd, "file", 0), 0);
	assert_int_equal(rig_count_entries(machinesfd), 0);
}

static void nothing_is_left_and_the_host_sees_nothing(void **state)
{
	struct rig *rig = *state;
	size_t host = rig_count_lines(rig->mounts);
	size_t own = rig_count_own_mounts();
	struct machine *machine = rig_plain_machine(rig);

	rig_expect(machine, "sleep 1000 &", 0, "");
	assert_int_equal(rig_count_lines(rig->mounts), host);
	machine_close(machine);
	assert_int_equal(rig_count_own_mounts(), own);
	rig_assert_nothing_runs(rig);
	assert_int_equal(rig_count_entries(store_dirfd(rig->store, STORE_MACHINES)), 0);
}

static void many_trees_stack(void **state)
{
	struct rig *rig = *state;
	struct digest trees[60] = {rig->base};
	AUTO(machine) struct machine *machine = NULL;

	for (size_t i = 1; i < 60; i++) {
		char name[32];
		char text[16];
		int fd = rig_new_tree(rig, name);

		(void)snprintf(text, sizeof(text), "%zu\n", i);
		rig_text_at(fd, "top", text);
		trees[i] = rig_keep_tree(rig, fd, name);
	}
	machine = rig_open_machine(rig, trees, 60, (struct machine_limits){0});
	rig_expect(machine, "cat /top", 0, "59\n");
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
		cmocka_unit_test(a_command_reaches_the_operators_host),
		cmocka_unit_test(orphans_are_reaped_and_end_with_the_command),
		cmocka_unit_test(time_runs_out),
		cmocka_unit_test(cancelling_ends_background_children_too),
		cmocka_unit_test(machines_side_by_side_have_ids_of_their_own),
		cmocka_unit_test(a_child_writes_as_the_machines_root),
		cmocka_unit_test(the_lower_view_has_natural_owners_and_no_targets_of_ours),
		cmocka_unit_test(an_upper_directory_becomes_the_next_machines_tree),
		cmocka_unit_test(another_runtime_runs_the_same_machine),
		cmocka_unit_test(a_runtime_that_fails_says_why),
		cmocka_unit_test(a_runtime_that_starts_nothing_has_no_result),
		cmocka_unit_test(a_runtime_keeps_its_copies_beside_its_bundle),
		cmocka_unit_test(a_command_without_a_process_left_says_so),
		cmocka_unit_test(a_command_cannot_write_its_own_report),
		cmocka_unit_test(what_a_killed_owner_leaves_is_swept),
		cmocka_unit_test(one_that_stays_keeps_no_other_from_being_swept),
		cmocka_unit_test(nothing_is_left_and_the_host_sees_nothing),
		cmocka_unit_test(many_trees_stack),
	};

	if (argc == 3 && strcmp(argv[1], "owner") == 0)
		return own_forever(argv[2]);
	if (!rig_is_possible())
		return RIG_SKIP;
	return cmocka_run_group_tests(tests, rig_make, rig_end);
}
