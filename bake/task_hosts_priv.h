/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_hosts_priv.h - the operator's hosts (sandbox/network.h) in a document
 * for another process.
 */
#pragma once

#include "layers/base/json.h"
#include "sandbox/network.h"

json_t *task_hosts_format(const struct network_host *hosts, size_t count);

/* Of a document's member `hosts`. The caller frees the array, whatever is returned. */
int task_hosts_parse(const json_t *document, struct network_host **out, size_t *out_count,
		     struct err *err) MUST_CHECK;
