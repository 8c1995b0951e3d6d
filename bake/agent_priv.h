/* SPDX-License-Identifier: Apache-2.0 */
/* agent_priv.h - the records of agents and versions, for a sync (agent_sync.c). */
#pragma once

#include "bake/agent.h"

#define AGENT_PREFIX "agt_"

int agent_new_id(struct meta *meta, int64_t now_ms, char out[static ID_TEXT_MAX], struct err *err)
	MUST_CHECK;

/* The agent's record and its slug's. */
int agent_put(struct meta *meta, const struct agent *agent, struct err *err) MUST_CHECK;

int agent_put_version(struct meta *meta, const struct agent *agent,
		      const struct agent_version *version, struct err *err) MUST_CHECK;

/* Forget the agent's slug. */
int agent_free_slug(struct meta *meta, const struct agent *agent, struct err *err) MUST_CHECK;
