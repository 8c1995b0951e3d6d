/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_answer_priv.h - a call for an upstream's repository, on its way to an
 * answer: what it waits for between its tries, and how it ends.
 */
#pragma once

#include "registry/mirror_priv.h"
#include "registry/v2.h"

#define MIRROR_PATIENCE_MS 3000 /* for an upstream, where an older answer is here */
#define MIRROR_WAIT_MS 180000   /* where none is: longer than any document takes */

/* The state of a call. */
struct mirror_visit {
	struct mirror_task *task; /* or NULL */
	int64_t began_ms;
};

struct mirror_visit *mirror_visit_of(struct v2_call *call);

/*
 * Want this: 1 the upstream gave it, of a blob: has begun to; 0 the call waits
 * for it, patience_ms at most; -1 and why there is nothing.
 */
int mirror_visit_ask(struct v2_call *call, const struct mirror_wish *wish, int64_t patience_ms,
		     struct err *err) MUST_CHECK;

/* Want something else. */
void mirror_visit_drop(struct mirror_visit *visit);

/* Say why there is nothing. */
void mirror_refuse(struct v2_call *call, const struct mirror_place *place, const struct err *why);

/* Answer by what is here, with this digest. */
void mirror_serve(struct v2_call *call, const struct mirror_place *place,
		  const struct digest *digest);

/* The upstream itself says no: there is nothing that could be meant instead. */
static inline bool mirror_is_no(const struct err *why)
{
	return why->kind == ERR_NOT_FOUND || why->kind == ERR_UNAUTHORIZED ||
	       why->kind == ERR_DENIED;
}

/* The answer is what the upstream said earlier, since it cannot be asked now. */
void mirror_mark_stale(struct v2_call *call, const struct mirror_place *place);

/* The answer was here, and the upstream was not asked for it. */
void mirror_count_hit(const struct v2_call *call, const struct mirror_place *place);

void mirror_answer_manifest(struct v2_call *call, const struct mirror_place *place);
void mirror_answer_blob(struct v2_call *call, const struct mirror_place *place);
void mirror_answer_tags(struct v2_call *call, const struct mirror_place *place);
void mirror_answer_referrers(struct v2_call *call, const struct mirror_place *place);
