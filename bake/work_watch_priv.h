/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_watch_priv.h - a role works as long as its asker waits.
 *
 * A thread watches WORK_FD_ASKER: anything that the asker sends, and its end,
 * means that it has left, and raises the role's cancel.
 */
#pragma once

#include "layers/base/cancel.h"

#include <pthread.h>

struct work_watch {
	struct cancel *cancel; /* borrowed */
	struct cancel ended;   /* tells the thread to go */
	pthread_t thread;
};

int work_watch_start(struct work_watch *watch, struct cancel *cancel, struct err *err) MUST_CHECK;

/* Of one that was started. */
void work_watch_stop(struct work_watch *watch);
