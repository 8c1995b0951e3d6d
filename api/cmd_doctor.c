/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `hearth doctor`: what this host can do, and what to do about it. */
#include "api/cli.h"
#include "api/human.h"
#include "bake/asker.h"

#include <string.h>

static const char *doctor_text(const json_t *check, const char *key)
{
	const char *text = json_string_value(json_object_get(check, key));

	return text ? text : "";
}

static void doctor_print(const json_t *check)
{
	auto_free char *found = human_text(str_of(doctor_text(check, "found")));

	(void)printf("%-5s %-16s %s\n", doctor_text(check, "verdict"), doctor_text(check, "name"),
		     found);
	if (*doctor_text(check, "advice"))
		(void)printf("%-5s %-16s -> %s\n", "", "", doctor_text(check, "advice"));
}

static int run(struct cli *cli, struct err *err)
{
	const struct asker asker = {.worker_path = cli->worker_path, .cancel = cli->cancel};
	AUTO(json) json_t *request = json_object();
	AUTO(json) json_t *checks = NULL;
	size_t failed = 0;

	json_set_text(request, "data", cli->data_path);
	if (asker_call(&asker, "doctor", request, &checks, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *check = json_array_get(checks, i);

		failed += strcmp(doctor_text(check, "verdict"), "fail") == 0;
		if (!cli_has(cli, "json"))
			doctor_print(check);
	}
	if (cli_has(cli, "json"))
		human_json(checks, stdout);
	if (failed > 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "%zu of %zu checks failed: this host cannot "
			       "run steps yet",
			       failed, json_array_size(checks));
	return 0;
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_doctor = {
	.name = "doctor",
	.arguments = "",
	.summary = "say what this host can and cannot do",
	.detail = "Kernel features, the runtime, cgroups and network rules are tried for real.\n"
		  "The exit code is 69 when something is missing that steps need.\n",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 0,
	.args_max = 0,
	.run = run,
};
