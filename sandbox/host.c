/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/host.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static bool host_is_cgroup2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

enum host_cgroups host_cgroups(void)
{
	struct stat st;

	if (host_is_cgroup2("/sys/fs/cgroup"))
		return HOST_CGROUPS_V2;
	if (host_is_cgroup2("/sys/fs/cgroup/unified"))
		return HOST_CGROUPS_HYBRID;
	if (stat("/sys/fs/cgroup/pids", &st) == 0 || stat("/sys/fs/cgroup/memory", &st) == 0)
		return HOST_CGROUPS_V1;
	return HOST_CGROUPS_NONE;
}

static bool host_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

bool host_find_program(const char *name, char path[static HOST_PROGRAM_MAX])
{
	static const char *const dirs[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					   "/usr/bin",        "/sbin",          "/bin"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (snprintf(path, HOST_PROGRAM_MAX, "%s/%s", dirs[i], name) < HOST_PROGRAM_MAX &&
		    host_is_program(path))
			return true;
	}
	return false;
}

int host_find_runtime(const char *wanted, char path[static HOST_PROGRAM_MAX], struct err *err)
{
	static const char *const known[] = {"crun", "runc"};

	if (wanted && strchr(wanted, '/')) {
		if (wanted[0] != '/' ||
		    snprintf(path, HOST_PROGRAM_MAX, "%s", wanted) >= HOST_PROGRAM_MAX ||
		    !host_is_program(path))
			return err_set(err, ERR_UNSUPPORTED, "runtime %s is not a program", wanted);
		return 0;
	}
	if (wanted) {
		if (host_find_program(wanted, path))
			return 0;
		return err_set(err, ERR_UNSUPPORTED, "runtime %s is not installed", wanted);
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (host_find_program(known[i], path))
			return 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "no OCI runtime found: install crun (or runc)");
}
