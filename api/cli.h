/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - the command line: commands, options, and how they end.
 *
 * A command is a row of a table; --help, the errors and the parser read the
 * same rows. Options may stand before or after arguments; `--` ends them. An
 * empty value is a mistake, since it is what an unset variable of a shell is.
 * A message goes to standard error with what to do next, and the process ends
 * with the code of the error's kind (layers/base/err.c):
 *
 *	0 done   1 a step's command failed   64 wrong usage or spec
 *	65 a step refused, or input too large or corrupt   66 not found
 *	69 cannot, or a registry failed   70 a system call failed
 *	74 no space   75 try again   77 not allowed   130 cancelled
 *
 * A result that standard output does not take is 70. Standard error is for
 * people: whoever stops reading it changes nothing, and ends nothing.
 */
#pragma once

#include "api/config.h"
#include "layers/base/cancel.h"
#include "layers/store.h"

#include <stdbool.h>
#include <stdio.h>

#define CLI_OPTIONS_MAX 32
#define CLI_REPEAT_MAX 256 /* values of one repeatable option */

struct cli_option {
	const char *name;  /* without the dashes */
	const char *value; /* what stands for its value in --help; NULL for a switch */
	const char *help;
	bool repeats;
};

struct cli;

struct cli_command {
	const char *name;
	const char *arguments; /* as in "SPEC", "[REFERENCE]" */
	const char *summary;   /* one line */
	const char *detail;    /* more lines for --help, or "" */
	const struct cli_option *options;
	size_t option_count;
	size_t args_min;
	size_t args_max;
	bool alone; /* needs no data directory and no other program */
	int (*run)(struct cli *cli, struct err *err);
};

struct cli_value {
	const char **at; /* owned */
	size_t count;
};

struct cli {
	const struct cli_command *command;
	struct cli_value values[CLI_OPTIONS_MAX]; /* as the command's options */
	const char **args;                        /* owned array, borrowed strings */
	size_t arg_count;
	struct cancel *cancel; /* raised by SIGINT, SIGTERM, SIGHUP and SIGALRM */
	char *data_path;       /* owned: the data directory */
	char *worker_path;     /* owned */
	char *puller_path;     /* owned */
	char *daemon_path;     /* owned */
	char *hearth_path;     /* owned: of the program `hearth`, which jobs run, too */
	char *agent_path;      /* owned */
	uint64_t map_bytes;    /* 0 for the default */
	struct config config;  /* owned: what the operator's file says */
};

extern const struct cli_command cli_bake;
extern const struct cli_command cli_pull;
extern const struct cli_command cli_push;
extern const struct cli_command cli_login;
extern const struct cli_command cli_logout;
extern const struct cli_command cli_import;
extern const struct cli_command cli_copy;
extern const struct cli_command cli_export;
extern const struct cli_command cli_tag;
extern const struct cli_command cli_images;
extern const struct cli_command cli_ls;
extern const struct cli_command cli_tags;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_history;
extern const struct cli_command cli_logs;
extern const struct cli_command cli_why;
extern const struct cli_command cli_gc;
extern const struct cli_command cli_rm;
extern const struct cli_command cli_du;
extern const struct cli_command cli_fsck;
extern const struct cli_command cli_context;
extern const struct cli_command cli_serve;
extern const struct cli_command cli_sync;
extern const struct cli_command cli_status;
extern const struct cli_command cli_rebake;
extern const struct cli_command cli_rollback;
extern const struct cli_command cli_bakes;
extern const struct cli_command cli_sessions;
extern const struct cli_command cli_events;
extern const struct cli_command cli_call;
extern const struct cli_command cli_mirror;
extern const struct cli_command cli_token;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_completion;
extern const struct cli_command cli_manual;

/* The options that every command has. */
#define CLI_OPTION_CONFIG                                                                  \
	{                                                                                  \
		"config", "FILE",                                                          \
			"the configuration; else HEARTH_CONFIG says which, and root's is " \
			"/etc/hearth/hearth.json",                                         \
			false                                                              \
	}
#define CLI_OPTION_DATA                                                                   \
	CLI_OPTION_CONFIG,                                                                \
	{                                                                                 \
		"data", "DIR",                                                            \
			"the data directory; else HEARTH_DATA says which, and root's is " \
			"/var/lib/hearth",                                                \
			false                                                             \
	}
#define CLI_OPTION_HELP                               \
	{                                             \
		"help", NULL, "show this text", false \
	}
#define CLI_OPTION_JSON                           \
	{                                         \
		"json", NULL, "print JSON", false \
	}

/* Parse argv behind the command's name. ERR_INVALID names the option and the nearest. */
int cli_parse(struct cli *cli, int argc, char **argv, struct err *err) MUST_CHECK;
void cli_done(struct cli *cli);

bool cli_has(const struct cli *cli, const char *option);

/* The last value, or NULL. */
const char *cli_text(const struct cli *cli, const char *option);

/* The size that the option's value is, as disks count (size.h); out stays where it is not given. */
int cli_read_size(const struct cli *cli, const char *option, uint64_t *out, struct err *err)
	MUST_CHECK;

/* The number of a step, from 1; name is what the user calls it. */
int cli_read_step(const char *name, const char *text, size_t *out, struct err *err) MUST_CHECK;

/* All values of an option that repeats. Borrowed. */
struct cli_value cli_list(const struct cli *cli, const char *option);

void cli_print_help(const struct cli_command *command, FILE *out);

/* Open the store of this command, made if it is not there. */
int cli_open_store(const struct cli *cli, struct store **out, struct err *err) MUST_CHECK;

/* The same for those who only read: 1, 0 when there is none yet, -1. */
int cli_find_store(const struct cli *cli, struct store **out, struct err *err) MUST_CHECK;
