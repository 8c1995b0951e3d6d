/* SPDX-License-Identifier: Apache-2.0 */
/* work_log_priv.h - what a step wrote, kept for `hearth logs`. */
#pragma once

#include "bake/hub.h"
#include "layers/step.h"

/* No more will come: all of it, in the record where it is short, else a blob of its own. */
int work_log_keep(struct store *store, struct hub *hub, struct step_log *out, struct err *err)
	MUST_CHECK;

/*
 * Of a step that failed: kept under its key (failure.h), and the error says how
 * to read it. Where that fails the error stays as it is.
 */
void work_log_keep_failure(struct store *store, struct hub *hub, const struct digest *key,
			   struct err *why);
