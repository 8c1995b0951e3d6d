/* SPDX-License-Identifier: Apache-2.0 */
/* store_check.h - what must hold of every store at any moment. */
#pragma once

#include "layers/store.h"

/*
 * Every blob is whole, and every chunk's count is the number of places in blobs
 * that hold it. Fails the running test otherwise. Returns the number of blobs.
 */
size_t store_check(struct store *store);
