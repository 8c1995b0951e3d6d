/* SPDX-License-Identifier: Apache-2.0 */
#include "api/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int notify_send(const char *socket_name, const char *text, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = socket_name ? strlen(socket_name) : 0;
	auto_close int fd = -1;

	if (len == 0)
		return 0;
	if (len >= sizeof(address.sun_path) || (socket_name[0] != '/' && socket_name[0] != '@'))
		return err_set(err, ERR_INVALID, "NOTIFY_SOCKET: expected a path or @NAME");
	memcpy(address.sun_path, socket_name, len);
	if (socket_name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_os(err, errno, "make a socket");
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return err_os(err, errno, "tell the service manager");
	return 0;
}
