/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - a machine's life.
 *
 *	                made by          on disk                     mounted (privately)
 *	1 claimed       machine_open     machines/<slot>/ + flock    -
 *	2 ready         machine_open     ... up/ work/               /dev/shm/<id>/root
 *	                                 or a file without a name    ... and volume, with up/ work/
 *	3 running       machine_run      ... and a cgroup <id>       ... and sysfs, the agent, /etc
 *	2 again         machine_run      ... without the cgroup
 *	4 detached      machine_detach   ... up/ is a difference     -
 *	gone            machine_close    -                           -
 *
 * An owner that is killed loses its mounts with its namespace, its runtime by
 * the parent's death, the container by the runtime's; machine_sweep() ends
 * what is left of the cgroup and removes the directory.
 */
#include "sandbox/machine_priv.h"

#define LOG_MODULE "sandbox"
#include "layers/base/fd.h"
#include "layers/base/log.h"
#include "layers/base/path.h"
#include "layers/base/room.h"
#include "sandbox/cgroup_priv.h"
#include "sandbox/child_priv.h"
#include "sandbox/host.h"
#include "sandbox/volume_priv.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/*
 * Where we mount: the data directory is closed to the machine's ids, and this
 * is a directory that every host has and no path of a user leads through.
 */
#define MACHINE_SCRATCH "/dev/shm"
#define MACHINE_CGROUPS_MAX ((size_t)64 * 1024) /* of /proc/self/cgroup */
#define MACHINE_IDLE_MS 5000                    /* for mounts of a container that has just ended */

