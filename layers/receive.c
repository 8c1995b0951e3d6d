/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive.c - three threads between the network and the disk.
 *
 *	keeper    blob ring   -> blob writer (not committed)
 *	inflater  inflate ring -> inflate, diff id -> tar ring
 *	unpacker  tar ring    -> staged tree
 *
 * The order at the end: all threads, then size, digest and diff id, then the
 * blob, then the tree. A thread that fails abandons its ring, which stops
 * whoever feeds it; its reason is the one that is told. Only a tar that is
 * corrupt lets the rest of the blob come in first.
 */
#include "layers/receive.h"

#include "layers/base/ring.h"
#include "layers/base/thread.h"
#include "layers/layer.h"
#include "layers/proof.h"

#include <fcntl.h>
#include <sys/stat.h>

#define TREE_NAME "tree" /* in the staging directory */

struct receive_task {
	pthread_t thread;
	bool running;
	struct err err; /* ERR_NONE when it went well; read after the join */
};

struct receive {
	struct store *store;
	struct receive_spec spec;
	uint64_t received;
	struct blob_writer *blob;
	struct staging staging;
	int treefd; /* -1 where the tree is there already */
	struct ring blob_ring;
	struct ring inflate_ring;
	struct ring tar_ring;
	struct receive_task keeper;
	struct receive_task inflater;
	struct receive_task unpacker;
	struct sink plain; /* of the inflater: hashes and passes on */
	struct hasher tar;
	struct hasher other;   /* of the tar, for a diff id that is no sha256 */
	struct digest diff_id; /* the sha256, once all has come */
	uint64_t tar_size;
	uint64_t behind;
};

static uint64_t receive_max_bytes(const struct receive *receive)
{
	uint64_t max = receive->spec.limits.max_bytes;

	return max ? max : UNPACK_BYTES_MAX;
}

static void *receive_keep(void *ctx)
{
	struct receive *receive = ctx;
	struct source *from = &receive->blob_ring.source;
	struct err *err = &receive->keeper.err;
	struct str bytes;

	while (from->read(from, &bytes, err) == 1) {
		if (blob_writer_add(receive->blob, bytes, err) < 0)
			break;
	}
	if (err->kind != ERR_NONE)
		ring_abandon(&receive->blob_ring, err);
	return NULL;
}

static int receive_take_plain(struct sink *sink, struct str bytes, struct err *err)
{
	struct receive *receive = container_of(sink, struct receive, plain);

	if (cancel_check(receive->spec.cancel, err) < 0 ||
	    cancel_check(receive->spec.cancel_too, err) < 0)
		return -1;
	hasher_add(&receive->tar, bytes);
	if (receive->other.md)
		hasher_add(&receive->other, bytes);
	receive->tar_size += bytes.len;
	if (receive->treefd < 0)
		return 0;
	return receive->tar_ring.sink.write(&receive->tar_ring.sink, bytes, err);
}

static int receive_inflate_all(struct receive *receive, struct err *err)
{
	AUTO(inflater) struct inflater *inflater = NULL;
	struct source *from = &receive->inflate_ring.source;
	struct str bytes;
	int more;

	if (inflater_open(&receive->plain, receive_max_bytes(receive), &inflater, err) < 0)
		return -1;
	while ((more = from->read(from, &bytes, err)) == 1) {
		if (inflater_write(inflater, bytes, err) < 0)
			return -1;
	}
	if (more < 0 || inflater_finish(inflater, err) < 0)
		return -1;
	receive->behind = inflater_behind(inflater);
	return 0;
}

/*
 * Bytes that were damaged on the way look like a bad layer until all of them
 * have come and their digest shows which it is. So read the rest.
 */
static void receive_let_pass(struct source *from)
{
	struct err over = {0};
	struct str bytes;

	while (from->read(from, &bytes, &over) == 1)
		;
}

static void *receive_inflate(void *ctx)
{
	struct receive *receive = ctx;
	struct err *err = &receive->inflater.err;

	if (receive_inflate_all(receive, err) == 0) {
		ring_finish(&receive->tar_ring);
		return NULL;
	}
	ring_fail(&receive->tar_ring, err);
	if (err->kind == ERR_CORRUPT)
		receive_let_pass(&receive->inflate_ring.source);
	else
		ring_abandon(&receive->inflate_ring, err);
	return NULL;
}

static void *receive_unpack(void *ctx)
{
	struct receive *receive = ctx;
	struct err *err = &receive->unpacker.err;

	if (unpack_tar(receive->treefd, &receive->tar_ring.source, &receive->spec.limits, err) < 0)
		ring_abandon(&receive->tar_ring, err);
	return NULL;
}

