/* SPDX-License-Identifier: Apache-2.0 */
#include "api/role.h"

#include "api/process.h"
#include "api/settings.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROLE_MMAP_BYTES (128 * 1024) /* malloc's own, before it begins to adapt */

int role_main(const struct role *roles, size_t count, int argc, char **argv)
{
	struct err err;

	if (process_begin(&err) < 0)
		return err_exit_code(err.kind);
	if (settings_log(&err) < 0)
		return err_exit_code(
			err.kind); /* hearth, which started us, has reported the same and ended */
	(void)umask(0);            /* modes are those of the image */
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
