/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/pass.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

union pass_control {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(sizeof(int) * PASS_FDS_MAX)];
};

int pass_send(int sockfd, const void *bytes, size_t len, const int *fds, size_t fd_count,
	      struct err *err)
{
	union pass_control control = {.bytes = {0}};
	struct iovec data = {.iov_base = drop_const(bytes), .iov_len = len};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
	ssize_t n;

	assert(fd_count <= PASS_FDS_MAX);
	if (fd_count > 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fd_count);
	}
	do {
		n = sendmsg(sockfd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return err_set(err, ERR_UNAVAILABLE, "the other process is gone");
	return err_os(err, errno, "send descriptors");
}

static void pass_take(const struct msghdr *message, int fds[static PASS_FDS_MAX])
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);

	for (size_t i = 0; i < PASS_FDS_MAX; i++)
		fds[i] = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

int pass_receive(int sockfd, void *bytes, size_t len, int fds[static PASS_FDS_MAX], struct err *err)
{
	union pass_control control = {.bytes = {0}};
	struct iovec data = {.iov_base = bytes, .iov_len = len};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t n;

	do {
		n = recvmsg(sockfd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET)
		return err_os(err, errno, "receive descriptors");
	if (n <= 0)
		return 0;
	pass_take(&message, fds);
	if ((size_t)n == len && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	for (size_t i = 0; i < PASS_FDS_MAX; i++) {
		auto_close_release(&fds[i]);
		fds[i] = -1;
	}
	return err_set(err, ERR_CORRUPT, "a message with descriptors of the wrong size");
}
