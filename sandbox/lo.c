/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/lo_priv.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#define LO_INDEX 1 /* the first interface of any namespace */

struct lo_uint_attr {
	struct rtattr attr;
	uint32_t value;
};

static struct lo_uint_attr lo_attr(unsigned short type, uint32_t value)
{
	return (struct lo_uint_attr){{sizeof(struct lo_uint_attr), type}, value};
}

/* Send one request and read what the kernel says to it. */
static int lo_request(struct nlmsghdr *request, const char *what, struct err *err)
{
	auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char request[256];
	} answer = {{0}};
	ssize_t n;

	if (fd < 0)
		return err_os(err, errno, "%s", what);
	request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return err_os(err, errno, "%s", what);
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)(sizeof(answer.header) + sizeof(answer.error.error)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR)
		return err_set(err, ERR_OS, "%s: no answer from the kernel", what);
	if (answer.error.error != 0)
		return err_os(err, -answer.error.error, "%s", what);
	return 0;
}

int lo_up(struct err *err)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} request = {
		.header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWLINK},
		.link = {.ifi_index = LO_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
	};

	return lo_request(&request.header, "bring lo up", err);
}

static int lo_add_address(struct in_addr self, struct err *err)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg address;
		struct lo_uint_attr local;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
		.address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LO_INDEX},
		.local = lo_attr(IFA_LOCAL, self.s_addr),
	};

	return lo_request(&request.header, "give lo an address", err);
}

int lo_take_all(struct in_addr self, struct err *err)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct lo_uint_attr device;
		struct lo_uint_attr source;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_NEWROUTE,
			   .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
		.route = {.rtm_family = AF_INET,
			  .rtm_table = RT_TABLE_LOCAL,
			  .rtm_protocol = RTPROT_STATIC,
			  .rtm_scope = RT_SCOPE_HOST,
			  .rtm_type = RTN_LOCAL},
		.device = lo_attr(RTA_OIF, LO_INDEX),
		.source = lo_attr(RTA_PREFSRC, self.s_addr),
	};

	if (lo_add_address(self, err) < 0)
		return -1;
	return lo_request(&request.header, "make all addresses local", err);
}
