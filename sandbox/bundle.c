/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/bundle_priv.h"

#include "layers/base/json.h"
#include "sandbox/host.h"
#include "sandbox/inner_priv.h"
#include "sandbox/seccomp_priv.h"
#include "sandbox/userns_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/resource.h>

#define BUNDLE_AGENT "/dev/.hearth-init"
#define BUNDLE_OPTIONS_MAX 8
#define BUNDLE_NOFILE_SOFT 1024
#define BUNDLE_NOFILE_HARD 1048576
#define BUNDLE_MSGQUEUE 819200 /* the kernel's own default, whatever ours is */
#define BUNDLE_CPU_PERIOD_US 100000
#define BUNDLE_CPU_SHARES 1024 /* of nice 0; each step of it takes a fifth */
#define BUNDLE_CPU_PERIOD_LONG_US 1000000
#define BUNDLE_CPU_QUOTA_MIN_US 1000

struct bundle_mount {
	const char *target;
	const char *type;
	const char *source; /* NULL: given by the caller */
	const char *options[BUNDLE_OPTIONS_MAX];
};

/* /dev and /dev/shm have sizes: a memory limit counts them, but there may be none. */
static const struct bundle_mount bundle_mounts[] = {
	{"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}},
	{"/dev", "tmpfs", "tmpfs", {"nosuid", "noexec", "strictatime", "mode=755", "size=1m"}},
	{"/dev/pts",
	 "devpts",
	 "devpts",
	 {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
	{"/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=64m"}},
	{"/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}},
};

/* Enough for package managers, and none that reaches beyond the machine's own ids. */
static const char *const bundle_capabilities[] = {
	"CAP_CHOWN",      "CAP_DAC_OVERRIDE", "CAP_FOWNER",           "CAP_FSETID",
	"CAP_SETUID",     "CAP_SETGID",       "CAP_SETFCAP",          "CAP_SETPCAP",
	"CAP_SYS_CHROOT", "CAP_KILL",         "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE",
};

static const char *const bundle_masked[] = {
	"/proc/acpi",       "/proc/asound",      "/proc/interrupts",
	"/proc/kcore",      "/proc/keys",        "/proc/latency_stats",
	"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
	"/proc/scsi",       "/sys/firmware",     "/sys/devices/virtual/powercap",
};

static const char *const bundle_read_only[] = {
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

#define BUNDLE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static json_t *bundle_strings(const char *const *strings, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(array, json_from_str(str_of(strings[i])));
	return array;
}

static json_t *bundle_list(const char *const *strings)
{
	size_t count = 0;

	while (strings[count])
		count++;
	return bundle_strings(strings, count);
}

static json_t *bundle_one_mount(const struct bundle_mount *mount)
{
	size_t count = 0;

	while (count < BUNDLE_OPTIONS_MAX && mount->options[count])
		count++;
	return json_pack("{s:s, s:s, s:s, s:o}", "destination", mount->target, "type", mount->type,
			 "source", mount->source, "options", bundle_strings(mount->options, count));
}

/* A tmpfs of the step's mounts; without a size it may take half of the memory, as everywhere. */
static void bundle_add_tmpfs(const struct machine_mount *tmpfs, json_t *mounts)
{
	char size[32] = "";
	const struct bundle_mount mount = {
		tmpfs->target,
		"tmpfs",
		"tmpfs",
		{"nosuid", "nodev", "mode=1777", tmpfs->read_only ? "ro" : "rw",
		 tmpfs->size > 0 ? size : NULL},
	};

	(void)snprintf(size, sizeof(size), "size=%" PRIu64, tmpfs->size);
	(void)json_array_append_new(mounts, bundle_one_mount(&mount));
}

static json_t *bundle_mount_list(const struct bundle *bundle)
{
	const struct bundle_mount late[] = {
		{"/sys", "bind", bundle->sysfs, {"rbind", "ro", "nosuid", "noexec", "nodev"}},
		{"/sys/fs/cgroup", "cgroup", "cgroup", {"ro", "nosuid", "noexec", "nodev"}},
		{BUNDLE_AGENT, "bind", bundle->agent, {"bind", "ro", "nosuid", "nodev"}},
	};
	json_t *mounts = json_array();

	for (size_t i = 0; i < BUNDLE_COUNT(bundle_mounts); i++)
		(void)json_array_append_new(mounts, bundle_one_mount(&bundle_mounts[i]));
	for (size_t i = 0; i < bundle->mount_count; i++) {
		if (inner_is_runtimes(&bundle->mounts[i]))
			bundle_add_tmpfs(&bundle->mounts[i], mounts);
	}
	for (size_t i = 0; i < BUNDLE_COUNT(late); i++)
		(void)json_array_append_new(mounts, bundle_one_mount(&late[i]));
	return mounts;
}

/* Nothing is inheritable or ambient: a user other than root starts with none. */
static json_t *bundle_capability_sets(void)
{
	json_t *all = bundle_strings(bundle_capabilities, BUNDLE_COUNT(bundle_capabilities));

	return json_pack("{s:O, s:O, s:o}", "bounding", all, "effective", all, "permitted", all);
}

static json_t *bundle_limit(const char *type, rlim_t soft, rlim_t hard)
{
	return json_pack("{s:s, s:I, s:I}", "type", type, "soft", (json_int_t)soft, "hard",
			 (json_int_t)hard);
}

/* The file limit is Docker's, or ours where we may not raise it. */
static json_t *bundle_limits(void)
{
	struct rlimit files;
	rlim_t hard = BUNDLE_NOFILE_HARD;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < hard)
		hard = files.rlim_max;
	return json_pack("[o, o, o]",
			 bundle_limit("RLIMIT_NOFILE",
				      hard < BUNDLE_NOFILE_SOFT ? hard : BUNDLE_NOFILE_SOFT, hard),
			 bundle_limit("RLIMIT_CORE", 0, 0),
			 bundle_limit("RLIMIT_MSGQUEUE", BUNDLE_MSGQUEUE, BUNDLE_MSGQUEUE));
}

static json_t *bundle_arguments(const struct machine_command *command)
{
	json_t *argv = json_pack("[s, s, s]", BUNDLE_AGENT, "init", "--");
	json_t *rest = bundle_list(command->argv);

	(void)json_array_extend(argv, rest);
	json_decref(rest);
	return argv;
}

static json_t *bundle_environment(const struct bundle *bundle)
{
	json_t *env = bundle_list(bundle->command->envp);
	char home[sizeof("HOME=") + USER_HOME_MAX];

	for (size_t i = 0; bundle->command->envp[i]; i++) {
		if (strncmp(bundle->command->envp[i], "HOME=", strlen("HOME=")) == 0)
			return env;
	}
	(void)snprintf(home, sizeof(home), "HOME=%s", bundle->user->home);
	(void)json_array_append_new(env, json_from_str(str_of(home)));
	return env;
}

static json_t *bundle_user(const struct user *user)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < user->group_count; i++)
		(void)json_array_append_new(groups, json_integer(user->groups[i]));
	return json_pack("{s:I, s:I, s:o}", "uid", (json_int_t)user->uid, "gid",
			 (json_int_t)user->gid, "additionalGids", groups);
}

