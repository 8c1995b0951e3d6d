/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/kept.h"

#include "bake/status.h"

#include <inttypes.h>
#include <stdio.h>

struct str kept_owner(const char *agent_id, int64_t version, char text[static KEPT_MAX])
{
	(void)snprintf(text, KEPT_MAX, "%s.%" PRId64, agent_id, version);
	return str_of(text);
}

static bool kept_parse(struct str owner, struct str *agent_id, int64_t *version)
{
	uint64_t number;

	if (!str_cut(&owner, '.', agent_id) || !str_parse_number(owner, &number))
		return false;
	*version = (int64_t)number;
	return true;
}

bool kept_is_owner(struct str owner)
{
	struct str agent_id;
	int64_t version;

	return kept_parse(owner, &agent_id, &version);
}

int kept_is_orphan(struct meta *meta, struct str owner, struct err *err)
{
	AUTO(json) json_t *status = NULL;
	struct status_image previous;
	struct str agent_id;
	int64_t version;
	int found;

	if (!kept_parse(owner, &agent_id, &version))
		return 0;
	found = status_find(meta, agent_id, version, &status, err);
	if (found != 1)
		return found < 0 ? -1 : 1;
	return status_previous(status, &previous) ? 0 : 1;
}
