/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puller.c - the program `hearth-puller`: one image from a registry or
 * layout, or to a registry; one request to the daemon.
 *
 * It is not a role of hearth-worker because libcurl brings 25 libraries, which
 * take longer to load than a step to run.
 */
#include "api/call.h"
#include "api/role.h"
#include "bake/work.h"
#include "layers/base/json.h"

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"pull", work_pull},
					    {"push", work_push},
					    {"survey", work_survey},
					    {"call", call_serve}};

	json_wipe_released(); /* its request holds a password */
	return role_main(roles, sizeof(roles) / sizeof(roles[0]), argc, argv);
}
