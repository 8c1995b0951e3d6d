/* SPDX-License-Identifier: Apache-2.0 */
/* role.h - the main() of the programs behind hearth: one process, one role. */
#pragma once

#include <stddef.h>

struct role {
	const char *name; /* the program's one argument */
	int (*run)(void);
};

/* The whole of main(): set the process up and run the role that was asked for. */
int role_main(const struct role *roles, size_t count, int argc, char **argv);
