/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_tag.h - what the images of agents are called in the store:
 * localhost/<slug>:<version> and localhost/<slug>:latest, as podman calls what
 * it builds.
 *
 * A slug may be what a registry calls an image, and "debian:12" the twelfth
 * version of somebody's agent. So neither takes the other's name: "debian" is
 * docker.io/library/debian. Where nothing is held under that name, the agent's
 * image is what a command means by it; a base or COPY --from asks the registry
 * first, and means the agent's where there is none.
 */
#pragma once

#include "registry/tag.h"

int agent_tag_format(struct str slug, struct str tag, struct buf *out, struct err *err) MUST_CHECK;

/* The image of an agent that a short name may mean, and what it is called: 1, 0, -1. */
int agent_tag_find(struct meta *meta, const struct reference *reference,
		   const struct platform *platform, struct buf *name, struct tag *out,
		   struct err *err) MUST_CHECK;

/* The name alone. False for one that is not short. */
bool agent_tag_name(const struct reference *reference, struct buf *out);
