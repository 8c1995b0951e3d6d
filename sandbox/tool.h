/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - the tools of a sandbox, by name.
 *
 * The catalogue is static: it is shown without a machine. A spec narrows what
 * of it may be called.
 */
#pragma once

#include "layers/base/buf.h"
#include "layers/base/err.h"

/* The thirteen names, and those of the presets; each list ends with NULL. */
extern const char *const tool_names[];
extern const char *const tool_presets[];

/* ERR_NO_TOOL, with the nearest name, where no tool has this one. */
int tool_need(struct str name, struct err *err) MUST_CHECK;
