/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/tool.h"

#include <stddef.h>

const char *const tool_names[] = {
	"read",    "write",         "edit",         "glob",         "grep",
	"bash",    "process_start", "process_list", "process_logs", "process_kill",
	"preview", "deploy",        "fetch",        NULL,
};

const char *const tool_presets[] = {"read-only", NULL};
