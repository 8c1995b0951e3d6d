/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/task_hosts_priv.h"

#include "layers/base/hex.h"

#include <stdio.h>

/* Both sides are one build of one program, so the address travels as it is. */
json_t *task_hosts_format(const struct network_host *hosts, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		char hex[2 * sizeof(struct sockaddr_storage) + 1];
		json_t *host = json_object();

		json_set_text(host, "name", hosts[i].name);
		json_set_text(host, "address",
			      hex_encode(&hosts[i].address, sizeof(hosts[i].address), hex));
		(void)json_array_append_new(array, host);
	}
	return array;
}

static int task_hosts_parse_one(const json_t *object, struct network_host *out, struct err *err)
{
	struct str name;
	struct str hex;

	if (json_need_string(object, "hosts", "name", &name, err) < 0 ||
	    json_need_string(object, "hosts", "address", &hex, err) < 0)
		return -1;
	if (name.len > NETWORK_NAME_MAX || hex.len != 2 * sizeof(out->address) ||
	    !hex_decode(hex, &out->address))
		return err_set(err, ERR_INVALID, "hosts: not an address");
	(void)snprintf(out->name, sizeof(out->name), STR_FMT, STR_ARG(name));
	return 0;
}

int task_hosts_parse(const json_t *document, struct network_host **out, size_t *out_count,
		     struct err *err)
{
	json_t *array;
	struct network_host *hosts;

	if (json_need_array(document, "", "hosts", &array, err) < 0)
		return -1;
	hosts = calloc(json_array_size(array) + 1, sizeof(*hosts));
	if (!hosts)
		abort();
	*out = hosts;
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (task_hosts_parse_one(json_array_get(array, i), &hosts[i], err) < 0)
			return -1;
	}
	*out_count = json_array_size(array);
	return 0;
}
