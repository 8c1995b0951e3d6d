/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sandbox/rig.h"

#include "tests/layers/adopting.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define BUSYBOX "/usr/bin/busybox"

const char *const rig_env[] = {"PATH=/bin", NULL};

static int rig_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

void rig_text_at(int dirfd, const char *name, const char *text)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

int rig_new_tree(struct rig *rig, char name[32])
{
	int tmp = store_dirfd(rig->store, STORE_TMP);
	int fd;

	(void)snprintf(name, 32, "tree%u", rig->trees++);
	assert_int_equal(mkdirat(tmp, name, 0755), 0);
	fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

struct digest rig_keep_tree(struct rig *rig, int fd, const char *name)
{
	struct digest digest;

	assert_int_equal(close(fd), 0);
	digest_of(str_of(name), &digest);
	adopt_tree(rig->store, &digest, store_dirfd(rig->store, STORE_TMP), name);
	return digest;
}

static void rig_copy_busybox(int dirfd)
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

static struct digest rig_make_base(struct rig *rig)
{
	static const char *const links[] = {"sh",  "id",    "cat",   "true",   "sleep", "ls",
					    "env", "touch", "chown", "rm",     "mknod", "dd",
					    "pwd", "kill",  "mount", "umount", "chmod"};
	char name[32];
	int fd = rig_new_tree(rig, name);

	assert_int_equal(mkdirat(fd, "bin", 0755), 0);
	assert_int_equal(mkdirat(fd, "etc", 0755), 0);
	rig_copy_busybox(fd);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "bin/%s", links[i]);
		assert_int_equal(symlinkat("busybox", fd, path), 0);
	}
	rig_text_at(fd, "etc/passwd",
		    "root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n");
	rig_text_at(fd, "etc/group", "root:x:0:\napp:x:1001:\nstaff:x:50:app\n");
	return rig_keep_tree(rig, fd, name);
}

struct machine *rig_open_machine(struct rig *rig, const struct digest *trees, size_t count,
				 struct machine_limits limits)
{
	struct machine_spec spec = {.store = rig->store,
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

struct machine *rig_plain_machine(struct rig *rig)
{
	return rig_open_machine(rig, &rig->base, 1, (struct machine_limits){0});
}

struct done *rig_run(struct machine *machine, struct machine_command command)
{
	struct done *done = test_calloc(1, sizeof(*done));
	int fd = memfd_create("output", MFD_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	command.envp = command.envp ? command.envp : rig_env;
	command.cwd = command.cwd ? command.cwd : "/";
	command.hostname = "step";
	command.out_fd = fd;
	done->result = machine_run(machine, &command, &done->status, &done->err);
	n = pread(fd, done->output, sizeof(done->output) - 1, 0);
	assert_true(n >= 0);
	assert_int_equal(close(fd), 0);
	return done;
}

struct done *rig_shell(struct machine *machine, const char *script)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};

	return rig_run(machine, (struct machine_command){.argv = argv});
}

void rig_expect(struct machine *machine, const char *script, int status, const char *output)
{
	struct done *done = rig_shell(machine, script);

	if (done->result < 0)
		fail_msg("%s", done->err.text);
	assert_string_equal(done->output, output);
	assert_int_equal(done->status, status);
	test_free(done);
}

size_t rig_count_entries(int dirfd)
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

int rig_upper_of(struct machine *machine)
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

void rig_assert_upper_empty(struct machine *machine)
{
	int fd = rig_upper_of(machine);
	char names[256];

	assert_int_equal(rig_count_entries(fd), 0);
	assert_int_equal(flistxattr(fd, names, sizeof(names)), 0);
	assert_int_equal(close(fd), 0);
}

/* What every id of this store's machines begins with. */
static void rig_id_prefix(const struct rig *rig, char prefix[64])
{
	struct stat st;

	assert_int_equal(fstat(store_dirfd(rig->store, STORE_MACHINES), &st), 0);
	(void)snprintf(prefix, 64, "hearth-%jx-%jx-", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

static size_t rig_count_cgroups_in(const char *path, const char *prefix)
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
static size_t rig_count_cgroups(const struct rig *rig)
{
	DIR *dir = opendir("/sys/fs/cgroup");
	const struct dirent *entry;
	char path[PATH_MAX];
	char prefix[64];
	size_t count;

	rig_id_prefix(rig, prefix);
	count = rig_count_cgroups_in("/sys/fs/cgroup", prefix);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "unified") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", entry->d_name);
		count += rig_count_cgroups_in(path, prefix);
	}
	assert_int_equal(closedir(dir), 0);
	return count;
}

size_t rig_count_processes(const struct rig *rig)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	char prefix[64];
	size_t count = 0;

	rig_id_prefix(rig, prefix);
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

void rig_assert_nothing_runs(const struct rig *rig)
{
	assert_int_equal(rig_count_processes(rig), 0);
	assert_int_equal(rig_count_cgroups(rig), 0);
}

size_t rig_count_lines(int fd)
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

size_t rig_count_own_mounts(void)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t count = rig_count_lines(fd);

	assert_int_equal(close(fd), 0);
	return count;
}

int rig_make(void **state)
{
	static struct rig rig;
	struct store_options options = {.path = rig.dir, .map_bytes = RIG_MAP, .create = true};
	struct err err = {0};

	(void)snprintf(rig.dir, sizeof(rig.dir), "/tmp/hearth-machine-test-%d", (int)getpid());
	rig.mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (machine_enter_private(&err) < 0 || store_open(&options, &rig.store, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	rig.base = rig_make_base(&rig);
	*state = &rig;
	return 0;
}

int rig_end(void **state)
{
	struct rig *rig = *state;

	store_close(rig->store);
	(void)close(rig->mounts);
	return nftw(rig->dir, rig_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool rig_is_possible(void)
{
	char path[256];
	struct err err;

	return geteuid() == 0 && host_find_runtime(NULL, path, &err) == 0 &&
	       faccessat(AT_FDCWD, BUSYBOX, X_OK, 0) == 0;
}
