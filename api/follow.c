/* SPDX-License-Identifier: Apache-2.0 */
#include "api/follow.h"

#include "api/await.h"

struct follow {
	const struct cli *cli;
	struct sink *out;
	struct err failure; /* of writing */
};

bool follow_is_bake(const char *name)
{
	return str_starts(str_of(name), STR("bak_"));
}

/* A write that fails ends it: the reader is gone. */
static void follow_hear(void *ctx, struct str bytes)
{
	struct follow *follow = ctx;

	if (follow->failure.kind == ERR_NONE &&
	    follow->out->write(follow->out, bytes, &follow->failure) < 0)
		cancel_raise(follow->cli->cancel);
}

static int follow_find(const struct cli *cli, const char *name, char **out, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *page = NULL;
	const struct call_spec spec = {.method = "bakes.list", .args = args};
	const json_t *newest;

	(void)json_object_set_new(args, "agentId", json_from_str(str_of(name)));
	(void)json_object_set_new(args, "limit", json_integer(1));
	if (call_daemon(cli, &spec, &page, err) < 0)
		return -1;
	newest = json_array_get(json_object_get(page, "items"), 0);
	if (!newest)
		return err_set(err, ERR_NOT_FOUND, "agent %s has no bakes", name);
	*out = str_dup(str_of(await_text(newest, "id")));
	return 0;
}

int follow_write(const struct cli *cli, const char *name, size_t step, struct sink *out,
		 struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *nothing = NULL;
	struct follow follow = {.cli = cli, .out = out};
	const struct call_spec spec = {
		.method = "bakes.logs", .args = args, .heard = follow_hear, .ctx = &follow};
	auto_free char *found = NULL;
	int result;

	if (!follow_is_bake(name) && follow_find(cli, name, &found, err) < 0)
		return -1;
	(void)json_object_set_new(args, "id", json_from_str(str_of(found ? found : name)));
	(void)json_object_set_new(args, "follow", json_boolean(cli_has(cli, "follow")));
	if (step > 0)
		(void)json_object_set_new(args, "step", json_integer((json_int_t)step));
	result = call_daemon(cli, &spec, &nothing, err);
	if (follow.failure.kind == ERR_NONE)
		return result;
	*err = follow.failure;
	return -1;
}
