/* SPDX-License-Identifier: Apache-2.0 */
/* receipt_priv.h - a receipt in the transaction that makes its blob. */
#pragma once

#include "layers/receipt.h"
#include "layers/store_priv.h"

int receipt_put(const struct store_blobs *blobs, MDB_txn *txn, const struct batch_blob *blob,
		struct err *err) MUST_CHECK;
