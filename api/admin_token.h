/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_token.h - the token by which this host's own commands ask the daemon:
 * the file admin.token of the data directory, 0600, made at its first start.
 */
#pragma once

#include "layers/base/secret.h"
#include "layers/store.h"

/* Make sure that the file holds a valid token with scope admin. */
int admin_token_ensure(struct store *store, struct err *err) MUST_CHECK;

/* 1 and the token in the file of this data directory, 0 there is no file, -1. */
int admin_token_read(int datafd, struct secret *out, struct err *err) MUST_CHECK;