static json_t *bundle_process(const struct bundle *bundle)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "terminal", 0, "user",
			 bundle_user(bundle->user), "args", bundle_arguments(bundle->command),
			 "env", bundle_environment(bundle), "cwd",
			 json_from_str(str_of(bundle->cwd)), "capabilities",
			 bundle_capability_sets(), "rlimits", bundle_limits(), "noNewPrivileges",
			 0);
}

/* Swap would only let a machine exceed its limit; version 1 may not know about it. */
static bool bundle_can_limit_swap(void)
{
	auto_close int fd = -1;

	if (host_cgroups() == HOST_CGROUPS_V2)
		return true;
	fd = open("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", O_PATH | O_CLOEXEC);
	return fd >= 0;
}

/*
 * The kernel takes no quota below 1 ms and no period above 1 s
 * (kernel/sched/core.c), so a hundredth of a core is the least that the usual
 * period can express, and a thousandth the least of all.
 */
static json_t *bundle_cpu(uint64_t millis)
{
	uint64_t period = BUNDLE_CPU_PERIOD_US;

	if (millis * period / 1000 < BUNDLE_CPU_QUOTA_MIN_US)
		period = BUNDLE_CPU_PERIOD_LONG_US;
	return json_pack("{s:I, s:I}", "period", (json_int_t)period, "quota",
			 (json_int_t)(millis * period / 1000));
}

