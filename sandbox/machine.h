/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - one machine: a root made of trees, an id range of its own, a
 * network, limits, and a command run in it by an OCI runtime.
 *
 * A build step and a sandbox differ only in what is asked of a machine. Its
 * root is an overlay of idmapped trees below an idmapped upper directory, so
 * that files on disk keep natural owners and the upper directory can become a
 * tree by rename.
 *
 * A machine is owned by one process, which has a mount namespace of its own
 * (machine_enter_private()). It leaves no trace but machines/<id>/, under a
 * flock, and one cgroup; a directory that can be locked has no owner any more,
 * and machine_sweep() removes all that is left of it.
 *
 * Threads: a machine is one thread's, and the process may have others that
 * were started in its mount namespace. While a root is mounted the calling
 * thread's fsuid and fsgid are the machine's. A command in an open network
 * starts threads that live until machine_close(). machine_as_root() forks: its
 * fn takes no lock that another thread may hold.
 *
 * Formats: OCI runtime-spec 1.1 (config.json).
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/base/proc.h"
#include "layers/base/secret.h"
#include "layers/store.h"
#include "layers/tree.h"
#include "sandbox/network.h"

#include <stdbool.h>

struct machine;

struct machine_limits {
	uint64_t memory_bytes; /* 0 for none, here and below */
	uint64_t cpu_millis;   /* 1,000 is one core */
	uint64_t pids;         /* 0 for MACHINE_PIDS_DEFAULT */
	uint64_t disk_bytes;   /* of what it writes in its root */
};

#define MACHINE_PIDS_DEFAULT 4096 /* a host has 32,768 by default, and must survive a fork bomb */

/*
 * Something mounted inside the root. Its target is found in the trees, links
 * followed; one that they do not have is there as long as the machine lives,
 * and never in its upper directory.
 */
enum machine_mount_kind {
	MACHINE_MOUNT_TREE,   /* the directory or file fd, with natural owners */
	MACHINE_MOUNT_TMPFS,  /* an empty one, 1777 */
	MACHINE_MOUNT_SECRET, /* a file in memory that nobody can write to */
};

struct machine_mount {
	enum machine_mount_kind kind;
	const char *target; /* absolute and clean */
	bool read_only;
	int fd;                      /* borrowed */
	uint64_t size;               /* of a tmpfs; 0 for the kernel's own limit */
	const struct secret *secret; /* borrowed; here and below */
	mode_t mode;
	uid_t uid; /* inside */
	gid_t gid;
};

struct machine_spec {
	struct store *store;
	const struct digest *diff_ids; /* bottom first; the same one may come again */
	size_t diff_id_count;
	enum network_mode network;
	const struct network_host *hosts; /* the operator's --add-host */
	size_t host_count;
	struct machine_limits limits;
	const struct machine_mount *mounts; /* parents first; borrowed for the machine's life */
	size_t mount_count;
	const char *runtime;    /* "crun", "runc", or a path; NULL for the first found */
	const char *agent_path; /* of hearth-agent, which is pid 1 of a step */
};

/*
 * Unshare mounts and make them private, once, before any thread: afterwards
 * nothing that is mounted here is seen by the host. What we mount ourselves
 * lies under /dev/shm, a fresh one. ERR_UNSUPPORTED unless root.
 */
int machine_enter_private(struct err *err) MUST_CHECK;

/*
 * A command will soon be run in some machine of this host: have the kernel do
 * now what that would wait for (cgroup_hasten()). The first call after a pause
 * blocks; others, some milliseconds apart, keep the effect.
 */
void machine_hasten(void);

/*
 * Allocate the id range and machines/<id>/, mount the root. No process yet.
 * ERR_LIMIT for more trees than overlayfs stacks, ERR_BUSY when no range is free,
 * ERR_REFUSED for a mount that has no place in the root.
 */
int machine_open(const struct machine_spec *spec, struct machine **out, struct err *err) MUST_CHECK;

