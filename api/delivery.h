/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery.h - how the daemon brings an image to a registry: by a process
 * (bake/publish.h), with the credentials that files and helpers have at that
 * time.
 *
 * Ownership: everything in it is borrowed.
 */
#pragma once

#include "api/cli.h"
#include "layers/digest.h"

struct delivery {
	const struct cli *cli;
	struct store *store;
};

/* A pusher_push_fn; ctx is a delivery. */
int delivery_push(void *ctx, struct str reference, const struct digest *image,
		  const struct cancel *cancel, struct err *err) MUST_CHECK;
