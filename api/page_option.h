/* SPDX-License-Identifier: Apache-2.0 */
/* page_option.h - --limit and --cursor, for the daemon's lists. */
#pragma once

#include "api/cli.h"
#include "layers/base/json.h"

#define PAGE_OPTIONS                                                                      \
	{"limit", "N", "at most so many, newest first; 50 by default", false},            \
	{                                                                                 \
		"cursor", "TEXT", "the `next` of an earlier page: go on behind it", false \
	}

/* Set them in a request; and the agent's id or slug, where one is named. */
int page_option_read(const struct cli *cli, const char *agent, json_t *args, struct err *err)
	MUST_CHECK;

/* Say how to get the next page, if there is one. */
void page_option_print_next(const json_t *page);