static int receive_start(struct receive_task *task, void *(*run)(void *), void *ctx,
			 struct err *err)
{
	if (thread_start(&task->thread, run, ctx, err) < 0)
		return -1;
	task->running = true;
	return 0;
}

static void receive_join(struct receive_task *task)
{
	if (task->running)
		(void)pthread_join(task->thread, NULL);
	task->running = false;
}

/* A place for the tree, unless it is known to be there already. */
static int receive_stage(struct receive *receive, struct err *err)
{
	const struct digest *diff_id = &receive->spec.diff_id;
	int held =
		diff_id->algorithm == DIGEST_SHA256 ? tree_find(receive->store, diff_id, err) : 0;

	if (held != 0)
		return held < 0 ? -1 : 0;
	if (staging_open(receive->store, &receive->staging, err) < 0)
		return -1;
	if (mkdirat(receive->staging.fd, TREE_NAME, 0755) < 0)
		return err_os(err, errno, "make a tree");
	receive->treefd =
		openat(receive->staging.fd, TREE_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (receive->treefd < 0)
		return err_os(err, errno, "open a tree");
	if (fchmod(receive->treefd, 0755) < 0) /* whatever our umask is */
		return err_os(err, errno, "make a tree");
	return 0;
}

static struct receive *receive_new(struct store *store, const struct receive_spec *spec)
{
	struct receive *receive = calloc(1, sizeof(*receive));

	if (!receive)
		abort();
	receive->store = store;
	receive->spec = *spec;
	receive->staging = STAGING_INIT;
	receive->treefd = -1;
	receive->plain.write = receive_take_plain;
	hasher_init(&receive->tar);
	if (spec->diff_id.algorithm != DIGEST_SHA256)
		hasher_init_as(&receive->other, spec->diff_id.algorithm);
	return receive;
}

int receive_open(struct store *store, const struct receive_spec *spec, struct receive **out,
		 struct err *err)
{
	AUTO(receive) struct receive *receive = receive_new(store, spec);

	if (ring_init(&receive->blob_ring, RECEIVE_RING_BYTES, err) < 0 ||
	    ring_init(&receive->inflate_ring, RECEIVE_RING_BYTES, err) < 0 ||
	    ring_init(&receive->tar_ring, RECEIVE_RING_BYTES, err) < 0 ||
	    receive_stage(receive, err) < 0 || blob_writer_open(store, &receive->blob, err) < 0)
		return -1;
	blob_writer_hash_as(receive->blob, spec->blob.algorithm);
	if (receive_start(&receive->keeper, receive_keep, receive, err) < 0 ||
	    receive_start(&receive->inflater, receive_inflate, receive, err) < 0)
		return -1;
	if (receive->treefd >= 0 &&
	    receive_start(&receive->unpacker, receive_unpack, receive, err) < 0)
		return -1;
	*out = steal_ptr(&receive);
	return 0;
}

int receive_write(struct receive *receive, struct str bytes, struct err *err)
{
	struct sink *blob = &receive->blob_ring.sink;
	struct sink *inflate = &receive->inflate_ring.sink;

	if (bytes.len > receive->spec.size - receive->received)
		return err_set(err, ERR_CORRUPT, "more than the %llu bytes that were announced",
			       (unsigned long long)receive->spec.size);
	receive->received += bytes.len;
	if (blob->write(blob, bytes, err) < 0)
		return -1;
	return inflate->write(inflate, bytes, err);
}

static int receive_check_diff_id(struct receive *receive, struct err *err)
{
	struct digest found;

	hasher_final(&receive->tar, &receive->diff_id);
	found = receive->diff_id;
	if (receive->other.md)
		hasher_final(&receive->other, &found);
	return proof_compare(&found, &receive->spec.diff_id, err);
}

/* All is verified: record the tree, if we made it, and the blob's diff id. */
static int receive_record(struct receive *receive, struct err *err)
{
	const struct receive_spec *spec = &receive->spec;
	const struct digest *diff_id = &receive->diff_id;
	auto_close int hold = -1;
	AUTO(meta) struct meta *meta = NULL;
	bool ours = receive->treefd >= 0;

	if (ours)
		hold = tree_place(receive->store, diff_id, receive->staging.fd, TREE_NAME, err);
	if (ours && hold < 0)
		return -1;
	if (meta_begin(receive->store, META_WRITE, &meta, err) < 0 ||
	    (ours && tree_record(meta, receive->store, diff_id, err) < 0) ||
	    proof_put(meta, &spec->blob, diff_id, err) < 0 ||
	    proof_put(meta, &spec->blob, &spec->diff_id, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/*
 * Why it failed, if it did. Damaged bytes make every thread fail somehow, so
 * the digest is checked first; the unpacker's error goes before the inflater's,
 * which it only stopped.
 */
static int receive_judge(struct receive *receive, struct err *err)
{
	const struct receive_task *const tasks[] = {&receive->keeper, &receive->unpacker,
						    &receive->inflater};

	if (receive->received != receive->spec.size)
		return err_set(err, ERR_CORRUPT, "%llu bytes came of the %llu that were announced",
			       (unsigned long long)receive->received,
			       (unsigned long long)receive->spec.size);
	if (receive->keeper.err.kind == ERR_NONE &&
	    blob_writer_check(receive->blob, &receive->spec.blob, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		if (tasks[i]->err.kind != ERR_NONE) {
			*err = tasks[i]->err;
			return -1;
		}
	}
	return receive_check_diff_id(receive, err);
}

int receive_finish(struct receive *receive, struct err *err)
{
	struct blob_info info;

	ring_finish(&receive->blob_ring);
	ring_finish(&receive->inflate_ring);
	receive_join(&receive->keeper);
	receive_join(&receive->inflater);
	receive_join(&receive->unpacker);
	if (receive_judge(receive, err) < 0 ||
	    blob_writer_commit(receive->blob, &receive->spec.blob, &info, err) < 0)
		return -1;
	receive->spec.blob = info.digest; /* records know it by its sha256 alone */
	return receive_record(receive, err);
}

void receive_report(const struct receive *receive, struct receive_report *out)
{
	*out = (struct receive_report){.size = receive->received,
				       .tar_size = receive->tar_size,
				       .behind = receive->behind};
}

bool receive_is_swollen(const struct receive_report *report)
{
	return report->tar_size > RECEIVE_SWOLLEN_BYTES &&
	       report->tar_size / RECEIVE_SWOLLEN_RATIO > report->size;
}

void receive_close(struct receive *receive)
{
	struct err gone = {0};

	if (!receive)
		return;
	(void)err_set(&gone, ERR_CANCELLED, "the layer was given up");
	if (receive->keeper.running)
		ring_fail(&receive->blob_ring, &gone);
	if (receive->inflater.running)
		ring_fail(&receive->inflate_ring, &gone);
	receive_join(&receive->keeper);
	receive_join(&receive->inflater);
	if (receive->unpacker.running) /* the inflater may never have been started */
		ring_fail(&receive->tar_ring, &gone);
	receive_join(&receive->unpacker);
	ring_done(&receive->blob_ring);
	ring_done(&receive->inflate_ring);
	ring_done(&receive->tar_ring);
	blob_writer_close(receive->blob);
	auto_close_release(&receive->treefd);
	staging_close(&receive->staging);
	hasher_done(&receive->tar);
	hasher_done(&receive->other);
	free(receive);
}

/* The stored layer's tar goes where the inflater's would. */
static int receive_read_stored(struct receive *receive, struct err *err)
{
	if (layer_read(receive->store, &receive->spec.blob, receive_max_bytes(receive),
		       &receive->plain, err) < 0) {
		ring_fail(&receive->tar_ring, err);
		receive_join(&receive->unpacker);
		if (receive->unpacker.err.kind != ERR_NONE && err->kind != ERR_CORRUPT)
			*err = receive->unpacker.err;
		return -1;
	}
	ring_finish(&receive->tar_ring);
	receive_join(&receive->unpacker);
	if (receive->unpacker.err.kind != ERR_NONE) {
		*err = receive->unpacker.err;
		return -1;
	}
	return receive_check_diff_id(receive, err);
}

int receive_unpack_stored(struct store *store, const struct receive_spec *spec, struct err *err)
{
	AUTO(receive) struct receive *receive = receive_new(store, spec);

	if (ring_init(&receive->blob_ring, 1, err) < 0 ||
	    ring_init(&receive->inflate_ring, 1, err) < 0 ||
	    ring_init(&receive->tar_ring, RECEIVE_RING_BYTES, err) < 0 ||
	    receive_stage(receive, err) < 0)
		return -1;
	if (receive->treefd >= 0 &&
	    receive_start(&receive->unpacker, receive_unpack, receive, err) < 0)
		return -1;
	if (receive_read_stored(receive, err) < 0)
		return -1;
	return receive_record(receive, err);
}

/* 1 and the tree's name, 0 nobody has looked, -1. */
static int receive_find_proof(struct store *store, const struct receive_spec *spec,
			      struct digest *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return proof_check(meta, &spec->blob, &spec->diff_id, out, err);
}

int receive_have_tree(struct store *store, const struct receive_spec *spec, struct err *err)
{
	struct digest tree;
	int found = receive_find_proof(store, spec, &tree, err);

	if (found == 1)
		found = tree_find(store, &tree, err);
	return found == 0 ? receive_unpack_stored(store, spec, err) : found < 0 ? -1 : 0;
}
