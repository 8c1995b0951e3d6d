/* SPDX-License-Identifier: Apache-2.0 */
#include "api/host.h"

#include <arpa/inet.h>
#include <strings.h>

#define HOST_MAX ((size_t)255)

/* Take the port off. False where what is behind the host is none. */
static bool host_cut_port(struct str *host)
{
	size_t at = host->len;

	while (at > 0 && host->ptr[at - 1] >= '0' && host->ptr[at - 1] <= '9')
		at--;
	if (at == 0 || host->ptr[at - 1] != ':')
		return true;
	if (at == host->len)
		return false;
	host->len = at - 1;
	return true;
}

static bool host_is_address(const char *text, size_t len)
{
	struct in6_addr address;
	char inner[INET6_ADDRSTRLEN];

	if (inet_pton(AF_INET, text, &address) == 1)
		return true;
	if (len < 2 || text[0] != '[' || text[len - 1] != ']' || len - 2 >= sizeof(inner))
		return false;
	memcpy(inner, text + 1, len - 2);
	inner[len - 2] = '\0';
	return inet_pton(AF_INET6, inner, &address) == 1;
}

/* Without its port. False for what is no host. */
static bool host_read(struct str field, char out[static HOST_MAX + 1])
{
	if (!host_cut_port(&field) || field.len == 0 || field.len > HOST_MAX ||
	    memchr(field.ptr, '\0', field.len))
		return false;
	memcpy(out, field.ptr, field.len);
	out[field.len] = '\0';
	return true;
}

bool host_is_named(struct str field, const char *const *names, size_t count)
{
	char host[HOST_MAX + 1];

	if (!host_read(field, host))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(host, names[i]) == 0)
			return true;
	}
	return false;
}

bool host_is_ours(struct str field, const char *const *names, size_t count)
{
	char host[HOST_MAX + 1];

	if (!host_read(field, host))
		return false;
	return strcasecmp(host, "localhost") == 0 || host_is_address(host, strlen(host)) ||
	       host_is_named(field, names, count);
}
