/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - a store with a root of one busybox, and machines to try on it.
 *
 * The test's process enters a mount namespace of its own; what it leaves to be
 * found (mounts, cgroups, processes) is counted from outside as well.
 */
#pragma once

#include "sandbox/host.h"
#include "sandbox/machine.h"
#include "tests/check.h"

#define RIG_OUTPUT_MAX 65536
#define RIG_MAP ((uint64_t)1 << 30) /* sanitizers cannot map a tebibyte */

/* PATH=/bin and nothing else. */
extern const char *const rig_env[];

/* One store and what the tests share; cmocka's state. */
struct rig {
	char dir[64];
	struct store *store;
	struct digest base; /* busybox and its links */
	unsigned trees;
	int mounts; /* mountinfo of the namespace that we left */
};

/* What came of a command; test_free() it. */
struct done {
	int result;
	int status;
	struct err err;
	char output[RIG_OUTPUT_MAX];
};

/* A file of this text. */
void rig_text_at(int dirfd, const char *name, const char *text);

/* An empty directory that rig_keep_tree() makes a tree of, under its name. */
int rig_new_tree(struct rig *rig, char name[32]);

struct digest rig_keep_tree(struct rig *rig, int fd, const char *name);

/* A machine that works, or the test fails. */
struct machine *rig_open_machine(struct rig *rig, const struct digest *trees, size_t count,
				 struct machine_limits limits);

/* One over the base alone, without limits. */
struct machine *rig_plain_machine(struct rig *rig);

/* Run with output and result kept; the command's empty fields get defaults. */
struct done *rig_run(struct machine *machine, struct machine_command command);

struct done *rig_shell(struct machine *machine, const char *script);

/* The script's output, when it went as it should. */
void rig_expect(struct machine *machine, const char *script, int status, const char *output);

size_t rig_count_entries(int dirfd);

/* Detach and lend the upper directory. */
int rig_upper_of(struct machine *machine);

void rig_assert_upper_empty(struct machine *machine);

/* How many processes of the host are in one of these cgroups. */
size_t rig_count_processes(const struct rig *rig);

/* Neither processes nor cgroups of this store's machines are left. */
void rig_assert_nothing_runs(const struct rig *rig);

/* From the start of a file that may be read again. */
size_t rig_count_lines(int fd);

size_t rig_count_own_mounts(void);

/* The group's setup and teardown. */
int rig_make(void **state);
int rig_end(void **state);

/* Whether machines can be tried here; else the test exits with RIG_SKIP. */
bool rig_is_possible(void);
#define RIG_SKIP 125
