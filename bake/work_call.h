/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_call.h - a role of one request that works as long as its asker waits.
 *
 * The request names the store, where it needs one. The cancel is raised when the
 * asker has left; progress is thinned out, since it is for people.
 */
#pragma once

#include "bake/wire.h"
#include "layers/digest.h"
#include "layers/store.h"

struct work_call {
	json_t *request;     /* owned */
	struct store *store; /* or NULL */
	struct cancel cancel;
	int64_t told_ms;
};

/* Do it: *out is the answer, the caller's to own. */
typedef int work_call_fn(struct work_call *call, json_t **out, struct err *err);

/* The whole of a role's run; its exit code. */
int work_call_run(work_call_fn *fn);

/* How far one blob is. One with `often` is dropped if another was sent just now. */
struct work_progress {
	const char *event;
	const struct digest *digest;
	uint64_t done; /* bytes */
	uint64_t size;
	bool often;
};

void work_call_tell(struct work_call *call, const struct work_progress *progress);

/* Something odd, which is no failure, in a sentence. */
void work_call_warn(struct work_call *call, struct str text);
