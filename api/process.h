/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what every program of ours does first, before it opens anything.
 *
 * Whoever started us may have closed standard input, output or error. The next
 * file that is opened would get that number, and progress would be written into
 * it. So a closed one is opened, in a way that reading and writing still fail
 * (EBADF). As many files may be open as the hard limit allows, since a step's
 * connections and a layer's directories need more than a shell gives. A reader
 * who has gone and a file that may not grow are errors, and no signals.
 */
#pragma once

#include "layers/base/err.h"

int process_begin(struct err *err) MUST_CHECK;
