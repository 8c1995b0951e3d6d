/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unrecorded.h - what has a receipt only (layers/receipt.h) gets its record.
 *
 * A manifest's commit writes the records of what it names, and leaves the
 * receipts. These are taken back here, with all that no manifest has named.
 *
 * Durability: records come before their receipts go; killed between the two, the
 * next call does the rest. Called by one at a time, who collects.
 */
#pragma once

#include "layers/base/cancel.h"
#include "layers/store.h"

#define UNRECORDED_BATCH 256 /* of one transaction, while others wait */

int unrecorded_settle(struct store *store, const struct cancel *cancel, struct err *err) MUST_CHECK;
