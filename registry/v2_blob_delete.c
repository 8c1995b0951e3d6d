/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_blob_delete.h"

#include "registry/repository.h"

/* 1, 0 it was not there, -1. */
static int v2_blob_delete_record(const struct v2_call *call, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(call->v2->store, META_WRITE, &meta, err) < 0)
		return -1;
	found = repository_del(meta, call->path.repository, REPOSITORY_BLOB, &call->path.digest,
			       err);
	if (found <= 0)
		return found;
	return meta_commit(steal_ptr(&meta), err) < 0 ? -1 : 1;
}

void v2_blob_delete(struct v2_call *call)
{
	struct err err;
	int found = v2_blob_delete_record(call, &err);

	if (found == 1)
		call->response->status = 202;
	else if (found == 0)
		v2_refuse_digest(call->response, 404, V2_BLOB_UNKNOWN, &call->path.digest,
				 "the repository has no such blob");
	else
		v2_refuse_err(call->response, &err);
}
