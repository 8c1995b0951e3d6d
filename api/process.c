/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* From the lowest on, so that each open() fills the gap. */
static int process_open_standard(struct err *err)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", wrong_way) != fd)
			return err_os(err, errno, "descriptor %d is closed; open /dev/null", fd);
	}
	return 0;
}

static void process_raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* with less, less goes on at once */
}

int process_begin(struct err *err)
{
	if (process_open_standard(err) < 0)
		return -1;
	process_raise_files();
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return err_os(err, errno, "ignore signals");
	return 0;
}
