/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_trim.h - what a store keeps of upstreams has a size, for a program that
 * mirrors nothing itself. A daemon does the same by mirror_trim() (mirror.h).
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"
#include "registry/mirror_upstream.h"

struct mirror_trim_spec {
	struct store *store;
	const struct mirror_upstream_spec *upstreams; /* by host and max_bytes; or none */
	size_t upstream_count;
	bool dry_run; /* only say how much would go */
	const struct cancel *cancel;
};

/*
 * Remove records of what was used longest ago, of each upstream that holds more
 * than its max_bytes. *out_bytes: what a collection can give back then.
 */
int mirror_trim_store(const struct mirror_trim_spec *spec, uint64_t *out_bytes, struct err *err)
	MUST_CHECK;

/* The same of all upstreams, whatever they may take, until so many bytes of them went. */
int mirror_trim_oldest(const struct mirror_trim_spec *spec, uint64_t bytes, uint64_t *out_bytes,
		       struct err *err) MUST_CHECK;
