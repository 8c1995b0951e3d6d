/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf.h - a stand-in for a registry of manifests, and two stores: one that
 * pushes to it, and one that pulls.
 *
 *	cmocka_unit_test_setup_teardown(test, shelf_new, shelf_free)
 */
#pragma once

#include "registry/push.h"
#include "tests/layers/store_fixture.h"
#include "tests/registry/standin.h"

#define SHELF_MAX 32

struct document {
	char name[256]; /* a tag or a digest */
	struct buf text;
};

/* A registry of manifests; whatever blob it is asked for it has, and it is {}. */
struct shelf {
	struct store_fixture *from;
	struct store_fixture *to;
	struct standin server;
	struct cancel cancel;
	char host[64];
	bool api;          /* it has the referrers API, */
	bool pages;        /* with one manifest to a page */
	bool tags_at_once; /* it puts the tags of a query */
	bool refuses_tags; /* it refuses a query */
	struct document documents[SHELF_MAX];
	size_t count;
	int puts;
	int found; /* by the test */
};

/* A document by its name, or NULL. */
struct document *shelf_find(struct shelf *shelf, struct str name);

int shelf_new(void **state);
int shelf_free(void **state);

/* Throw away and start anew, for a test that tries several ways. */
struct shelf *shelf_again(void **state);

/* A manifest of one empty config in a store; about another, if that is not NULL. */
void shelf_make(struct store *store, const char *type, const struct digest *subject,
		struct digest *out);

/* Push what the spec says to "acme/tool" and this: ":1". Counts anew what is put. */
int shelf_send(struct shelf *shelf, const struct push_spec *asked, const char *name,
	       struct err *err);

#define TEST(name) cmocka_unit_test_setup_teardown(name, shelf_new, shelf_free)
