/* SPDX-License-Identifier: Apache-2.0 */
/* machine_priv.h - a machine: machine.c makes it, machine_run.c runs commands in it. */
#pragma once

#include "sandbox/etc_priv.h"
#include "sandbox/inner_priv.h"
#include "sandbox/machine.h"
#include "sandbox/slot_priv.h"
#include "sandbox/stack_priv.h"

#define MACHINE_PATH_MAX ((size_t)128)

struct machine {
	struct store *store;
	struct slot slot;
	struct stack stack;
	struct digest *diff_ids; /* of the distinct trees */
	size_t diff_id_count;
	enum network_mode network_mode;
	struct network_host *hosts;
	size_t host_count;
	struct network *network; /* from the first run on */
	struct machine_limits limits;
	unsigned limits_hit; /* by the last command; enum report_limit, or-ed */
	char runtime[256];
	char *agent_path;
	int machinesfd; /* opened in our mount namespace: the store's own may be older than it */
	int treesfd;
	int basefd; /* run/base, of all machines */
	char scratch[MACHINE_PATH_MAX];
	int scratchfd;
	int volumefd;         /* of the volume with up/ and work/ of a limited disk; else -1 */
	struct err unlimited; /* why there is no volume although there is a limit */
	int rootfd;
	struct etc etc;
	struct inner inner;
	bool has_extras; /* sysfs and the agent are mounted */
	unsigned runs;
	unsigned images; /* image views that were made */
};
