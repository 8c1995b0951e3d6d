/* SPDX-License-Identifier: Apache-2.0 */
#include "api/image_check.h"

#include "bake/status.h"

#include <inttypes.h>

int image_check_ready(struct call *call, struct meta *meta, const struct agent *agent,
		      int64_t version, struct err *err)
{
	AUTO(json) json_t *status = NULL;
	const json_t *state;
	int found = status_find(meta, str_of(agent->id), version, &status, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "agent %s has no version %" PRId64, agent->slug,
			       version);
	if (found < 0)
		return -1;
	state = json_object_get(status, "status");
	if (status_is_ready(status) || str_equal(json_str(state), STR("none")))
		return 0;
	route_add_detail(call, "status", json_incref(drop_const(state)));
	if (str_equal(json_str(state), STR("failed")))
		return err_set(err, ERR_NOT_READY,
			       "the image of version %" PRId64 " of %s has failed: "
			       "its status says why",
			       version, agent->slug);
	return err_set(err, ERR_NOT_READY, "the image of version %" PRId64 " of %s is being baked",
		       version, agent->slug);
}
