/* SPDX-License-Identifier: Apache-2.0 */
#include "api/job_role.h"

#include "api/access.h"
#include "api/registries.h"
#include "api/settings.h"
#include "bake/job_work.h"

#include <string.h>

struct job_role {
	struct cli cli;
	struct credentials credentials;
	struct proxies proxies;
	struct registries registries;
};

static int job_role_access(void *ctx, struct str reference, const struct cancel *cancel,
			   struct job_access *out, struct err *err)
{
	struct job_role *role = ctx;

	if (access_for(reference, cancel, &role->credentials, err) < 0 ||
	    registries_open(&role->cli, reference, &role->registries, err) < 0 ||
	    access_proxies(&role->proxies, err) < 0)
		return -1;
	*out = (struct job_access){
		.user = str_of(role->credentials.user),
		.password = &role->credentials.password,
		.places = &role->registries.places,
		.proxies = &role->proxies,
	};
	return 0;
}

static int job_role_bake(struct job_role *role)
{
	const struct job_host host = {
		.worker_path = role->cli.worker_path,
		.puller_path = role->cli.puller_path,
		.agent_path = role->cli.agent_path,
		.runtime = role->cli.config.runtime,
		.gc = &role->cli.config.gc,
		.access = job_role_access,
		.ctx = role,
	};

	return job_work(&host);
}

static int job_role_unknown(struct cli *cli, struct err *err)
{
	(void)cli;
	return err_set(err, ERR_INVALID, "this role is started by the daemon, and by nobody else");
}

int job_role_run(int argc, char **argv)
{
	static const struct cli_option options[] = {CLI_OPTION_CONFIG, CLI_OPTION_HELP};
	static const struct cli_command command = {.name = "role",
						   .options = options,
						   .option_count =
							   sizeof(options) / sizeof(options[0]),
						   .run = job_role_unknown};
	struct job_role role = {.cli.command = &command};
	struct err err = {0};
	int code = 0;
	int result;

	if (argc < 1 || strcmp(argv[0], "bake") != 0)
		result = job_role_unknown(&role.cli, &err);
	else
		result = cli_parse(&role.cli, argc - 1, argv + 1, &err);
	if (result == 0)
		result = settings_role(&role.cli, &err);
	if (result == 0)
		code = job_role_bake(&role);
	if (result < 0) {
		(void)fprintf(stderr, "hearth: %s\n", err.text);
		code = err_exit_code(err.kind);
	}
	secret_done(&role.credentials.password);
	proxies_done(&role.proxies);
	registries_done(&role.registries);
	cli_done(&role.cli);
	return code;
}
