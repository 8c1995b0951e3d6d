/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/thread.h"

#include <signal.h>

int thread_start(pthread_t *out, void *(*run)(void *ctx), void *ctx, struct err *err)
{
	sigset_t all;
	sigset_t before;
	int failed;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(out, NULL, run, ctx);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? err_os(err, failed, "start a thread") : 0;
}

size_t thread_cores(size_t max)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (cores < 1)
		return 1;
	return (size_t)cores < max ? (size_t)cores : max;
}
