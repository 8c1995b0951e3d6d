/* SPDX-License-Identifier: Apache-2.0 */
/* host_examine.c - the checks of `hearth doctor`, each with what to do about it. */
#include "sandbox/host.h"

#include "layers/base/fd.h"
#include "layers/base/proc.h"
#include "sandbox/cgroup_priv.h"
#include "sandbox/child_priv.h"
#include "sandbox/etc_priv.h"
#include "sandbox/machine.h"
#include "sandbox/stack_priv.h"
#include "sandbox/userns_priv.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define HOST_FREE_BYTES_LOW ((uint64_t)5 << 30)
#define HOST_FILES_LOW 4096
#define HOST_VERSION_MS 5000
#define HOST_XFS_MAGIC 0x58465342
#define HOST_DEPTH_MAX 16 /* of what the trial mount leaves */

struct host_list {
	struct host_check *checks;
	size_t count;
};

static struct host_check *host_add(struct host_list *list, const char *name)
{
	struct host_check *check = &list->checks[list->count];

	if (list->count < HOST_CHECKS_MAX - 1)
		list->count++;
	*check = (struct host_check){.name = name};
	return check;
}

static void host_say(struct host_check *check, enum host_verdict verdict, const char *advice)
{
	check->verdict = verdict;
	(void)snprintf(check->advice, sizeof(check->advice), "%s", advice);
}

/* The verdict on a trial: it worked, or its own words and what to do. */
static void host_judge(struct host_check *check, int result, const struct err *err,
		       const char *advice)
{
	(void)snprintf(check->found, sizeof(check->found), "%.150s",
		       result < 0 ? err->text : "works");
	if (result < 0)
		host_say(check, HOST_FAIL, advice);
}

/* "6.1.0-13-amd64" is 6, 1, 0; what is missing is 0. */
static void host_parse_version(struct str text, uint64_t out[static 3])
{
	struct str part;

	for (size_t i = 0; i < 3; i++) {
		out[i] = 0;
		if (str_cut(&text, '.', &part) && !str_take_number(&part, &out[i]))
			out[i] = 0;
	}
}

static void host_examine_kernel(struct host_list *list)
{
	struct host_check *check = host_add(list, "kernel");
	struct utsname names = {0};
	uint64_t version[3];

	(void)uname(&names);
	host_parse_version(str_of(names.release), version);
	(void)snprintf(check->found, sizeof(check->found), "%.64s", names.release);
	if (version[0] < 6 || (version[0] == 6 && version[1] < 1))
		host_say(check, HOST_FAIL, "Linux 6.1 or later is needed, 6.13 or later is best");
	else if (version[0] == 6 && version[1] < 13)
		host_say(check, HOST_WARN,
			 "before Linux 6.13 an image has about 200 layers at most");
}

static void host_examine_user(struct host_list *list)
{
	struct host_check *check = host_add(list, "user");

	(void)snprintf(check->found, sizeof(check->found), "uid %u", (unsigned)geteuid());
	if (geteuid() != 0)
		host_say(check, HOST_FAIL,
			 "run bakes as root: they mount, map ids and make networks");
}

static int host_try_user_namespace(void *ctx, struct err *err)
{
	auto_close int fd = userns_open(USERNS_FIRST, err);

	(void)ctx;
	return fd < 0 ? -1 : 0;
}

