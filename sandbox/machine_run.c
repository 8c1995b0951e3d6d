/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_run.c - one command in a machine: what it needs beside the root is
 * mounted, its bundle is written, and the runtime runs it.
 */
#include "sandbox/machine_priv.h"

#include "layers/base/fd.h"
#include "sandbox/bundle_priv.h"
#include "sandbox/rootcheck_priv.h"
#include "sandbox/runtime_priv.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int machine_mount_agent(const struct machine *machine, struct err *err)
{
	auto_close int fd = (int)syscall(SYS_open_tree, AT_FDCWD, machine->agent_path,
					 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	auto_close int target =
		openat(machine->scratchfd, "agent", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	if (fd < 0)
		return err_os(err, errno, "open %s", machine->agent_path);
	if (target < 0)
		return err_os(err, errno, "make %s/agent", machine->scratch);
	if (syscall(SYS_move_mount, fd, "", machine->scratchfd, "agent", MOVE_MOUNT_F_EMPTY_PATH) <
	    0)
		return err_os(err, errno, "mount %s", machine->agent_path);
	return 0;
}

static int machine_mount_sysfs(const struct machine *machine, struct err *err)
{
	auto_close int fd = -1;

	if (network_sysfs(machine->network, &fd, err) < 0)
		return -1;
	if (mkdirat(machine->scratchfd, "sys", 0755) < 0 ||
	    syscall(SYS_move_mount, fd, "", machine->scratchfd, "sys", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_os(err, errno, "mount %s/sys", machine->scratch);
	return 0;
}

/* What only a command needs, made once, when the first one comes. */
static int machine_mount_extras(struct machine *machine, struct err *err)
{
	if (machine->has_extras)
		return 0;
	if (network_open(machine->network_mode, machine->hosts, machine->host_count,
			 &machine->network, err) < 0)
		return err_ctx(err, "network");
	if (machine_mount_sysfs(machine, err) < 0 || machine_mount_agent(machine, err) < 0)
		return -1;
	machine->has_extras = true;
	return network_serve(machine->network, err);
}

static int machine_write_config(const struct machine *machine, const struct bundle *bundle,
				int dirfd, struct err *err)
{
	auto_buf struct buf text = BUF_WIPED(BUNDLE_MAX);
	auto_close int fd = openat(dirfd, "config.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_os(err, errno, "make config.json in %s", machine->scratch);
	if (bundle_format(bundle, &text, err) < 0)
		return -1;
	return fd_write_all(fd, text.ptr, text.len, err);
}

/* The bundle lies in a directory of this run's own: no state of an earlier one is in the way. */
static int machine_make_bundle(struct machine *machine, const struct machine_command *command,
			       struct runtime *runtime, int *out_dirfd, struct err *err)
{
	auto_buf struct buf cwd = BUF_INIT(MACHINE_PATH_MAX + 4096);
	char root[MACHINE_PATH_MAX + 8];
	char sysfs[MACHINE_PATH_MAX + 8];
	char agent[MACHINE_PATH_MAX + 8];
	char netns[64];
	struct user user;
	struct bundle bundle = {.id = machine->slot.id,
				.root = root,
				.agent = agent,
				.sysfs = sysfs,
				.netns = netns,
				.user = &user,
				.first_id = machine->slot.first_id,
				.limits = &machine->limits,
				.mounts = machine->inner.mounts,
				.mount_count = machine->inner.count,
				.command = command};

	if (rootcheck_cwd(machine->rootfd, command->cwd, &cwd, err) < 0 ||
	    user_find_in_root(machine->rootfd, command->user, &user, err) < 0)
		return -1;
	bundle.cwd = cwd.ptr;
	(void)snprintf(root, sizeof(root), "%s/root", machine->scratch);
	(void)snprintf(sysfs, sizeof(sysfs), "%s/sys", machine->scratch);
	(void)snprintf(agent, sizeof(agent), "%s/agent", machine->scratch);
	(void)snprintf(netns, sizeof(netns), "/proc/%d/fd/%d", (int)getpid(),
		       network_nsfd(machine->network));
	if (mkdir(runtime->dir, 0700) < 0)
		return err_os(err, errno, "make %s", runtime->dir);
	*out_dirfd = open(runtime->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out_dirfd < 0)
		return err_os(err, errno, "open %s", runtime->dir);
	return machine_write_config(machine, &bundle, *out_dirfd, err);
}

int machine_run(struct machine *machine, const struct machine_command *command, int *out_status,
		struct err *err)
{
	char dir[MACHINE_PATH_MAX + 32];
	auto_close int dirfd = -1;
	struct report end;
	struct runtime runtime = {.path = machine->runtime,
				  .id = machine->slot.id,
				  .dir = dir,
				  .out_fd = command->out_fd,
				  .timeout_ms = command->timeout_ms,
				  .grace_ms = MACHINE_GRACE_MS,
				  .cancel = command->cancel};

	assert(machine->rootfd >= 0);
	(void)snprintf(dir, sizeof(dir), "%s/run%u", machine->scratch, machine->runs++);
	if (rootcheck_mounts(machine->rootfd, err) < 0 || machine_mount_extras(machine, err) < 0 ||
	    etc_mount(&machine->etc, network_resolv_conf(machine->network),
		      str_of(command->hostname), err) < 0 ||
	    inner_mount(&machine->inner, machine->rootfd, err) < 0 ||
	    machine_make_bundle(machine, command, &runtime, &dirfd, err) < 0)
		return -1;
	runtime.dirfd = dirfd;
	if (runtime_run(&runtime, &end, err) < 0)
		return -1;
	machine->limits_hit = end.limits;
	*out_status = end.value;
	return 0;
}

bool machine_hit_memory(const struct machine *machine)
{
	return machine->limits.memory_bytes > 0 && (machine->limits_hit & REPORT_LIMIT_MEMORY);
}

bool machine_hit_pids(const struct machine *machine)
{
	return machine->limits_hit & REPORT_LIMIT_PIDS;
}
