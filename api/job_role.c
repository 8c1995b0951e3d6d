/* SPDX-License-Identifier: Apache-2.0 */
#include "api/job_role.h"

#include "api/access.h"
#include "api/settings.h"
#include "bake/job_work.h"

#include <string.h>

static int job_role_bake(struct err *err)
{
	struct cli cli = {0};
	int result = settings_programs(&cli, err);

	if (result == 0) {
		const struct job_host host = {
			.worker_path = cli.worker_path,
			.puller_path = cli.puller_path,
			.agent_path = cli.agent_path,
			.login = access_for,
		};

		result = job_work(&host);
	}
	free(cli.worker_path);
	free(cli.puller_path);
	free(cli.agent_path);
	return result;
}

int job_role_run(const char *name)
{
	struct err err = {0};
	int code;

	if (!name || strcmp(name, "bake") != 0) {
		(void)fprintf(stderr,
			      "hearth: this role is started by the daemon, and by nobody else\n");
		return err_exit_code(ERR_INVALID);
	}
	code = settings_log(&err) < 0 ? -1 : job_role_bake(&err);
	if (code < 0)
		(void)fprintf(stderr, "hearth: %s\n", err.text);
	return code < 0 ? err_exit_code(err.kind) : code;
}
