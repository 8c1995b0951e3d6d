/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_collector.c - a process that fills a store, forgets half of it, collects
 * and gives space back, until it is killed.
 *
 *	store_collector DIR SEED
 *
 * Table `written` names the blobs that are to be there. A line is printed for
 * each round.
 */
#include "layers/blob.h"
#include "layers/collect.h"
#include "layers/lease.h"
#include "layers/punch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COLLECTOR_MAP ((uint64_t)1 << 30)
#define COLLECTOR_BLOBS 24
#define COLLECTOR_BLOB_MAX ((size_t)400 * 1024)

struct worker {
	struct store *store;
	unsigned random;
	char bytes[COLLECTOR_BLOB_MAX];
};

static int put_one(struct worker *worker, struct err *err)
{
	AUTO(json) json_t *value = json_pack("{s:i}", "v", 1);
	AUTO(meta) struct meta *meta = NULL;
	AUTO(lease) struct lease *lease = NULL;
	size_t len = 1 + (size_t)rand_r(&worker->random) % COLLECTOR_BLOB_MAX;
	char text[DIGEST_TEXT_MAX];
	struct digest digest;

	for (size_t i = 0; i + sizeof(int) <= len; i += 64) {
		int word = rand_r(&worker->random);

		memcpy(worker->bytes + i, &word, sizeof(word));
	}
	if (lease_open(worker->store, &lease, err) < 0 || lease_rest(lease, err) < 0 ||
	    blob_put(worker->store, (struct str){worker->bytes, len}, &digest, err) < 0 ||
	    meta_begin(worker->store, META_WRITE, &meta, err) < 0 ||
	    meta_put(meta, "written", str_of(digest_format(&digest, text)), value, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

struct forgetting {
	struct worker *worker;
	struct meta *meta;
};

static int forget_some(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct forgetting *forgetting = ctx;

	(void)value;
	if (rand_r(&forgetting->worker->random) % 2)
		return 0;
	return meta_del(forgetting->meta, "written", key, err) < 0 ? -1 : 0;
}

static int forget(struct worker *worker, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct forgetting forgetting = {.worker = worker};

	if (meta_begin(worker->store, META_WRITE, &meta, err) < 0)
		return -1;
	forgetting.meta = meta;
	if (meta_each(meta, "written", STR(""), forget_some, &forgetting, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int no_names(struct str document, reach_add_fn *add, void *ctx, struct err *err)
{
	(void)document, (void)add, (void)ctx, (void)err;
	return 0;
}

static int keep_one(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct digest digest;

	(void)value;
	if (digest_parse(key, &digest, err) < 0)
		return -1;
	return collect_keep(ctx, &digest, err);
}

static int collect(struct worker *worker, struct err *err)
{
	const struct collect_options options = {.names = no_names};
	AUTO(collector) struct collector *collector = NULL;
	struct collect_result result;
	struct meta *meta;

	if (collect_open(worker->store, &options, &collector, err) < 0 ||
	    collect_mark(collector, &meta, err) < 0 ||
	    meta_each(meta, "written", STR(""), keep_one, collector, err) < 0)
		return -1;
	return collect_sweep(collector, &result, err);
}

static int work(struct worker *worker, const char *path, struct err *err)
{
	const struct store_options options = {
		.path = path, .map_bytes = COLLECTOR_MAP, .create = true};
	uint64_t bytes;

	if (store_open(&options, &worker->store, err) < 0)
		return -1;
	for (;;) {
		for (int i = 0; i < COLLECTOR_BLOBS; i++) {
			if (put_one(worker, err) < 0)
				return -1;
		}
		if (forget(worker, err) < 0 || collect(worker, err) < 0 ||
		    punch_store(worker->store, NULL, &bytes, err) < 0)
			return -1;
		(void)printf("%ju\n", (uintmax_t)bytes);
		(void)fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static struct worker worker;
	struct err err;

	if (argc != 3)
		return 2;
	worker.random = (unsigned)strtoumax(argv[2], NULL, 10);
	(void)work(&worker, argv[1], &err);
	(void)fprintf(stderr, "%s\n", err.text);
	return 1;
}
