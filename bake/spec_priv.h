/* SPDX-License-Identifier: Apache-2.0 */
/* spec_priv.h - what the checks of an image and of an agent (agent_spec.c) share. */
#pragma once

#include "layers/base/schema.h"

extern const struct schema spec_image_keys[];
extern const struct schema spec_network_keys[];
extern const struct schema spec_resource_keys[];

/* Check the values of an image's members, whose keys and types were checked before. */
int spec_check_image(const json_t *image, const char *path, struct err *err) MUST_CHECK;
