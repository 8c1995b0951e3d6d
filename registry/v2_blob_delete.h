/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_blob_delete.h - a repository lets go of a blob.
 *
 * Its record goes, and with it the leave to read the blob by this name; the
 * bytes are a collection's, where nothing else leads to them.
 */
#pragma once

#include "registry/v2.h"

void v2_blob_delete(struct v2_call *call);
