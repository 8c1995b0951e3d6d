/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_images.c - what the bench needs of a store, without a bake.
 *
 *	many_images DIR images N     N small images: layer, config, manifest,
 *	                             record; of each two one has a tag
 *	many_images DIR fill N SEED [keep]
 *	                             N MiB in blobs of 4 MiB that nothing names,
 *	                             or of which a tagged image has each second
 *	                             one; prints the milliseconds
 *	many_images DIR account      bytes on disk, bytes in use
 */
#include "bake/image.h"
#include "layers/base/clock.h"
#include "layers/base/thread.h"
#include "layers/blob.h"
#include "layers/punch.h"
#include "registry/tag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1024 * 1024)
#define FILL_BLOB (4 * MIB)
#define LANES 64

static int put_text(struct store *store, const char *text, struct digest *out, struct err *err)
{
	return blob_put(store, str_of(text), out, err);
}

/* The config and manifest of an image of this one layer. */
static int put_manifest(struct store *store, int n, const struct blob_info *layer,
			struct digest *out, struct err *err)
{
	struct digest config;
	char digests[2][DIGEST_TEXT_MAX];
	char text[1024];

	digest_format(&layer->digest, digests[0]);
	(void)snprintf(
		text, sizeof(text),
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"N=%d\"]},"
		"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
		n, digests[0]);
	if (put_text(store, text, &config, err) < 0)
		return -1;
	digest_format(&config, digests[1]);
	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\",\"size\":%zu},"
		       "\"layers\":[{\"digest\":\"%s\",\"size\":%ju}]}",
		       digests[1], strlen(text), digests[0], (uintmax_t)layer->size);
	return put_text(store, text, out, err);
}

static int put_blobs(struct store *store, int n, struct digest *out, struct err *err)
{
	struct blob_info layer = {0};
	char text[64];

	layer.size = (uint64_t)snprintf(text, sizeof(text), "layer %d", n);
	if (put_text(store, text, &layer.digest, err) < 0)
		return -1;
	return put_manifest(store, n, &layer, out, err);
}

static int put_records(struct meta *meta, int n, const struct digest *manifest, struct err *err)
{
	struct image image = {.manifest = *manifest,
			      .size = 1000,
			      .layers = 1,
			      .created_ms = 1,
			      .baked_ms = clock_now_ms(),
			      .slug = STR("many"),
			      .base = STR("scratch")};
	struct tag tag = {.target = *manifest, .manifest = *manifest, .at_ms = image.baked_ms};
	char name[64];

	if (image_put(meta, &image, err) < 0 ||
	    image_put_steps(meta, manifest, manifest, 1, err) < 0)
		return -1;
	if (n % 2)
		return 0;
	platform_host(&tag.platform);
	(void)snprintf(name, sizeof(name), "docker.io/library/many:%d", n);
	return tag_put(meta, str_of(name), &tag, err);
}

/* Some of the blobs, beside others: whoever waits for a commit shares it. */
struct lane {
	struct store *store;
	pthread_t thread;
	struct digest *manifests; /* of all */
	int from;
	int count;
	struct err err;
};

static void *lane_run(void *ctx)
{
	struct lane *lane = ctx;

	for (int n = lane->from; n < lane->count; n += LANES) {
		if (put_blobs(lane->store, n, &lane->manifests[n], &lane->err) < 0)
			break;
	}
	return NULL;
}

static int put_all_blobs(struct store *store, int count, struct digest *manifests, struct err *err)
{
	struct lane lanes[LANES];
	int rc = 0;

	for (int i = 0; i < LANES; i++) {
		lanes[i] = (struct lane){
			.store = store, .manifests = manifests, .from = i, .count = count};
		if (thread_start(&lanes[i].thread, lane_run, &lanes[i], err) < 0)
			abort();
	}
	for (int i = 0; i < LANES; i++) {
		(void)pthread_join(lanes[i].thread, NULL);
		if (lanes[i].err.kind != ERR_NONE) {
			*err = lanes[i].err;
			rc = -1;
		}
	}
	return rc;
}

static int images(struct store *store, int count, struct err *err)
{
	auto_free struct digest *manifests = calloc((size_t)count, sizeof(*manifests));
	AUTO(meta) struct meta *meta = NULL;

	if (!manifests)
		abort();
	if (put_all_blobs(store, count, manifests, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	for (int n = 0; n < count; n++) {
		if (put_records(meta, n, &manifests[n], err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

/* It stays: a tagged image has it. */
static int keep(struct store *store, int n, const struct blob_info *layer, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest manifest;

	if (put_manifest(store, n, layer, &manifest, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    put_records(meta, n, &manifest, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* In pieces of the sizes that frames have. */
static int fill(struct store *store, size_t mib, uint64_t seed, bool keeps, struct err *err)
{
	int number = (int)(seed % 1000000) * 1000;
	int64_t start = clock_monotonic_ms();
	auto_free uint64_t *bytes = malloc(BLOB_CHUNK_MAX);

	if (!bytes)
		abort();
	for (size_t done = 0; done < mib * MIB; done += FILL_BLOB) {
		AUTO(blob_writer) struct blob_writer *writer = NULL;
		struct blob_info info;

		if (blob_writer_open(store, &writer, err) < 0)
			return -1;
		for (size_t at = 0, len; at < FILL_BLOB; at += len) {
			const struct fingerprint plain = {.bytes = {1}};

			seed = seed * 6364136223846793005 + 1442695040888963407;
			len = 8 * (2048 + (seed >> 33) % 14336);
			for (size_t i = 0; i < len / 8; i++)
				bytes[i] = seed + i * 0x9e3779b97f4a7c15;
			if (blob_writer_add_frame(writer, "bench", &plain, 1,
						  (struct str){(const char *)bytes, len}, err) < 0)
				return -1;
		}
		if (blob_writer_commit(writer, NULL, &info, err) < 0)
			return -1;
		if (keeps && done / FILL_BLOB % 2 == 0 && keep(store, number++ * 2, &info, err) < 0)
			return -1;
	}
	(void)printf("%jd\n", (intmax_t)(clock_monotonic_ms() - start));
	return 0;
}

static int account(struct store *store, struct err *err)
{
	struct punch_account found;

	if (punch_measure(store, &found, err) < 0)
		return -1;
	(void)printf("%ju %ju\n", (uintmax_t)found.disk_bytes, (uintmax_t)found.live_bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct store_options options = {.create = true};
	AUTO(store) struct store *store = NULL;
	struct err err;
	int rc;

	if (argc < 3)
		return 2;
	options.path = argv[1];
	rc = store_open(&options, &store, &err);
	if (rc == 0 && argc == 4 && strcmp(argv[2], "images") == 0)
		rc = images(store, (int)strtoumax(argv[3], NULL, 10), &err);
	else if (rc == 0 && argc >= 5 && strcmp(argv[2], "fill") == 0)
		rc = fill(store, strtoumax(argv[3], NULL, 10), strtoumax(argv[4], NULL, 10),
			  argc == 6, &err);
	else if (rc == 0)
		rc = account(store, &err);
	if (rc < 0)
		(void)fprintf(stderr, "%s\n", err.text);
	return rc < 0 ? 1 : 0;
}