/*
 * What its maker's nice value would be worth among processes: a cgroup weighs
 * as much as a process of nice 0, whatever its own have. 0 for no less than that.
 */
static json_int_t bundle_shares(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	json_int_t shares = BUNDLE_CPU_SHARES;

	for (int i = 0; i < nice; i++)
		shares = shares * 4 / 5;
	return nice > 0 ? shares : 0;
}

static json_t *bundle_resources(const struct machine_limits *limits)
{
	json_int_t shares = bundle_shares();
	json_t *resources = json_pack(
		"{s:[{s:b, s:s}], s:{s:I}}", "devices", "allow", 0, "access", "rwm", "pids",
		"limit", (json_int_t)(limits->pids ? limits->pids : MACHINE_PIDS_DEFAULT));
	json_int_t bytes = (json_int_t)limits->memory_bytes;

	if (bytes) {
		json_t *memory = json_pack("{s:I}", "limit", bytes);

		if (bundle_can_limit_swap())
			json_set_int(memory, "swap", bytes);
		(void)json_object_set_new(resources, "memory", memory);
	}
	if (limits->cpu_millis)
		json_set(resources, "cpu", bundle_cpu(limits->cpu_millis));
	else if (shares > 0)
		json_set(resources, "cpu", json_object());
	if (shares > 0)
		json_set_int(json_object_get(resources, "cpu"), "shares", shares);
	return resources;
}

static json_t *bundle_namespaces(const char *netns)
{
	return json_pack("[{s:s}, {s:s}, {s:s}, {s:s}, {s:s}, {s:s}, {s:s, s:s}]", "type", "user",
			 "type", "pid", "type", "mount", "type", "ipc", "type", "uts", "type",
			 "cgroup", "type", "network", "path", netns);
}

static json_t *bundle_linux(const struct bundle *bundle)
{
	json_t *ids = json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
				(json_int_t)bundle->first_id, "size", USERNS_IDS);
	char cgroup[128];

	(void)snprintf(cgroup, sizeof(cgroup), "/%s", bundle->id);
	return json_pack("{s:s, s:o, s:o, s:o, s:O, s:o, s:o, s:o}", "cgroupsPath", cgroup,
			 "resources", bundle_resources(bundle->limits), "namespaces",
			 bundle_namespaces(bundle->netns), "uidMappings", ids, "gidMappings", ids,
			 "maskedPaths", bundle_strings(bundle_masked, BUNDLE_COUNT(bundle_masked)),
			 "readonlyPaths",
			 bundle_strings(bundle_read_only, BUNDLE_COUNT(bundle_read_only)),
			 "seccomp", seccomp_section());
}

/*
 * The filter ready made: crun then need not compile the section of the
 * document, which is two thirds of a start. Others ignore it.
 */
static json_t *bundle_annotations(void)
{
	struct sock_filter program[SECCOMP_PROGRAM_MAX];
	unsigned char text[sizeof(program) / 3 * 4 + 8];
	size_t size = seccomp_program(program) * sizeof(program[0]);

	(void)EVP_EncodeBlock(text, (const unsigned char *)program, (int)size);
	return json_pack("{s:s}", "run.oci.seccomp_bpf_data", (const char *)text);
}

int bundle_format(const struct bundle *bundle, struct buf *out, struct err *err)
{
	AUTO(json)
	json_t *config = json_pack("{s:s, s:{s:s, s:b}, s:o, s:s, s:o, s:o, s:o}", "ociVersion",
				   "1.0.2", "root", "path", bundle->root, "readonly", 0, "process",
				   bundle_process(bundle), "hostname", bundle->command->hostname,
				   "mounts", bundle_mount_list(bundle), "linux",
				   bundle_linux(bundle), "annotations", bundle_annotations());

	if (!config)
		return err_set(err, ERR_INVALID, "the command or its environment is not text");
	return json_format(config, out, err);
}
