/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_token.h - the token by which this host's own commands ask the daemon:
 * the file admin.token of the data directory, 0600, made at its first start.
 */
#pragma once

#include "layers/base/secret.h"
#include "layers/store.h"

/* See to it that the file holds a token that is known, and is admin's. */
int admin_token_ensure(struct store *store, struct err *err) MUST_CHECK;

/* 1 and what the file of this data directory holds, 0 there is none, -1. */
int admin_token_read(int datafd, struct secret *out, struct err *err) MUST_CHECK;
