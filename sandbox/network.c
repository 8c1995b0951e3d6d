/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network.h"

#include "sandbox/egress_priv.h"
#include "sandbox/network_ns_priv.h"
#include "sandbox/resolver_priv.h"

#include <assert.h>
#include <fcntl.h>

struct network {
	enum network_mode mode;
	struct network_ns ns;
	struct network_host *hosts;
	size_t host_count;
	struct egress *egress; /* NULL until it serves, and for NETWORK_NONE */
};

int network_open(enum network_mode mode, const struct network_host *hosts, size_t host_count,
		 struct network **out, struct err *err)
{
	struct network_ns ns;
	struct network *network;

	if (host_count > NETWORK_HOSTS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d hosts", NETWORK_HOSTS_MAX);
	if (network_ns_open(mode, &ns, err) < 0)
		return -1;
	network = calloc(1, sizeof(*network));
	if (!network)
		abort();
	network->mode = mode;
	network->ns = ns;
	network->host_count = host_count;
	network->hosts = calloc(host_count + 1, sizeof(*hosts));
	if (!network->hosts)
		abort();
	if (host_count > 0)
		memcpy(network->hosts, hosts, host_count * sizeof(*hosts));
	*out = network;
	return 0;
}

int network_nsfd(const struct network *network)
{
	return network->ns.fds[NETWORK_FD_NS];
}

int network_sysfs(const struct network *network, int *out_fd, struct err *err)
{
	int fd = fcntl(network->ns.fds[NETWORK_FD_SYSFS], F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_os(err, errno, "duplicate a descriptor");
	*out_fd = fd;
	return 0;
}

/*
 * The resolver always answers, but perhaps only after the host's own has tried
 * for longer than libc's default of 5 seconds.
 */
struct str network_resolv_conf(const struct network *network)
{
	if (network->mode == NETWORK_NONE)
		return STR("");
	return STR("nameserver " RESOLVER_SELF "\noptions timeout:30 attempts:2\n");
}

int network_serve(struct network *network, struct err *err)
{
	assert(!network->egress);
	if (network->mode == NETWORK_NONE)
		return 0;
	return egress_open(&network->ns, network->hosts, network->host_count, &network->egress,
			   err);
}

void network_close(struct network *network)
{
	if (!network)
		return;
	egress_close(network->egress);
	network_ns_close(&network->ns);
	free(network->hosts);
	free(network);
}
