/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - room on the disk that is kept for a collection.
 *
 * To remove anything takes a few pages of a database, which a full disk has
 * not. So a store is born with a file of nothing, which the collection that
 * finds no room gives up, and a later one makes again. A file system that
 * cannot allocate ahead has none.
 */
#pragma once

#include "layers/store.h"

#define RESERVE_BYTES ((uint64_t)4 * 1024 * 1024) /* a pass writes less before it frees */

/* 1 it is there, whole; 0 there is no room for it, or no way; -1. */
int reserve_make(struct store *store, struct err *err) MUST_CHECK;

/* 1 its room can be used now, 0 there was none, -1. */
int reserve_give_up(struct store *store, struct err *err) MUST_CHECK;
