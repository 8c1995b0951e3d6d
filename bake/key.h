/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - the name of a step's result: a sha256 over typed, length-prefixed
 * fields, version first.
 *
 * The parent's chain id, the configuration that the step can see (of which
 * variables are in a COPY's text already, so that another one makes no COPY run
 * anew), the canonical instruction, the digest of what COPY reads, the platform,
 * the network policy, the builder's epoch, the time that a reproducible bake
 * clamps to, and of secrets with cache=value what names their values
 * (layers/mac.h). Other secrets, limits, proxies, extra hosts and other times
 * are in no key. The encoding is injective: no two lists of fields have the same
 * bytes.
 */
#pragma once

#include "bake/instruction.h"
#include "bake/state.h"

#define KEY_VERSION 1
#define KEY_EPOCH 1 /* what a machine is: user, shell, capabilities, mounts */

/* Of the configuration. */
enum key_sight {
	KEY_SEES_ALL,    /* RUN: environment, working directory, user, shell */
	KEY_SEES_PLACE,  /* WORKDIR, and a relative COPY: the directory and its user */
	KEY_SEES_NOTHING /* an absolute COPY */
};

struct key_parts {
	struct state *state;          /* only its cache of the visible digest changes */
	struct str instruction;       /* canonical, and from expand_instruction() */
	const struct digest *content; /* of what is read from outside, or NULL */
	bool network_none;
	bool detached;        /* COPY --link: no layer below is seen */
	const int64_t *clamp; /* what later times in the layer become, in seconds; or NULL */
	const struct digest *secrets; /* of those whose values count; or NULL */
	enum key_sight sight;
};

void key_make(const struct key_parts *parts, struct digest *out);

/* The same fields as a JSON object, stored with the step for explanations. */
json_t *key_components(const struct key_parts *parts);
