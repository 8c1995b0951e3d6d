/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the program `hearth-worker`: the steps of a bake, their contexts, and what they need
 * of a host. */
#include "api/role.h"
#include "bake/work.h"
#include "layers/base/json.h"

static int work_all_steps(void)
{
	return work_steps(work_step);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{"steps", work_all_steps}, {"context", work_context}, {"convert", work_convert},
		{"check", work_check},     {"export", work_export},   {"doctor", work_doctor},
		{"list", work_list},
	};

	json_wipe_released(); /* a secret that is a variable passes through documents */
	return role_main(roles, sizeof(roles) / sizeof(roles[0]), argc, argv);
}
