/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - all commands of the program, and what is made of them for
 * others to read: the list of --help, a man page, a completion.
 */
#pragma once

#include "api/cli.h"

/* In the order of --help; ends with NULL. */
extern const struct cli_command *const commands[];

/* NULL where there is none of that name. */
const struct cli_command *commands_find(const char *name);

/* ERR_INVALID for a name that is no command's, with the nearest. Returns -1. */
int commands_refuse(const char *name, struct err *err);

/* The program's own --help. */
void commands_print_help(FILE *out);

/* hearth(1) in roff, from the same texts as --help. Format: man(7). */
void commands_print_manual(FILE *out);

/* A script for bash, to be sourced, which completes commands, options and images. */
void commands_print_completion(FILE *out);
