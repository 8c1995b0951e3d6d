/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vacancy.h - whether the store has room for what comes.
 *
 * Who is told beforehand how much will come asks, so that what cannot be kept is
 * refused before it fills the disk for all others. When something found no room it
 * is remembered how much: until there is so much, the daemon says that it is not
 * ready (vacancy_check()).
 *
 * Room is made by whoever opened it: what nothing names any more is collected,
 * once for all who lack it at the same time.
 *
 * Threads: any may call; vacancy_ask() and vacancy_make() may take their time.
 */
#pragma once

#include "layers/base/lock.h"
#include "layers/store.h"

/* Of something larger, only so much has to be free again; it may have been unreasonable. */
#define VACANCY_LACKING_MAX ((uint64_t)256 * 1024 * 1024)

/* 1 something was removed, 0 nothing can go, -1. */
typedef int vacancy_make_fn(void *ctx, struct err *err);

struct vacancy {
	struct store *store;
	vacancy_make_fn *make; /* or NULL */
	void *ctx;
	struct lock lock;
	pthread_cond_t changed;
	/* guarded by lock: */
	uint64_t lacking; /* bytes that something found no room for; 0 for none */
	bool making;
	unsigned made; /* how often it was tried */
	int result;    /* of the last time */
};

void vacancy_init(struct vacancy *vacancy, struct store *store, vacancy_make_fn *make, void *ctx);
void vacancy_done(struct vacancy *vacancy);

/* Room for so many bytes; some is made where there is none. ERR_FULL. */
int vacancy_ask(struct vacancy *vacancy, uint64_t bytes, struct err *err) MUST_CHECK;

/* The same, where none may be made: who asks holds some of what is being written. ERR_FULL. */
int vacancy_look(struct vacancy *vacancy, uint64_t bytes, struct err *err) MUST_CHECK;

/* So many bytes found no room. 1 some was made, and it may be tried again; 0; -1. */
int vacancy_make(struct vacancy *vacancy, uint64_t bytes, struct err *err) MUST_CHECK;

/* ERR_FULL while what found no room would not find it now. */
int vacancy_check(struct vacancy *vacancy, struct err *err) MUST_CHECK;
