/* SPDX-License-Identifier: Apache-2.0 */
#include "api/page_option.h"

int page_option_read(const struct cli *cli, const char *agent, json_t *args, struct err *err)
{
	const char *limit = cli_text(cli, "limit");
	const char *cursor = cli_text(cli, "cursor");
	size_t count;

	if (limit && cli_read_step("--limit", limit, &count, err) < 0)
		return -1;
	if (limit)
		(void)json_object_set_new(args, "limit", json_integer((json_int_t)count));
	if (cursor)
		(void)json_object_set_new(args, "cursor", json_from_str(str_of(cursor)));
	if (agent)
		(void)json_object_set_new(args, "agentId", json_from_str(str_of(agent)));
	return 0;
}

void page_option_print_next(const json_t *page)
{
	const json_t *next = json_object_get(page, "next");

	if (json_is_string(next))
		(void)fprintf(stderr, "there are more: --cursor %s\n", json_string_value(next));
}
