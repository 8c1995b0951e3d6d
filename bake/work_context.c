/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_context.c - the role that unpacks a context's tar.
 *
 *	thread: blob -> inflate -> ring        ours: ring -> staged directory
 *
 * The directory gets its name when all of the tar was good.
 */
#include "bake/tarball.h"
#include "bake/work.h"
#include "bake/work_call.h"
#include "layers/base/ring.h"
#include "layers/base/thread.h"
#include "layers/digest_json.h"
#include "layers/layer.h"
#include "layers/tree.h"
#include "layers/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CONTEXT_RING_BYTES ((size_t)1024 * 1024)
#define CONTEXT_NAME "context" /* in the staging directory */

struct context_work {
	struct work_call *call;
	struct store *store;
	struct digest digest;
	struct staging staging;
	struct ring ring;
	struct sink plain;      /* what the thread inflates into */
	struct err inflate_err; /* read after the join */
};

static inline void auto_context_work_release(struct context_work *work)
{
	if (work->ring.bytes)
		ring_done(&work->ring);
	staging_close(&work->staging);
}

static int work_context_take(struct sink *sink, struct str bytes, struct err *err)
{
	struct context_work *work = container_of(sink, struct context_work, plain);

	if (cancel_check(&work->call->cancel, err) < 0)
		return -1;
	return work->ring.sink.write(&work->ring.sink, bytes, err);
}

static void *work_context_inflate(void *ctx)
{
	struct context_work *work = ctx;

	if (layer_read(work->store, &work->digest, UNPACK_BYTES_MAX, &work->plain,
		       &work->inflate_err) < 0)
		ring_fail(&work->ring, &work->inflate_err);
	else
		ring_finish(&work->ring);
	return NULL;
}

static int work_context_unpack(struct context_work *work, int dirfd, struct err *err)
{
	pthread_t thread;
	int result;

	if (thread_start(&thread, work_context_inflate, work, err) < 0)
		return -1;
	result = unpack_files(dirfd, &work->ring.source, NULL, err);
	if (result < 0)
		ring_abandon(&work->ring, err);
	(void)pthread_join(thread, NULL);
	return result;
}

static int work_context_stage(struct context_work *work, struct err *err)
{
	auto_close int dirfd = -1;

	if (staging_open(work->store, &work->staging, err) < 0)
		return -1;
	if (mkdirat(work->staging.fd, CONTEXT_NAME, 0755) < 0)
		return err_os(err, errno, "make a directory");
	dirfd = openat(work->staging.fd, CONTEXT_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_os(err, errno, "open a directory");
	return work_context_unpack(work, dirfd, err);
}

static int work_context_place(struct context_work *work, struct err *err)
{
	auto_close int hold = -1;
	AUTO(meta) struct meta *meta = NULL;
	struct digest tree;

	tarball_tree(&work->digest, &tree);
	hold = tree_place(work->store, &tree, work->staging.fd, CONTEXT_NAME, err);
	if (hold < 0 || meta_begin(work->store, META_WRITE, &meta, err) < 0 ||
	    tree_record(meta, work->store, &tree, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int work_context_make(struct work_call *call, json_t **out, struct err *err)
{
	AUTO(context_work)
	struct context_work work = {
		.call = call,
		.store = call->store,
		.staging = STAGING_INIT,
		.plain.write = work_context_take,
	};

	if (digest_json_need(call->request, "", "digest", &work.digest, err) < 0 ||
	    work_need_root(err) < 0 || ring_init(&work.ring, CONTEXT_RING_BYTES, err) < 0 ||
	    work_context_stage(&work, err) < 0 || work_context_place(&work, err) < 0)
		return -1;
	*out = json_object();
	return 0;
}

int work_context(void)
{
	return work_call_run(work_context_make);
}