/* Remove dirfd/name and what is in it; nobody else knows the name. */
static void host_remove(int dirfd, const char *name, int depth)
{
	auto_close int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err ignored;

	if (fd < 0 || depth == 0 || fd_open_dir(fd, ".", &dir, &ignored) < 0)
		return;
	while ((entry = readdir(dir))) {
		if (fd_is_dots(entry->d_name))
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0)
			host_remove(fd, entry->d_name, depth - 1);
	}
	(void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* A machine's root without trees, in a mount namespace that ends with this child. */
static int host_mount_trial(void *ctx, struct err *err)
{
	const char *path = ctx;
	struct stack stack = {.treesfd = -1, .first_id = USERNS_FIRST};
	auto_close int ownfd = -1;
	auto_close int scratchfd = -1;
	auto_close int basefd = -1;

	if (machine_enter_private(err) < 0)
		return -1;
	ownfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scratchfd = open("/dev/shm/machines", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ownfd < 0 || scratchfd < 0)
		return err_os(err, errno, "open %s", path);
	basefd = etc_open_base(ownfd, err);
	if (basefd < 0)
		return -1;
	if (mkdirat(ownfd, "up", 0755) < 0 || mkdirat(ownfd, "work", 0700) < 0)
		return err_os(err, errno, "make %s/up", path);
	stack.basefd = basefd;
	stack.ownfd = ownfd;
	stack.scratchfd = scratchfd;
	return stack_mount(&stack, err);
}

/* The data directory where it exists, else the one that would hold it. */
static void host_existing_dir(const char *data_dir, char path[static 4096])
{
	struct stat st;
	char *slash;

	(void)snprintf(path, 4096, "%s", data_dir);
	while (stat(path, &st) < 0 && (slash = strrchr(path, '/')) && slash != path)
		*slash = '\0';
}

static void host_examine_overlay(struct host_list *list, const char *data_dir)
{
	struct host_check *check = host_add(list, "overlayfs");
	char dir[4096];
	char path[4200];
	struct err err = {0};
	int result;

	host_existing_dir(data_dir, dir);
	(void)snprintf(path, sizeof(path), "%s/.hearth-trial-%d", dir, (int)getpid());
	if (mkdir(path, 0700) < 0) {
		result = err_os(&err, errno, "make %.60s", path);
	} else {
		result = child_call(host_mount_trial, path, NULL, &err);
		host_remove(AT_FDCWD, path, HOST_DEPTH_MAX);
	}
	host_judge(check, result, &err,
		   result < 0 && err.kind == ERR_FULL
			   ? "make room for the data directory"
			   : "bakes stack id-mapped layers with overlayfs: use ext4 or xfs, Linux "
			     "6.1 or later");
}

static int host_try_network(void *ctx, struct err *err)
{
	AUTO(network) struct network *network = NULL;

	(void)ctx;
	return network_open(NETWORK_OPEN, NULL, 0, &network, err);
}

/* The number behind "version" in the runtime's own words. */
static int host_read_version(const char *path, char version[static 64], struct err *err)
{
	const char *const argv[] = {path, "--version", NULL};
	auto_proc struct proc proc = PROC_INIT;
	auto_close int readfd = -1;
	auto_close int writefd = -1;
	char text[512] = "";
	int status;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_os(err, errno, "make a pipe");
	readfd = fds[0];
	writefd = fds[1];
	if (proc_spawn(&(struct proc_spec){.path = path,
					   .argv = argv,
					   .fds = {-1, writefd, -1},
					   .fd_count = 3,
					   .die_with_parent = true},
		       &proc, err) < 0 ||
	    proc_wait(&proc, HOST_VERSION_MS, NULL, &status, err) < 0)
		return -1;
	if (read(readfd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%*s version %63[^\n]", version) != 1)
		return err_set(err, ERR_UNSUPPORTED, "%s does not say its version", path);
	return 0;
}

/* The first releases without a known way out of a container. */
static bool host_is_old(const char *path, const char *version)
{
	uint64_t v[3];

	host_parse_version(str_of(version), v);
	if (strstr(path, "crun"))
		return v[0] < 1 || (v[0] == 1 && v[1] < 28);
	if (!strstr(path, "runc"))
		return false;
	if (v[0] != 1 || v[1] > 4)
		return v[0] < 1;
	return v[1] < 3 || (v[1] == 3 && v[2] < 6) || (v[1] == 4 && v[2] < 3);
}

static void host_examine_runtime(struct host_list *list)
{
	struct host_check *check = host_add(list, "runtime");
	char path[256];
	char version[64];
	struct err err = {0};

	if (host_find_runtime(NULL, path, &err) < 0 || host_read_version(path, version, &err) < 0) {
		host_judge(check, -1, &err, "install crun (or runc)");
		return;
	}
	(void)snprintf(check->found, sizeof(check->found), "%.80s %.63s", path, version);
	if (host_is_old(path, version))
		host_say(check, HOST_WARN,
			 "older than crun 1.28 and runc 1.3.6: keep your distribution's security "
			 "updates installed");
}

static void host_examine_cgroups(struct host_list *list)
{
	static const char *const modes[] = {[HOST_CGROUPS_NONE] = "none",
					    [HOST_CGROUPS_V1] = "version 1",
					    [HOST_CGROUPS_V2] = "version 2",
					    [HOST_CGROUPS_HYBRID] = "hybrid, version 1 is used"};
	/* Each machine has a limit of processes, the others only where they are asked for. */
	static const struct {
		const char *name;
		enum host_verdict verdict;
	} wanted[] = {{"pids", HOST_FAIL}, {"memory", HOST_WARN}, {"cpu", HOST_WARN}};
	struct host_check *check = host_add(list, "cgroups");
	enum host_cgroups mode = host_cgroups();
	struct err ignored;
	auto_close int rootfd = cgroup_open_root(&ignored);

	(void)snprintf(check->found, sizeof(check->found), "%s", modes[mode]);
	if (mode == HOST_CGROUPS_NONE) {
		host_say(check, HOST_FAIL, "mount cgroups at /sys/fs/cgroup");
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (cgroup_has_controller(rootfd, wanted[i].name))
			continue;
		host_say(check, wanted[i].verdict, "");
		(void)snprintf(check->advice, sizeof(check->advice),
			       "the %s controller is missing, its limit cannot be kept",
			       wanted[i].name);
		return;
	}
}

static const char *host_file_system(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs) < 0)
		return "unknown";
	if (fs.f_type == EXT4_SUPER_MAGIC)
		return "ext4";
	if (fs.f_type == HOST_XFS_MAGIC)
		return "xfs";
	if (fs.f_type == TMPFS_MAGIC)
		return "tmpfs";
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return "overlayfs";
	return fs.f_type == BTRFS_SUPER_MAGIC ? "btrfs" : "another";
}

static void host_examine_disk(struct host_list *list, const char *data_dir)
{
	struct host_check *check = host_add(list, "data directory");
	const char *type;
	struct statvfs fs;
	uint64_t bytes;
	char dir[4096];

	host_existing_dir(data_dir, dir);
	type = host_file_system(dir);
	if (statvfs(dir, &fs) < 0) {
		(void)snprintf(check->found, sizeof(check->found), "%.80s: not there", dir);
		host_say(check, HOST_FAIL, "make its parent directory");
		return;
	}
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	(void)snprintf(check->found, sizeof(check->found), "%.80s: %s file system, %.1f GiB free",
		       data_dir, type, (double)bytes / (1 << 30));
	if (bytes < HOST_FREE_BYTES_LOW)
		host_say(check, HOST_WARN, "less than 5 GiB is soon full");
	else if (strcmp(type, "ext4") != 0 && strcmp(type, "xfs") != 0)
		host_say(check, HOST_WARN, "ext4 and xfs are what is tested");
}

static void host_examine_files(struct host_list *list)
{
	struct host_check *check = host_add(list, "open files");
	struct rlimit files = {0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	(void)snprintf(check->found, sizeof(check->found), "%ju, at most %ju",
		       (uintmax_t)files.rlim_cur, (uintmax_t)files.rlim_max);
	if (files.rlim_max < HOST_FILES_LOW)
		host_say(check, HOST_WARN, "images of many layers need more: raise `ulimit -n`");
}

static void host_examine_ids(struct host_list *list)
{
	struct host_check *check = host_add(list, "id ranges");
	unsigned available = userns_count_free();

	(void)snprintf(check->found, sizeof(check->found), "%u of %u above %u", available,
		       USERNS_SLOTS, USERNS_FIRST);
	if (available == 0)
		host_say(check, HOST_FAIL,
			 "give less of the ids away in /etc/subuid and /etc/subgid");
}

size_t host_examine(const char *data_dir, struct host_check checks[static HOST_CHECKS_MAX])
{
	struct host_list list = {.checks = checks};
	struct err err = {0};
	int result;

	host_examine_kernel(&list);
	host_examine_user(&list);
	result = child_call(host_try_user_namespace, NULL, NULL, &err);
	host_judge(host_add(&list, "user namespaces"), result, &err,
		   "allow them: user.max_user_namespaces must not be 0");
	host_examine_overlay(&list, data_dir);
	result = child_call(host_try_network, NULL, NULL, &err);
	host_judge(host_add(&list, "networks"), result, &err,
		   "bakes need network namespaces and nftables with tproxy (nft_tproxy)");
	host_examine_runtime(&list);
	host_examine_cgroups(&list);
	host_examine_disk(&list, data_dir);
	host_examine_files(&list);
	host_examine_ids(&list);
	return list.count;
}
