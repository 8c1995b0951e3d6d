/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/hub.h"

bool hub_is_host(struct str host)
{
	static const struct str names[] = {STR(HUB_HOST), STR("index.docker.io"),
					   STR(HUB_REGISTRY)};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_equal(host, names[i]))
			return true;
	}
	return false;
}

struct str hub_login_key(struct str host)
{
	return hub_is_host(host) ? STR(HUB_LOGIN) : host;
}
