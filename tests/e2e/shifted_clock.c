/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shifted_clock.c - a wall clock that goes ahead by the seconds which the file
 * named by SHIFTED_CLOCK says at the moment, as an LD_PRELOAD: what comes once
 * a day need not be waited for. What measures durations stays as it is.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void)
{
	const char *path = secure_getenv("SHIFTED_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[24] = "0";

	if (fd < 0)
		return 0;
	(void)!read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return strtoll(text, NULL, 10);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
	int result = (int)syscall(SYS_clock_gettime, clock_id, tp);

	if (result == 0 && clock_id == CLOCK_REALTIME)
		tp->tv_sec += shift();
	return result;
}