struct machine_command {
	const char *const *argv; /* ends with NULL */
	const char *const *envp; /* ends with NULL */
	const char *cwd;         /* absolute inside; made by the caller if it must be */
	struct str user;         /* of the image: "", "name", "uid", "uid:gid", "name:group" */
	const char *hostname;
	int out_fd;         /* both standard output and error go here */
	int64_t timeout_ms; /* 0 for none */
	const struct cancel *cancel;
};

/*
 * Run a command to its end. *out_status is as a shell has it. On cancel and on
 * timeout: SIGTERM to all, MACHINE_GRACE_MS, SIGKILL to the cgroup. When this
 * returns no process of the machine is left. ERR_UNSUPPORTED where the host
 * lacks what is needed, ERR_REFUSED for an image whose /dev, /proc, /sys or
 * /etc is no directory or was removed.
 */
#define MACHINE_GRACE_MS 2000
int machine_run(struct machine *machine, const struct machine_command *command, int *out_status,
		struct err *err) MUST_CHECK;

/*
 * Whether a process of the last command was killed for want of memory, or could
 * not be started for want of pids: what may have made the command fail.
 */
bool machine_hit_memory(const struct machine *machine);
bool machine_hit_pids(const struct machine *machine);

/*
 * Whether its root is full to limits.disk_bytes. That may have changed what a
 * command did, whatever its status says.
 */
bool machine_hit_disk(const struct machine *machine);

/*
 * Why limits.disk_bytes is not enforced: this host lacks what that needs. NULL
 * where it is enforced, or where there is no limit.
 */
const char *machine_disk_unlimited(const struct machine *machine);

/*
 * Whether its upper directory is in a file system of its own, for that limit;
 * then it cannot be renamed to be a tree.
 */
bool machine_has_volume(const struct machine *machine);

/*
 * ERR_FULL where the disk has less than a MiB left for the machine: that may
 * have changed what a command did, whatever its status says. A disk that was
 * full only for a while is not noticed.
 */
int machine_check_room(const struct machine *machine, struct err *err) MUST_CHECK;

/* Whether its root has a directory there, links followed inside; before a command is run. */
bool machine_has_directory(const struct machine *machine, const char *path);

/* The first id of its range. */
uint32_t machine_first_id(const struct machine *machine);

/*
 * Call fn in a child whose fsuid and fsgid are the range's root, with the
 * capabilities that writing needs, umask 0. Its error is carried back. fn sees
 * no cancel that is raised later: the child is killed then, wherever it is. fn
 * must not touch the store. Owners that it sets are first_id more than the image's;
 * a file capability is set as version 3 with first_id as its root.
 */
typedef int machine_child_fn(void *ctx, int rootfd, struct err *err);
int machine_as_root(struct machine *machine, machine_child_fn *fn, void *ctx,
		    const struct cancel *cancel, struct err *err) MUST_CHECK;

/*
 * Unmount the root; only then may the upper directory be read as a diff and
 * become a tree. After it: the directory that holds `up`, borrowed.
 */
int machine_detach(struct machine *machine, int *out_dirfd, const char **out_name, struct err *err)
	MUST_CHECK;

/*
 * A read-only view of everything below the upper directory, natural owners;
 * -1 in *out_fd for a machine without trees. The caller closes it.
 */
int machine_lower_view(struct machine *machine, int *out_fd, struct err *err) MUST_CHECK;

/*
 * A read-only view of other trees than the machine's own: an image that it
 * reads and does not stand on. Owners are natural, or with `mapped` those that
 * the machine sees, as what is bound into it needs them. At least one tree; the
 * caller closes *out_fd.
 */
int machine_image_view(struct machine *machine, const struct digest *diff_ids, size_t count,
		       bool mapped, int *out_fd, struct err *err) MUST_CHECK;

/* Unmount, kill, remove all; never fails, and what is left is swept later. */
void machine_close(struct machine *machine);

/*
 * Clean what dead owners left: cgroups, processes, machines/<id>/. One that
 * cannot be ended is logged and left; only an unusable machines/ is a failure.
 */
int machine_sweep(struct store *store, struct err *err) MUST_CHECK;

DEFINE_AUTO(machine, struct machine *, machine_close);
