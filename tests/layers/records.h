/* SPDX-License-Identifier: Apache-2.0 */
/* records.h - digests to tell things apart by, and write transactions, for tests of records. */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"
#include "tests/layers/store_fixture.h"

/* The digest of a word. */
static inline struct digest named(const char *text)
{
	struct digest digest;

	digest_of(str_of(text), &digest);
	return digest;
}

static inline struct meta *begin_write(const struct store_fixture *fixture)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	return meta;
}

static inline void end_write(struct meta *meta)
{
	struct err err = {0};

	check_ok(meta_commit(meta, &err), &err);
}
