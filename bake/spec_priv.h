/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec_priv.h - what an image's keys share with those of its agent (agent_spec.c).
 */
#pragma once

#include "layers/base/schema.h"

extern const struct schema spec_image_keys[];
extern const struct schema spec_network_keys[];
extern const struct schema spec_resource_keys[];

/* Whether an image's members make sense, once their keys and types were judged. */
int spec_check_image(const json_t *image, const char *path, struct err *err) MUST_CHECK;
