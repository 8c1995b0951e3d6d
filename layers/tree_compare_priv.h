/* SPDX-License-Identifier: Apache-2.0 */
/* tree_compare_priv.h - whether two directories hold the same, but for times. */
#pragma once

#include "layers/base/cancel.h"
#include "layers/twin_priv.h"

struct tree_compare_spec {
	int a;
	int b;
	const struct twin *twin; /* that compared the bytes of a's files already, or NULL */
	const struct cancel *cancel;
};

/* 1 they do, 0 they do not, -1. Adds what was read of a to *bytes. */
int tree_compare(const struct tree_compare_spec *spec, uint64_t *bytes, struct err *err) MUST_CHECK;
