/* SPDX-License-Identifier: Apache-2.0 */
/* tree_compare_priv.h - whether two directories hold the same, but for times. */
#pragma once

#include "layers/base/cancel.h"

/* 1 they do, 0 they do not, -1. */
int tree_compare(int a, int b, const struct cancel *cancel, struct err *err) MUST_CHECK;
