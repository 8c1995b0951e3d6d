/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_spec_priv.h - what may stand around an image: the agent's own keys, its
 * sandbox and its sub-agents.
 *
 * At the agent's level an unknown key is kept and is a warning; in `sandbox` and
 * below it is an error. Steps are not judged here, but by the bake.
 */
#pragma once

#include "layers/base/json.h"

/* Where the agent stands in a document: AGENT, or {"agent": AGENT}. Borrowed. */
struct agent_spec_found {
	json_t *agent;
	const char *path; /* "" or "agent" */
};

int agent_spec_find(json_t *document, json_t *warnings, struct agent_spec_found *out,
		    struct err *err) MUST_CHECK;

struct agent_spec_rules {
	const char *path; /* of the agent in its document, "" when it is the document */
	bool host_files;  /* it may name files of this host: never what came by HTTP */
};

/*
 * Check an agent; no defaults are filled in. Errors have path and expectation
 * (err.h). Warnings are appended to the array.
 */
int agent_spec_check(json_t *agent, const struct agent_spec_rules *rules, json_t *warnings,
		     struct err *err) MUST_CHECK;

/* Append a warning where this host cannot make the agent's machine. */
void agent_spec_warn_provider(const json_t *agent, const char *path, json_t *warnings);

/* [a-z0-9]+([._-][a-z0-9]+)*, at most AGENT_SLUG_MAX, and nothing that reads like an agent's id. */
#define AGENT_SLUG_MAX ((size_t)63)
bool agent_spec_is_slug(struct str slug);
