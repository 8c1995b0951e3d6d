/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - what the steps of a version's image had made before its last rebake.
 *
 * A rebake puts its records in the place of theirs, and a rollback puts these
 * back, so that the next version stands on what is served. Meanwhile they are
 * drafts (layers/draft.h) of an owner that is no bake: the version.
 */
#pragma once

#include "layers/meta.h"

#define KEPT_MAX (ID_TEXT_MAX + sizeof(".9223372036854775807"))

/* What the version is called as an owner of drafts. */
struct str kept_owner(const char *agent_id, int64_t version, char text[static KEPT_MAX]);

/* Whether an owner is a version that nothing was kept for, or no more: 1, 0, -1; 0 for a bake. */
int kept_is_orphan(struct meta *meta, struct str owner, struct err *err) MUST_CHECK;

/* Whether it is a version at all. */
bool kept_is_owner(struct str owner);
