/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_bench.h - a blob, a stand-in that should serve it, and a fetch that
 * wants it.
 *
 *	cmocka_unit_test_setup_teardown(test, bench_new, bench_free)
 *
 *	struct bench *bench = *state;
 *	bench_open(bench, what_the_server_does, NULL);
 */
#pragma once

#include "registry/fetch_priv.h"
#include "tests/check.h"
#include "tests/registry/standin.h"

#define BLOB_SIZE ((size_t)100000)
#define BLOB_HALF ((size_t)40000)
#define BLOB_MAX ((size_t)1000000)

struct bench {
	struct standin server;
	struct standin other; /* another host, as ports go */
	struct cancel cancel;
	struct remote *remote;
	struct http *http;
	struct buf got;
	struct buf_sink sink;
	struct descriptor blob;
	char bytes[BLOB_SIZE];
	struct remote_spec spec;
	struct secret password; /* spec's */
	char host[64];
	/* by the handlers: */
	int step;
	bool leaked; /* a credential was seen where it must not be */
	bool flag;
	char seen[64];
};

int bench_new(void **state);
int bench_free(void **state);

/* Throw away and start anew, for a test that tries several ways. */
struct bench *bench_again(void **state);

/* Start the servers; `other` is NULL or what the second one does. What is in spec is used. */
void bench_open(struct bench *bench, standin_fn *fn, standin_fn *other);

/* Before bench_open(): who asks, and with which password. */
void bench_identify(struct bench *bench, const char *user, const char *password);

int bench_blob(struct bench *bench, struct err *err);
void check_whole(const struct bench *bench);

/* Part of the blob's bytes, and a whole answer with it. */
void say_bytes(const struct bench *bench, const struct standin_request *request, size_t from,
	       size_t to);
void say_whole(const struct bench *bench, const struct standin_request *request);

/* What more than one test's server does. */
standin_fn always_503, closes_at_once_twice, longer_without_a_length, storage, redirects_to_expired;

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_new, bench_free)
