/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_bench.h - a mirror over a store of its own, a stand-in for its upstream,
 * and clients that ask as the server would let them.
 *
 *	cmocka_unit_test_setup_teardown(test, mirror_bench_new, mirror_bench_free)
 *
 *	struct mirror_bench *bench = *state;
 *	mirror_bench_open(bench, upstream_serves, NULL);
 *	mirror_bench_get(bench, "/v2/up.example/acme/tool/manifests/1.0", &got);
 *
 * The upstream's image acme/tool has a tag, 1.0, a manifest and a blob.
 */
#pragma once

#include "layers/blob.h"
#include "registry/v2.h"
#include "tests/layers/store_fixture.h"
#include "tests/registry/standin.h"

#define BENCH_BLOB_SIZE ((size_t)300000)
#define BENCH_UP "up.example"
#define BENCH_TAG "/v2/" BENCH_UP "/acme/tool/manifests/1.0"

struct mirror_bench {
	struct store_fixture *fixture;
	struct standin server;
	struct standin other; /* another host, as ports go */
	struct mirror_upstream_spec spec;
	struct mirror_options options;
	struct mirror *mirror;
	struct v2 v2;
	bool may_push;
	char place[64];
	char blob[BENCH_BLOB_SIZE];
	char blob_name[DIGEST_TEXT_MAX];
	char manifest[1024];
	char manifest_name[DIGEST_TEXT_MAX];
	enum digest_algorithm algorithm; /* of both names */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t wakes; /* guarded by lock */
	/* by the handlers: */
	atomic_int manifests; /* GETs of it */
	atomic_int heads;     /* HEADs of anything */
	atomic_int blobs;     /* GETs of it */
	atomic_int step;
	atomic_bool down; /* closes each connection */
	atomic_bool flag;
};

int mirror_bench_new(void **state);
int mirror_bench_free(void **state);

/* Start it all, as spec and options have it by now. */
void mirror_bench_open(struct mirror_bench *bench, standin_fn *fn, standin_fn *other);

/* The mirror stops and starts again, over the same store. */
void mirror_bench_reopen(struct mirror_bench *bench);

struct mirror_got {
	unsigned status;
	char headers[1024]; /* "Name: value\n" each */
	char *body;
	size_t len;
	bool cut;     /* the connection, before the body's end */
	bool endless; /* it came without a length */
};

struct mirror_want {
	const char *path;
	const char *ns; /* or NULL, here and below */
	const char *range;
	const char *query; /* a parameter, beside ns */
	const char *value;
	struct http_response *response; /* gets a stream, which is not read */
	enum http_method method;
	bool impatient; /* its time is over before anything happens */
};

/* Ask until there is an answer, and read it. The caller frees got->body. */
void mirror_bench_ask(struct mirror_bench *bench, const struct mirror_want *want,
		      struct mirror_got *got);
void mirror_got_done(struct mirror_got *got);

/* GET, and no body: its status. */
unsigned mirror_bench_status(struct mirror_bench *bench, const char *path);

/* "/v2/up.example/acme/tool/blobs/sha256:...", and of a manifest. */
const char *mirror_bench_path(const char *kind, const char *name, char out[static 512]);

/* The answer is the whole blob, or the manifest. */
void check_is_blob(const struct mirror_bench *bench, const struct mirror_got *got);
void check_is_manifest(const struct mirror_bench *bench, const struct mirror_got *got);

/* Ask for the blob, or a part of it; range may be NULL. */
void mirror_bench_ask_blob(struct mirror_bench *bench, enum http_method method, const char *range,
			   struct mirror_got *got);
void check_gets_blob(struct mirror_bench *bench);

/* It is not kept: the next one who asks gets it from the upstream, honest from now on (flag). */
void check_blob_is_not_kept(struct mirror_bench *bench);

/* What an upstream should do, and parts of it. */
standin_fn upstream_serves;
bool upstream_is_for(const struct standin_request *request, const char *method, const char *what);
void upstream_say_manifest(const struct mirror_bench *bench, const struct standin_request *request);
void upstream_say_blob(const struct mirror_bench *bench, const struct standin_request *request);

#define TEST(name) cmocka_unit_test_setup_teardown(name, mirror_bench_new, mirror_bench_free)
