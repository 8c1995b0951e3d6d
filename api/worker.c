/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the program `hearth-worker`: one process of a bake, in one role. */
#include "bake/work.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define WORKER_MMAP_BYTES (128 * 1024) /* malloc's own, before it begins to adapt */

static int work_all_steps(void)
{
	return work_steps(work_step);
}

static const struct {
	const char *name;
	int (*run)(void);
} roles[] = {
	{"steps", work_all_steps},
	{"pull", work_pull},
	{"doctor", work_doctor},
};

/* A step's connections and a layer's directories need more than a shell gives. */
static void worker_raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* with less, less goes on at once */
}

int main(int argc, char **argv)
{
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	(void)umask(0); /* modes are what an image says */
	worker_raise_files();
	/*
	 * Chunks and batches go back to the system when they are freed. Left to
	 * itself malloc keeps them in the arena of each thread that freed one: a
	 * pull of three layers had 72 MiB instead of 35. (A sanitizer's malloc has
	 * no such dial, and says so.)
	 */
	(void)mallopt(M_MMAP_THRESHOLD, WORKER_MMAP_BYTES);
	for (size_t i = 0; argc == 2 && i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(argv[1], roles[i].name) == 0)
			return roles[i].run();
	}
	(void)fprintf(stderr, "hearth-worker is started by hearth, and by nothing else\n");
	return err_exit_code(ERR_INVALID);
}
