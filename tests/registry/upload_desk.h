/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload_desk.h - a blob in a store, and a stand-in for the registry that it
 * goes to.
 *
 * What a test calls `fault` sees each request first and may answer it; what it
 * leaves alone is taken as a registry would.
 */
#pragma once

#include "registry/upload_priv.h"
#include "tests/check.h"
#include "tests/layers/store_fixture.h"
#include "tests/registry/standin.h"

#define DESK_BYTES ((size_t)100000)
#define DESK_HALF ((size_t)40000)
#define DESK_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define DESK_ASKED_MAX 64

/*
 * A registry with one upload at a time. What it is asked becomes a letter each:
 * H head, M mount, P post, G status, C patch, U put, D document, T token.
 */
struct desk {
	struct store_fixture *fixture;
	struct standin server;
	struct standin other; /* another host, as ports go */
	char host[64];
	struct remote_spec spec;
	struct remote *remote;
	struct http *http;
	struct cancel cancel;
	struct secret password;
	struct digest digest; /* of the blob */
	struct buf bytes;     /* the blob */
	struct buf session;   /* that a mount left, to send it to */
	standin_fn *fault;    /* is asked first; NULL or not answering leaves it to the registry */
	/* by the stand-in: */
	bool answered;
	char asked[DESK_ASKED_MAX];
	struct buf got;
	char location[256]; /* what POST says, where not the usual */
	char range[32];     /* the last Content-Range */
	bool leaked;
	int step;
};

int desk_new(void **state);
int desk_free(void **state);

/* Make the blob of this size; else it is made when first sent. */
void desk_fill(struct desk *desk, size_t size);

/* Connect as spec says; else it is done when first needed. */
void desk_connect(struct desk *desk);

/* Send the blob, past a registry that does this. */
int desk_send(struct desk *desk, standin_fn *fault, struct err *err);

/* These requests brought all of the blob. */
void desk_check_sent(const struct desk *desk, const char *asked);

/* For faults: which letter a request is, its body (or so much of it), an answer. */
char desk_letter(const struct standin_request *request);
void desk_take(struct desk *desk, const struct standin_request *request, size_t most);
void desk_answer(struct desk *desk, const struct standin_request *request, const char *status,
		 const char *headers);

#define TEST(name) cmocka_unit_test_setup_teardown(name, desk_new, desk_free)
