/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c - `hearth token`: who may ask the daemon. */
#include "api/cli.h"
#include "api/human.h"
#include "api/token.h"

#include <string.h>

/* The secret goes to standard output, so that a script can keep it. */
static void token_print_new(const struct cli *cli, const struct token *token,
			    const struct secret *secret)
{
	AUTO(json) json_t *value = token_describe(token);

	if (!cli_has(cli, "json")) {
		(void)printf("%s\n", secret_reveal(secret));
		(void)fprintf(stderr, "%s was made; it is shown this once\n", token->id);
		return;
	}
	(void)json_object_set_new(value, "token", json_string(secret_reveal(secret)));
	human_json(value, stdout);
}

static int token_make(const struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *scopes = json_array();
	auto_token struct token token = TOKEN_INIT;
	auto_secret struct secret secret = {0};
	struct cli_value given = cli_list(cli, "scope");
	const char *name = cli_text(cli, "name");

	for (size_t i = 0; i < given.count; i++)
		(void)json_array_append_new(scopes, json_from_str(str_of(given.at[i])));
	if (given.count == 0)
		return err_set(err, ERR_INVALID, "give it at least one --scope");
	if (cli_open_store(cli, &store, err) < 0 || meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    token_create(meta, str_of(name ? name : ""), scopes, &secret, &token, err) < 0 ||
	    meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	token_print_new(cli, &token, &secret);
	return 0;
}

static void token_print_row(const struct token *token)
{
	AUTO(json) json_t *value = token_describe(token);
	auto_free char *name = human_text(json_str(json_object_get(value, "name")));
	const json_t *scopes = json_object_get(value, "scopes");

	(void)printf("%s  %s  ", token->id, json_string_value(json_object_get(value, "createdAt")));
	for (size_t i = 0; i < json_array_size(scopes); i++)
		(void)printf("%s%s", i > 0 ? "," : "",
			     json_string_value(json_array_get(scopes, i)));
	(void)printf("%s%s\n", *name ? "  " : "", name);
}

/* ctx is an array for JSON, or NULL. */
static int token_list_one(void *ctx, const struct token *token, struct err *err)
{
	(void)err;
	if (ctx)
		(void)json_array_append_new(ctx, token_describe(token));
	else
		token_print_row(token);
	return 0;
}

static int token_list(const struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *list = cli_has(cli, "json") ? json_array() : NULL;
	int found = cli_find_store(cli, &store, err);

	if (found < 0)
		return -1;
	if (found == 1 && (meta_begin(store, META_READ, &meta, err) < 0 ||
			   token_each(meta, token_list_one, list, err) < 0))
		return -1;
	if (list)
		human_json(list, stdout);
	return 0;
}

static int token_end(const struct cli *cli, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	AUTO(meta) struct meta *meta = NULL;

	if (cli->arg_count != 2)
		return err_set(err, ERR_INVALID, "expected hearth token revoke ID");
	if (cli_open_store(cli, &store, err) < 0 || meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    token_revoke(meta, str_of(cli->args[1]), err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int run(struct cli *cli, struct err *err)
{
	const char *action = cli->args[0];

	if (cli->arg_count == 2 && strcmp(action, "revoke") != 0)
		return err_set(err, ERR_INVALID, "unexpected argument %s", cli->args[1]);
	if (strcmp(action, "create") == 0)
		return token_make(cli, err);
	if (strcmp(action, "list") == 0)
		return token_list(cli, err);
	if (strcmp(action, "revoke") == 0)
		return token_end(cli, err);
	return err_set(err, ERR_INVALID, "token %s: expected create, list or revoke ID", action);
}

static const struct cli_option options[] = {
	{"scope", "SCOPE",
	 "what it may: admin, operate, read, or pull, push or delete with or without :REPOSITORIES",
	 true},
	{"name", "NAME", "what it is for, as the list has it", false},
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_token = {
	.name = "token",
	.arguments = "create|list|revoke [ID]",
	.summary = "make, list and revoke the tokens that requests to the daemon need",
	.detail = "A new token is printed once, and only its hash is kept. What is revoked is\n"
		  "refused from the next request on. It works on the data directory, with a\n"
		  "daemon or without one. REPOSITORIES is a pattern, as in pull:team/*; --scope\n"
		  "may be given several times. To log in to the daemon's registry the token is\n"
		  "the password.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 2,
	.run = run,
};
