/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_watch_priv.h"

#include "bake/work.h"
#include "layers/base/thread.h"

#include <poll.h>

static void *work_watch_run(void *ctx)
{
	struct work_watch *watch = ctx;
	struct pollfd fds[] = {{.fd = WORK_FD_ASKER, .events = POLLIN},
			       {.fd = cancel_fd(&watch->ended), .events = POLLIN}};

	while (poll(fds, 2, -1) < 0)
		continue;
	if (fds[0].revents)
		cancel_raise(watch->cancel);
	return NULL;
}

int work_watch_start(struct work_watch *watch, struct cancel *cancel, struct err *err)
{
	watch->cancel = cancel;
	if (cancel_init(&watch->ended, err) < 0)
		return -1;
	if (thread_start(&watch->thread, work_watch_run, watch, err) == 0)
		return 0;
	cancel_done(&watch->ended);
	return -1;
}

void work_watch_stop(struct work_watch *watch)
{
	cancel_raise(&watch->ended);
	(void)pthread_join(watch->thread, NULL);
	cancel_done(&watch->ended);
}
