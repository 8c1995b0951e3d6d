/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network_ns_priv.h"

#include "layers/base/fd.h"
#include "layers/base/thread.h"
#include "sandbox/lo_priv.h"
#include "sandbox/network_rules_priv.h"
#include "sandbox/resolver_priv.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#define NETWORK_NS_BACKLOG 1024

static const struct network_ns network_ns_none = {{-1, -1, -1, -1, -1}};

void network_ns_close(struct network_ns *ns)
{
	for (size_t i = 0; i < NETWORK_FDS; i++)
		auto_close_release(&ns->fds[i]);
	*ns = network_ns_none;
}

static int network_ns_set(const char *path, const char *value, struct err *err)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_os(err, errno, "open %s", path);
	if (fd_write_all(fd, value, strlen(value), err) < 0)
		return err_ctx(err, "%s", path);
	return 0;
}

/* A socket of ours; a listening one for SOCK_STREAM. */
static int network_ns_socket(int type, const char *address, in_port_t port, bool is_transparent,
			     int *out, struct err *err)
{
	const struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr(address),
	};
	static const int one = 1;
	auto_close int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_os(err, errno, "make a socket");
	if (is_transparent && setsockopt(fd, SOL_IP, IP_TRANSPARENT, &one, sizeof(one)) < 0)
		return err_os(err, errno, "make a socket transparent");
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, NETWORK_NS_BACKLOG) < 0))
		return err_os(err, errno, "listen at %s:%u", address, port);
	*out = steal_fd(&fd);
	return 0;
}

static int network_ns_open_to_all(struct network_ns *ns, struct err *err)
{
	const struct in_addr self = {.s_addr = inet_addr(RESOLVER_SELF)};

	if (lo_take_all(self, err) < 0 ||
	    network_ns_socket(SOCK_STREAM, NETWORK_RULES_LISTENER, NETWORK_RULES_PORT, true,
			      &ns->fds[NETWORK_FD_LISTENER], err) < 0 ||
	    network_ns_socket(SOCK_DGRAM, RESOLVER_SELF, 53, false, &ns->fds[NETWORK_FD_DNS_UDP],
			      err) < 0 ||
	    network_ns_socket(SOCK_STREAM, RESOLVER_SELF, 53, false, &ns->fds[NETWORK_FD_DNS_TCP],
			      err) < 0)
		return -1;
	return network_rules_load(err);
}

/* A machine may not mount sysfs, whose owner must own the network namespace too. */
static int network_ns_mount_sysfs(int *out, struct err *err)
{
	auto_close int fs = fsopen("sysfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_os(err, errno, "make a sysfs");
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
		     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return err_os(err, errno, "mount a sysfs");
	*out = fd;
	return 0;
}

static int network_ns_make(enum network_mode mode, struct network_ns *ns, struct err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_os(err, errno, "make a network namespace");
	ns->fds[NETWORK_FD_NS] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ns->fds[NETWORK_FD_NS] < 0)
		return err_os(err, errno, "open /proc/thread-self/ns/net");
	if (lo_up(err) < 0 ||
	    network_ns_set("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", err) < 0)
		return -1;
	if (mode == NETWORK_OPEN && network_ns_open_to_all(ns, err) < 0)
		return -1;
	return network_ns_mount_sysfs(&ns->fds[NETWORK_FD_SYSFS], err);
}

struct network_ns_job {
	enum network_mode mode;
	struct network_ns ns;
	struct err *err;
	int result;
};

static void *network_ns_main(void *ctx)
{
	struct network_ns_job *job = ctx;

	job->result = network_ns_make(job->mode, &job->ns, job->err);
	return NULL;
}

int network_ns_open(enum network_mode mode, struct network_ns *out, struct err *err)
{
	struct network_ns_job job = {.mode = mode, .ns = network_ns_none, .err = err};
	pthread_t thread;

	if (thread_start(&thread, network_ns_main, &job, err) < 0)
		return -1;
	(void)pthread_join(thread, NULL);
	if (job.result < 0) {
		network_ns_close(&job.ns);
		return -1;
	}
	*out = job.ns;
	return 0;
}
