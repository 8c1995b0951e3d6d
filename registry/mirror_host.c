/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_upstream_priv.h"

#include "registry/hub.h"

#include <ctype.h>
#include <stdio.h>

int mirror_host_name(struct str text, char out[static URL_HOST_MAX], struct err *err)
{
	static const struct str https = STR(":443");

	if (text.len > https.len && str_equal(str_skip(text, text.len - https.len), https))
		text.len -= https.len;
	if (text.len == 0 || text.len >= URL_HOST_MAX || memchr(text.ptr, '/', text.len))
		return err_set(err, ERR_INVALID, "expected the name of a registry's host");
	for (size_t i = 0; i < text.len; i++)
		out[i] = (char)tolower((unsigned char)text.ptr[i]);
	out[text.len] = '\0';
	if (hub_is_host(str_of(out)))
		(void)snprintf(out, URL_HOST_MAX, HUB_HOST);
	return 0;
}
