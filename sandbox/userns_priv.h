/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userns_priv.h - a user namespace as an id mapping, and the slots from which
 * machines get their ids.
 */
#pragma once

#include "layers/base/err.h"

#include <sys/types.h>

#define USERNS_IDS 65536 /* ids in a machine's range */

/*
 * Slots lie between the ranges that systemd gives to its containers and the
 * ids that are negative as an int.
 */
#define USERNS_FIRST 0x70000000U
#define USERNS_SLOTS 4094U

/* A namespace that maps 0..65535 to first.. It lives as long as the descriptor. */
int userns_open(uid_t first, struct err *err) MUST_CHECK;

/*
 * The first id of each slot of the data directory dirfd; two data directories
 * get different ones. 0 for a slot whose ids /etc/subuid or /etc/subgid gives
 * to somebody else.
 */
void userns_slots(int dirfd, uid_t first[static USERNS_SLOTS]);

/* How many slots are not given to others. */
unsigned userns_count_free(void);
