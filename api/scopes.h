/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scopes.h - what a token allows in which repositories: its scopes "pull",
 * "push" and "delete", with or without ":GLOB" (token.h); an access token may
 * have "list", too (token_flow.h).
 *
 * In a glob, * stands for any bytes, also for none and for /, and ? for one.
 *
 * Ownership: counted; what is shared is never changed. NULL allows nothing.
 */
#pragma once

#include "layers/base/json.h"
#include "registry/v2_path.h"

struct scopes;

/* Of a token's array of strings; others than these are left out. NULL where none is left. */
struct scopes *scopes_new(const json_t *list);

struct scopes *scopes_ref(struct scopes *scopes);
void scopes_unref(struct scopes *scopes);

bool scopes_allow(const struct scopes *scopes, enum v2_action action, struct str repository);

bool scopes_match(struct str glob, struct str text);

/* Whether the glob matches anything that goes on behind this text. */
bool scopes_match_start(struct str glob, struct str start);

DEFINE_AUTO(scopes, struct scopes *, scopes_unref);