/* A hybrid host's empty version 2 hierarchy makes crun refuse; behind a tmpfs it is not seen. */
static int machine_hide_unified(struct err *err)
{
	if (host_cgroups() != HOST_CGROUPS_HYBRID)
		return 0;
	if (mount("tmpfs", "/sys/fs/cgroup/unified", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=1m") < 0)
		return err_os(err, errno, "hide /sys/fs/cgroup/unified");
	return 0;
}

int machine_enter_private(struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "machines need root: run as root, or with sudo");
	if (unshare(CLONE_NEWNS) < 0)
		return err_os(err, errno, "make a private mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_os(err, errno, "make mounts private");
	if (mount("tmpfs", MACHINE_SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0 ||
	    mkdir(MACHINE_SCRATCH "/machines", 0755) < 0)
		return err_os(err, errno, "mount %s", MACHINE_SCRATCH);
	return machine_hide_unified(err);
}

void machine_hasten(void)
{
	auto_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	auto_buf struct buf own = BUF_INIT(MACHINE_CGROUPS_MAX);
	struct err ignored;
	auto_close int rootfd = cgroup_open_root(&ignored);

	if (fd < 0 || rootfd < 0 || fd_read_all(fd, &own, &ignored) < 0)
		return;
	if (!cgroup_hasten(rootfd, buf_str(&own)))
		log_debug("no cgroup of our own to write to");
}

static int machine_copy_spec(struct machine *machine, const struct machine_spec *spec,
			     struct err *err)
{
	if (spec->diff_id_count > STACK_TREES_MAX || spec->host_count > NETWORK_HOSTS_MAX)
		return err_set(err, ERR_LIMIT, "%zu layers and %zu hosts, of at most %d and %d",
			       spec->diff_id_count, spec->host_count, STACK_TREES_MAX,
			       NETWORK_HOSTS_MAX);
	machine->store = spec->store;
	machine->network_mode = spec->network;
	machine->limits = spec->limits;
	machine->host_count = spec->host_count;
	inner_init(&machine->inner, spec->mounts, spec->mount_count);
	machine->hosts = calloc(spec->host_count + 1, sizeof(*machine->hosts));
	machine->diff_ids = calloc(spec->diff_id_count + 1, sizeof(*machine->diff_ids));
	machine->agent_path = strdup(spec->agent_path);
	if (!machine->hosts || !machine->diff_ids || !machine->agent_path)
		abort();
	if (spec->host_count > 0)
		memcpy(machine->hosts, spec->hosts, spec->host_count * sizeof(*spec->hosts));
	if (spec->diff_id_count > 0)
		memcpy(machine->diff_ids, spec->diff_ids,
		       spec->diff_id_count * sizeof(*spec->diff_ids));
	machine->diff_id_count = stack_distinct(machine->diff_ids, spec->diff_id_count);
	return host_find_runtime(spec->runtime, machine->runtime, err);
}

static int machine_open_dir(const struct store *store, const char *name, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	int fd;

	if (buf_addf(&path, err, "%s/%s", store_path(store), name) < 0)
		return -1;
	fd = open(path.ptr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_os(err, errno, "open %s", path.ptr) : fd;
}

static int machine_claim(struct machine *machine, struct err *err)
{
	auto_close int runfd = -1;

	machine->machinesfd = machine_open_dir(machine->store, "machines", err);
	if (machine->machinesfd < 0)
		return -1;
	machine->treesfd = machine_open_dir(machine->store, "trees", err);
	if (machine->treesfd < 0)
		return -1;
	runfd = machine_open_dir(machine->store, "run", err);
	if (runfd < 0)
		return -1;
	machine->basefd = etc_open_base(runfd, err);
	if (machine->basefd < 0)
		return -1;
	return slot_claim(machine->machinesfd, &machine->slot, err);
}

/* Mount it so that it is not swapped out, where the kernel can (6.4): secrets lie there. */
static int machine_mount_memory(const char *path)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV;

	if (mount("tmpfs", path, "tmpfs", flags, "mode=0755,noswap") == 0)
		return 0;
	return mount("tmpfs", path, "tmpfs", flags, "mode=0755");
}

static int machine_mount_scratch(struct machine *machine, struct err *err)
{
	struct stat st;

	if (stat(MACHINE_SCRATCH "/machines", &st) < 0)
		return err_set(err, ERR_CONFLICT, "not in a private mount namespace");
	(void)snprintf(machine->scratch, sizeof(machine->scratch), MACHINE_SCRATCH "/machines/%s",
		       machine->slot.id);
	if (mkdir(machine->scratch, 0755) < 0 || machine_mount_memory(machine->scratch) < 0)
		return err_os(err, errno, "mount %s", machine->scratch);
	machine->scratchfd =
		open(machine->scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (machine->scratchfd < 0)
		return err_os(err, errno, "open %s", machine->scratch);
	return 0;
}

/* A limit above the disk's size needs no volume. */
static bool machine_wants_volume(const struct machine *machine)
{
	struct statvfs fs;

	return machine->limits.disk_bytes > 0 && fstatvfs(machine->slot.dirfd, &fs) == 0 &&
	       machine->limits.disk_bytes / fs.f_frsize < fs.f_blocks;
}

static int machine_mount_volume(struct machine *machine, struct err *err)
{
	if (!machine_wants_volume(machine))
		return 0;
	machine->volumefd = volume_mount(machine->slot.dirfd, machine->limits.disk_bytes,
					 machine->scratchfd, err);
	if (machine->volumefd >= 0)
		return 0;
	if (err->kind != ERR_UNSUPPORTED)
		return err_ctx(err, "a disk of limited size");
	machine->unlimited = *err;
	return 0;
}

/* What holds up/, work/ and all else that the stack makes. */
static int machine_ownfd(const struct machine *machine)
{
	return machine->volumefd >= 0 ? machine->volumefd : machine->slot.dirfd;
}

/* What / is below the upper directory: the highest tree's, or its correction's. */
static int machine_stat_lower(const struct machine *machine, struct stat *out, struct err *err)
{
	char name[DIGEST_HEX_MAX];
	char correction[STACK_NAME_MAX];
	size_t count = machine->stack.diff_id_count;

	*out = (struct stat){.st_mode = 0755};
	if (count == 0)
		return 0;
	(void)stack_correction_name(count - 1, correction);
	if (fstatat(machine_ownfd(machine), correction, out, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (fstatat(machine->stack.treesfd, digest_hex(&machine->diff_ids[count - 1], name), out,
		    AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "layer %s", name);
	return 0;
}

/*
 * The machine sees the upper directory's attributes as those of /, so it starts
 * with the ones below.
 */
static int machine_make_upper(const struct machine *machine, struct err *err)
{
	int ownfd = machine_ownfd(machine);
	struct stat st;

	if (machine_stat_lower(machine, &st, err) < 0)
		return -1;
	fd_spread(ownfd);
	if (mkdirat(ownfd, "up", 0700) < 0 || mkdirat(ownfd, "work", 0700) < 0 ||
	    fchownat(ownfd, "up", st.st_uid, st.st_gid, 0) < 0 ||
	    fchmodat(ownfd, "up", st.st_mode & 07777, 0) < 0)
		return err_os(err, errno, "make the machine's directory");
	return 0;
}

static int machine_mount_root(struct machine *machine, struct err *err)
{
	machine->stack = (struct stack){
		.treesfd = machine->treesfd,
		.basefd = machine->basefd,
		.ownfd = machine_ownfd(machine),
		.scratchfd = machine->scratchfd,
		.diff_ids = machine->diff_ids,
		.diff_id_count = machine->diff_id_count,
		.first_id = machine->slot.first_id,
	};
	if (stack_correct(&machine->stack, err) < 0 || machine_make_upper(machine, err) < 0 ||
	    inner_place(&machine->inner, &machine->stack, err) < 0 ||
	    stack_mount(&machine->stack, err) < 0)
		return -1;
	machine->rootfd = openat(machine->scratchfd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (machine->rootfd < 0)
		return err_os(err, errno, "open the machine's root");
	machine->etc = (struct etc){.rootfd = machine->rootfd,
				    .scratchfd = machine->scratchfd,
				    .owner = machine->slot.first_id,
				    .dirfd = -1};
	return 0;
}

int machine_open(const struct machine_spec *spec, struct machine **out, struct err *err)
{
	AUTO(machine) struct machine *machine = calloc(1, sizeof(*machine));

	if (!machine)
		abort();
	machine->slot = SLOT_INIT;
	machine->machinesfd = -1;
	machine->treesfd = -1;
	machine->basefd = -1;
	machine->scratchfd = -1;
	machine->volumefd = -1;
	machine->rootfd = -1;
	machine->etc.dirfd = -1;
	if (machine_copy_spec(machine, spec, err) < 0)
		return err_ctx(err, "machine");
	if (machine_claim(machine, err) < 0 || machine_mount_scratch(machine, err) < 0 ||
	    machine_mount_volume(machine, err) < 0 || machine_mount_root(machine, err) < 0)
		return err_ctx(err, "machine");
	*out = steal_ptr(&machine);
	return 0;
}

bool machine_has_directory(const struct machine *machine, const char *path)
{
	struct err ignored;
	auto_close int fd =
		fd_open_in_root(machine->rootfd, path, O_PATH | O_DIRECTORY, 0, &ignored);

	return fd >= 0;
}

uint32_t machine_first_id(const struct machine *machine)
{
	return machine->slot.first_id;
}

int machine_as_root(struct machine *machine, machine_child_fn *fn, void *ctx,
		    const struct cancel *cancel, struct err *err)
{
	return child_run(machine->slot.first_id, machine->rootfd, fn, ctx, cancel, err);
}

int machine_check_room(const struct machine *machine, struct err *err)
{
	return room_check(machine->slot.dirfd, STACK_ROOM_BYTES, err);
}

bool machine_has_volume(const struct machine *machine)
{
	return machine->volumefd >= 0;
}

bool machine_hit_disk(const struct machine *machine)
{
	return machine->volumefd >= 0 && volume_is_full(machine->volumefd);
}

const char *machine_disk_unlimited(const struct machine *machine)
{
	return machine->unlimited.kind ? machine->unlimited.text : NULL;
}

/* Let go of all that is mounted. The scratch directory goes as a whole. */
static void machine_unmount(struct machine *machine)
{
	inner_unmount(&machine->inner);
	etc_unmount(&machine->etc);
	auto_close_release(&machine->rootfd);
	machine->rootfd = -1;
	if (machine->scratchfd >= 0) {
		char root[MACHINE_PATH_MAX + 8];

		(void)snprintf(root, sizeof(root), "%s/root", machine->scratch);
		(void)umount2(root, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
}

int machine_detach(struct machine *machine, int *out_dirfd, const char **out_name, struct err *err)
{
	machine_unmount(machine);
	if (stack_wait_idle(&machine->stack, MACHINE_IDLE_MS, err) < 0)
		return err_ctx(err, "machine");
	if (machine->volumefd >= 0 && volume_sync(machine->volumefd, err) < 0)
		return err_ctx(err, "machine");
	*out_dirfd = machine_ownfd(machine);
	*out_name = "up";
	return 0;
}

int machine_lower_view(struct machine *machine, int *out_fd, struct err *err)
{
	*out_fd = -1;
	if (machine->stack.diff_id_count == 0)
		return 0;
	return stack_view(&machine->stack, out_fd, err);
}

/* A directory for the corrections of an image's trees; it goes with the machine. */
static int machine_make_image_dir(struct machine *machine, struct err *err)
{
	char name[MACHINE_PATH_MAX];
	int fd;

	(void)snprintf(name, sizeof(name), "image%u", machine->images++);
	if (mkdirat(machine->slot.dirfd, name, 0700) < 0)
		return err_os(err, errno, "make %s", name);
	fd = openat(machine->slot.dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_os(err, errno, "open %s", name) : fd;
}

int machine_image_view(struct machine *machine, const struct digest *diff_ids, size_t count,
		       bool mapped, int *out_fd, struct err *err)
{
	auto_free struct digest *distinct = calloc(count + 1, sizeof(*distinct));
	auto_close int ownfd = machine_make_image_dir(machine, err);
	struct stack stack = machine->stack;

	if (!distinct)
		abort();
	if (ownfd < 0)
		return -1;
	memcpy(distinct, diff_ids, count * sizeof(*distinct));
	stack.ownfd = ownfd;
	stack.diff_ids = distinct;
	stack.diff_id_count = stack_distinct(distinct, count);
	if (stack_correct(&stack, err) < 0)
		return -1;
	return mapped ? stack_view_mapped(&stack, out_fd, err) : stack_view(&stack, out_fd, err);
}

void machine_close(struct machine *machine)
{
	struct err err;

	if (!machine)
		return;
	machine_unmount(machine);
	auto_close_release(&machine->volumefd);
	if (machine->scratchfd >= 0) {
		(void)close(machine->scratchfd);
		(void)umount2(machine->scratch, MNT_DETACH | UMOUNT_NOFOLLOW);
		(void)rmdir(machine->scratch);
	}
	network_close(machine->network);
	if (machine->slot.dirfd >= 0 &&
	    store_set_aside(machine->store, machine->machinesfd, machine->slot.name, &err) < 0)
		log_debug("machine not removed id=%s error=%s", machine->slot.id, err.text);
	slot_release(&machine->slot);
	auto_close_release(&machine->machinesfd);
	auto_close_release(&machine->treesfd);
	auto_close_release(&machine->basefd);
	inner_done(&machine->inner);
	free(machine->agent_path);
	free(machine->diff_ids);
	free(machine->hosts);
	free(machine);
}
