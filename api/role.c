/* SPDX-License-Identifier: Apache-2.0 */
#include "api/role.h"

#include "api/settings.h"
#include "layers/base/err.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ROLE_MMAP_BYTES (128 * 1024) /* malloc's own, before it begins to adapt */

/* A step's connections and a layer's directories need more than a shell gives. */
static void role_raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* with less, less goes on at once */
}

int role_main(const struct role *roles, size_t count, int argc, char **argv)
{
	struct err ignored;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	if (settings_log(&ignored) < 0)
		return 1; /* hearth, which started us, has said so and ended */
	(void)umask(0);   /* modes are what an image says */
	role_raise_files();
	/*
	 * Chunks and batches go back to the system when they are freed. Left to
	 * itself malloc keeps them in the arena of each thread that freed one: a
	 * pull of three layers had 72 MiB instead of 35. (A sanitizer's malloc has
	 * no such dial, and says so.)
	 */
	(void)mallopt(M_MMAP_THRESHOLD, ROLE_MMAP_BYTES);
	for (size_t i = 0; argc == 2 && i < count; i++) {
		if (strcmp(argv[1], roles[i].name) == 0)
			return roles[i].run();
	}
	(void)fprintf(stderr, "this program is started by hearth, and by nothing else\n");
	return err_exit_code(ERR_INVALID);
}
