/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/tool.h"

#include "layers/base/nearest.h"

const char *const tool_names[] = {
	"read",    "write",         "edit",         "glob",         "grep",
	"bash",    "process_start", "process_list", "process_logs", "process_kill",
	"preview", "deploy",        "fetch",        NULL,
};

const char *const tool_presets[] = {"read-only", NULL};

int tool_need(struct str name, struct err *err)
{
	size_t count = sizeof(tool_names) / sizeof(tool_names[0]) - 1;
	char hint[NEAREST_HINT_MAX];

	for (size_t i = 0; i < count; i++) {
		if (str_equal(name, str_of(tool_names[i])))
			return 0;
	}
	return err_set(err, ERR_NO_TOOL, "no tool is called \"%.*s\"%s",
		       (int)(name.len < NEAREST_MAX ? name.len : NEAREST_MAX), name.ptr,
		       nearest_hint(name, tool_names, count, hint));
}
