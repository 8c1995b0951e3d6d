/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - room on the disk that is kept for a collection.
 *
 * To remove anything takes a few new pages of a database, for which a full disk
 * has no room. So a store is made with a file that only takes space; a
 * collection that finds no room deletes it, and a later one makes it again. A
 * file system that cannot allocate ahead has no such file.
 */
#pragma once

#include "layers/store.h"

#define RESERVE_BYTES ((uint64_t)4 * 1024 * 1024) /* a pass writes less before it frees */

/* 1 it is there, whole; 0 there is no room for it, or it cannot be allocated; -1. */
int reserve_make(struct store *store, struct err *err) MUST_CHECK;

/* 1 its room can be used now, 0 there was none, -1. */
int reserve_give_up(struct store *store, struct err *err) MUST_CHECK;
