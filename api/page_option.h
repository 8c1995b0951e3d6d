/* SPDX-License-Identifier: Apache-2.0 */
/* page_option.h - --limit and --cursor, of what the daemon lists a page at a time. */
#pragma once

#include "api/cli.h"
#include "layers/base/json.h"

#define PAGE_OPTIONS                                                                        \
	{"limit", "N", "at most so many, newest first; 50 by default", false},              \
	{                                                                                   \
		"cursor", "TEXT", "go on where an earlier page ended, by its `next`", false \
	}

/* Into a request's members; with the agent's, where one is named. */
int page_option_read(const struct cli *cli, const char *agent, json_t *args, struct err *err)
	MUST_CHECK;

/* Where there is more, for those who read no JSON. */
void page_option_print_next(const json_t *page);
